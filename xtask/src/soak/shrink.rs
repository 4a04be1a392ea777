//! Makes a failing input small: takes parts away and makes numbers smaller while it still fails.

use serde_json::{Value, json};

/// Most inputs that are tried.
const TRIES: usize = 300;

/// The smallest tree that was found for which `fails` holds, as it does for `tree`.
pub(super) fn tree(tree: &Value, fails: impl Fn(&Value) -> bool) -> Value {
    let mut best = tree.clone();
    let mut tries = 0;
    loop {
        let mut smaller = candidates(&best).into_iter().take(TRIES.saturating_sub(tries));
        let found = smaller.find(|candidate| {
            tries += 1;
            fails(candidate)
        });
        match found {
            Some(found) => best = found,
            None => return best,
        }
    }
}

/// Trees that are a step smaller: without a part, or with a smaller number.
fn candidates(tree: &Value) -> Vec<Value> {
    match tree {
        Value::Object(fields) => {
            let without = fields.keys().map(|key| {
                let mut fields = fields.clone();
                fields.shift_remove(key);
                Value::Object(fields)
            });
            let within = fields.iter().flat_map(|(key, value)| {
                candidates(value).into_iter().map(|value| {
                    let mut fields = fields.clone();
                    fields[key] = value;
                    Value::Object(fields)
                })
            });
            without.chain(within).collect()
        }
        Value::Array(items) => {
            let without = |index| {
                let kept = items.iter().enumerate().filter(|(other, _)| *other != index);
                Value::Array(kept.map(|(_, item)| item.clone()).collect())
            };
            let within = items.iter().enumerate().flat_map(|(index, item)| {
                candidates(item).into_iter().map(move |item| {
                    let mut items = items.clone();
                    items[index] = item;
                    Value::Array(items)
                })
            });
            (0..items.len()).map(without).chain(within).collect()
        }
        Value::Number(number) => match number.as_u64() {
            Some(n) if n > 1 => vec![json!(1), json!(n / 2), json!(n - 1)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The shortest list of words that was found for which `fails` holds, as it does for `words`.
pub(super) fn words(words: &[String], fails: impl Fn(&[String]) -> bool) -> Vec<String> {
    let list = |words: &[String]| json!(words);
    let back = |value: &Value| -> Vec<String> {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    back(&tree(&list(words), |candidate| fails(&back(candidate))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_taken_away() {
        let fails = |tree: &Value| tree["a"]["n"].as_u64() > Some(6) && tree["b"][0] == "x";
        let large = json!({ "c": { "d": 1 }, "a": { "n": 90, "m": 4 }, "b": ["y", "x", "z"] });
        let small = tree(&json!({ "c": 1, "a": { "n": 90, "m": 4 }, "b": ["x", "z"] }), fails);
        assert_eq!(small, json!({ "a": { "n": 7 }, "b": ["x"] }));
        assert_eq!(tree(&large, |tree| tree["b"][1] == "x"), json!({ "b": ["y", "x"] }));
        let line = ["run", "--a", "1", "--b"].map(str::to_owned);
        assert_eq!(words(&line, |words| words.contains(&"--b".to_owned())), ["--b"]);
    }
}
