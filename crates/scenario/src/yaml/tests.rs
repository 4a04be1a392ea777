//! What the reader refuses, and with which words.
use super::*;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    #[serde(default)]
    count: Option<Whole<1, 9>>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    on: Option<bool>,
    #[serde(default)]
    inner: Vec<Inner>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    x: Whole<0, { u64::MAX }>,
}

fn read(text: &str) -> Result<Sample, String> {
    let node = read_text("s.yaml", text).map_err(|problem| problem.to_string())?;
    decode(&node).map_err(|problem| problem.to_string())
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_eq!(read(text).expect_err("must be refused"), message, "{text:?}");
}

#[test]
fn good_input_is_read() {
    let sample = read("count: 3\nname: 5\non: yes\ninner: [{x: 1e3}]\n").expect("legal");
    assert_eq!(sample.count.map(Whole::get), Some(3));
    assert_eq!(sample.name.as_deref(), Some("5"));
    assert_eq!(sample.on, Some(true));
    assert_eq!(sample.inner[0].x.get(), 1_000);
    let windows = read("\u{feff}count: 3\r\nname: a\r\n").expect("BOM and CRLF are fine");
    assert_eq!(windows.name.as_deref(), Some("a"));
}

#[test]
fn values_are_refused_with_place_path_value_and_range() {
    refused("count: 0", "s.yaml:1:8: count: found `0`; legal: a whole number from 1 to 9");
    refused("count: ten", "s.yaml:1:8: count: found `ten`; legal: a whole number from 1 to 9");
    refused("count: -1", "s.yaml:1:8: count: found `-1`; legal: a whole number from 1 to 9");
    refused("count: .nan", "s.yaml:1:8: count: found `.nan`; legal: a whole number from 1 to 9");
    refused("count: 1e308", "s.yaml:1:8: count: found `1e308`; legal: a whole number from 1 to 9");
    refused("count: \"3\"", "s.yaml:1:8: count: found `3`; legal: a whole number from 1 to 9");
    refused(
        "count: [3]",
        "s.yaml:1:8: count: found a list of 1; legal: a whole number from 1 to 9",
    );
    refused("on: 2", "s.yaml:1:5: on: found `2`; legal: `true` or `false`");
    refused(
        "inner:\n  - x: 1\n  - x: {}\n",
        "s.yaml:3:8: inner[1].x: found a group of fields; legal: a whole number, not negative",
    );
    refused("inner: [{}]", "s.yaml:1:9: inner[0]: field `x` is missing; add it");
    refused("inner: 5", "s.yaml:1:8: inner: found `5`; legal: a list");
}

#[test]
fn numbers_are_plain_decimals() {
    for bad in ["0x3", "0o3", "0b11", "1_0", "03", "+03", "0x", ".inf", "3ms", "1e", "e1", "."] {
        refused(
            &format!("count: {bad}"),
            &format!("s.yaml:1:8: count: found `{bad}`; legal: a whole number from 1 to 9"),
        );
    }
    for good in ["3", "3.0", "3e0", "+3", "30e-1", "0.3e1"] {
        let sample = read(&format!("count: {good}")).expect(good);
        assert_eq!(sample.count.map(Whole::get), Some(3), "{good}");
    }
    let anchored = read("count: &a 3\nname: *a\n").expect("legal");
    assert_eq!((anchored.count.map(Whole::get), anchored.name.as_deref()), (Some(3), Some("3")));
    refused(
        "inner: [{x: &a 0x3}]",
        "s.yaml:1:16: inner[0].x: found `0x3`; legal: a whole number, not negative",
    );
}

#[test]
fn a_field_without_a_value_is_refused_unless_it_is_a_group_or_a_list() {
    let legal = "legal: a whole number from 1 to 9";
    refused("count:", &format!("s.yaml:1:6: count: no value; {legal}"));
    refused("count: ~", &format!("s.yaml:1:8: count: no value; {legal}"));
    refused("count: null", &format!("s.yaml:1:8: count: no value; {legal}"));
    refused("on: ~", "s.yaml:1:5: on: no value; legal: `true` or `false`");
    refused("name: ~", "s.yaml:1:7: name: no value; legal: text");
    assert!(read("inner:\ncount: 1\n").expect("an empty list").inner.is_empty());
}

#[test]
fn tags_that_would_change_the_meaning_are_refused() {
    for (text, tag) in [
        ("name: !include x.yaml", "!include"),
        ("name: !foo x", "!foo"),
        ("name: !!binary eA==", "!!binary"),
        ("inner: !foo [{x: 1}]", "!foo"),
        ("inner: [!foo {x: 1}]", "!foo"),
    ] {
        let message = read(text).expect_err(text);
        let expected = format!(": tag `{tag}` is not read; remove it");
        assert!(message.starts_with("s.yaml:1:") && message.ends_with(&expected), "{message}");
    }
    let sample = read("name: !!str 5\ncount: !!int 3\n").expect("these change nothing");
    assert_eq!((sample.name.as_deref(), sample.count.map(Whole::get)), (Some("5"), Some(3)));
    for text in ["name: !!int x", "name: !!timestamp 2001-01-01"] {
        let message = read(text).expect_err(text);
        assert!(message.ends_with(": the tag does not match its value; remove it"), "{message}");
    }
}

#[test]
fn limits_are_told_in_our_own_words() {
    let deep = format!("count: {}{}", "[".repeat(40), "]".repeat(40));
    assert!(read(&deep).expect_err("deep").ends_with(": nested more than 32 levels deep"));
    let message = read("a: &x [*x]").expect_err("a loop");
    assert!(message.ends_with(": an alias refers to its own value; write the value out"));
    let message = read("a: *nowhere").expect_err("no anchor");
    assert!(message.starts_with("s.yaml:1:4: "), "{message}");
    for library in ["budget", "breach", "{", "Depth", "weak", "serde"] {
        for text in [deep.as_str(), "a: &x [*x]", "a: *nowhere"] {
            assert!(!read(text).expect_err("bad").contains(library), "{library}");
        }
    }
}

#[test]
fn unknown_fields_get_the_nearest_name() {
    refused(
        "cuont: 3",
        "s.yaml:1:1: cuont: unknown field `cuont`, did you mean `count`?; known: `count`, `name`, \
         `on`, `inner`",
    );
    refused(
        "inner:\n- y: 3",
        "s.yaml:2:3: inner[0].y: unknown field `y`, did you mean `x`?; known: `x`",
    );
}

#[test]
fn all_that_is_illegal_is_told_at_once() {
    refused(
        "cuont: 3\ncount: 0\non: 2\ninner: [{y: 1}, {x: no}, {x: 1}, 5]",
        "s.yaml:1:1: cuont: unknown field `cuont`, did you mean `count`?; known: `count`, `name`, \
         `on`, `inner`
s.yaml:2:8: count: found `0`; legal: a whole number from 1 to 9
s.yaml:3:5: on: found `2`; legal: `true` or `false`
s.yaml:4:10: inner[0].y: unknown field `y`, did you mean `x`?; known: `x`
s.yaml:4:21: inner[1].x: found `no`; legal: a whole number, not negative
s.yaml:4:34: inner[3]: found `5`; legal: the fields `x`",
    );
    refused(
        "inner: [{z: 1, zz: 2}]",
        "s.yaml:1:10: inner[0].z: unknown field `z`, did you mean `x`?; known: `x`
s.yaml:1:16: inner[0].zz: unknown field `zz`; known: `x`",
    );
}

#[test]
fn a_part_of_the_tree_is_decoded_as_it_stands() {
    #[derive(Debug, Deserialize)]
    struct Holder {
        part: Option<Node>,
        named: Named<Node>,
        one: OneOrMany<String>,
    }
    let text = "part: {a: [1, '2', ~]}\nnamed: {x: 1, b: {c: 2}}\none: word\n";
    let tree = read_text("s.yaml", text).expect("well-formed");
    let holder: Holder = decode(&tree).expect("legal");
    assert_eq!(holder.part.as_ref(), tree.field("part"), "with its places");
    let names: Vec<&str> = holder.named.0.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x", "b"], "in the order of the file");
    assert_eq!(Some(&holder.named.0[1].1), tree.field("named").and_then(|node| node.field("b")));
    assert_eq!(holder.one.0, ["word"]);
}

#[test]
fn long_names_of_fields_are_cut() {
    let (long, cut) = ("x".repeat(900), format!("{}...", "x".repeat(80)));
    let known = "known: `count`, `name`, `on`, `inner`";
    refused(&format!("{long}: 1"), &format!("s.yaml:1:1: {cut}: unknown field `{cut}`; {known}"));
}

#[test]
fn malformed_documents_are_refused() {
    refused("", "s.yaml: the file is empty; write at least one field");
    refused("# only a comment\n", "s.yaml: the file is empty; write at least one field");
    refused("- 1\n- 2\n", "s.yaml:1:1: expected `field: value` lines");
    refused("\0\u{1}", "s.yaml: not a text file: control character at byte 0");
    refused("count: 1\ncount: 2\n", "s.yaml:2:1: field `count` is given twice; keep one");
    refused(
        "count: 1\n---\ncount: 2\n",
        "s.yaml:3:1: a second document begins here; keep one document per file",
    );
    for text in
        ["count: [1, 2", "count: {", "count:\n\t- 1\n", "a: *nowhere", "a: &x [*x]", "\"open"]
    {
        let message = read(text).expect_err("must be refused");
        assert!(message.starts_with("s.yaml:"), "{text:?}: {message}");
        assert!(!message.contains('\n'), "{text:?}: {message}");
    }
}

#[test]
fn nesting_aliases_and_size_are_bounded() {
    let deep = format!("count: {}", "[".repeat(100_000));
    assert!(read(&deep).is_err());
    let block: Vec<String> = (0..5_000).map(|depth| " ".repeat(depth) + "a:\n").collect();
    assert!(read(&block.concat()).is_err());
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let list = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.extend([format!("a{level}: &a{level} [{list}]\n")]);
    }
    assert!(read(&bomb).is_err());
    let large = format!("name: {}", "x".repeat(LARGEST_FILE));
    refused(&large, "s.yaml: the file has 8388614 bytes; at most 8388608 are read");
}

#[test]
fn files_that_cannot_be_read_say_so() {
    let problem = read_file(Path::new("no-such-file.yaml")).expect_err("missing");
    assert!(!problem.io, "the name is at fault");
    assert_eq!(
        problem.to_string(),
        "no-such-file.yaml: cannot read: No such file or directory (os error 2); check the name"
    );
    let problem = read_file(Path::new(env!("CARGO_MANIFEST_DIR"))).expect_err("a directory");
    assert!(problem.to_string().ends_with("this is a directory; name a YAML file in it"));
}

/// What is in a comment is all one to a reader, and takes as long.
pub(crate) fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim_end());
    let kept = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    kept.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn mangled_text_never_panics() {
    let whole = without_comments(include_str!("../../../../scenarios/shared-prefix.yaml"));
    for cut in 0..whole.len() {
        if let Some(text) = whole.get(..cut) {
            let _ = read(text);
        }
        let mut bytes = whole.as_bytes().to_vec();
        bytes[cut] = b"{}[]:,&*!|>'\"%@`#-?\t\n~"[cut % 22];
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = read(&text);
        }
    }
}

/// The tree without its places.
fn placeless(node: &Node) -> Node {
    let kind = match &node.kind {
        Kind::List(items) => Kind::List(items.iter().map(placeless).collect()),
        Kind::Map(fields) => {
            let field = |(name, _, value): &(String, Place, Node)| {
                (name.clone(), Place::Unknown, placeless(value))
            };
            Kind::Map(fields.iter().map(field).collect())
        }
        other => other.clone(),
    };
    Node { place: Place::Unknown, kind }
}

#[test]
fn a_tree_written_as_json_is_read_back_as_itself() {
    let text = "
        numbers: [1, -2.50, 1e3, 18446744073709551615, 0.1]
        words: [plain, 'on', \"1\", 'quote \" and \\ slash', \"tab\\tand\\u007f\", schön, 'null', '']
        truths: [true, false]
        nothing: ~
        empty: {list: [], map: {}}
        'odd: key': {a: {b: {c: [[1], [2]]}}}
    ";
    let tree = read_text("a.yaml", text).expect("well-formed");
    let json = tree.to_json();
    assert!(json.starts_with(r#"{"numbers":[1,-2.50,1e3,18446744073709551615,0.1],"words":"#));
    assert!(!json.contains('\n'));
    serde_json::from_str::<serde_json::Value>(&json).expect("it is JSON");
    let again = read_text("a.json", &json).expect("well-formed");
    assert_eq!(placeless(&again), placeless(&tree));
    assert_eq!(again.to_json(), json);
    let odd = read_text("a.yaml", "a: [+5, .5, 5.]").expect("well-formed").to_json();
    assert_eq!(odd, r#"{"a":[5,0.5,5]}"#, "JSON has no other way to write them");
}
