//! Step times and KV blocks of the Go program's catalogue, as data in `coefficients.csv`, and what
//! it does if they are given by hand.

use super::Given;
use crate::failure::Failure;

/// Its fits: model, GPU, tensor parallelism, version of vLLM, whether it is the model's default,
/// three alphas and three betas in us, KV blocks. Those that are in our catalogue are left out.
const COEFFICIENTS: &str = include_str!("coefficients.csv");
/// What it takes if some coefficients are given by hand.
const BESIDE_COEFFICIENTS: [(&str, &str); 3] =
    [("alpha-coeffs", "0,0,0"), ("beta-coeffs", "0,0,0"), ("total-kv-blocks", "1000000")];

/// Chooses coefficients and KV blocks as it does, and says what it is not told.
pub(super) fn translate(given: &mut Given, told: &mut Vec<String>) -> Result<(), Failure> {
    if let Some(path) = given.remove("defaults-filepath") {
        return Err(Failure::Input(format!(
            "--defaults-filepath: `{path}` is not read, the catalogue is built in; give what \
             differs as `--alpha-coeffs`, `--beta-coeffs` and `--total-kv-blocks`"
        )));
    }
    if given.remove("hardware-config").is_some() {
        told.push("--hardware-config is not read; data sheets are in the catalogue".to_owned());
    }
    let version = given.remove("vllm-version");
    let folder = given.remove("model-config-folder");
    if given.get("latency-model").is_some_and(|model| model != "blackbox") {
        if let Some(folder) = folder {
            given.insert("model", format!("{folder}/config.json"));
        }
        return Ok(());
    }
    if given.contains_key("alpha-coeffs") || given.contains_key("beta-coeffs") {
        for (name, usual) in BESIDE_COEFFICIENTS {
            if !given.contains_key(name) {
                told.push(format!("--{name} is not given; {usual} is taken, as in the Go program"));
                given.insert(name, usual.to_owned());
            }
        }
        return Ok(());
    }
    if let Some(fit) = fit(given, version.as_deref()) {
        let [_, gpu, tp, _, _, a0, a1, a2, b0, b1, b2, blocks] = fit;
        let found = [
            ("hardware", gpu.to_owned()),
            ("tp", tp.to_owned()),
            ("alpha-coeffs", [a0, a1, a2].join(",")),
            ("beta-coeffs", [b0, b1, b2].join(",")),
            ("total-kv-blocks", blocks.to_owned()),
        ];
        for (name, value) in found {
            if name == "tp" && !given.contains_key(name) {
                told.push(format!("--tp is not given; {value} is taken"));
            }
            given.entry(name).or_insert(value);
        }
    } else if !given.contains_key("tp") && given["model"].to_lowercase().contains("llama-3.1-8b") {
        told.push("--tp is not given; 2 is taken where the Go program takes 1".to_owned());
    }
    Ok(())
}

/// The row of its catalogue for this machine: the model's default in what is left open.
fn fit(given: &Given, version: Option<&str>) -> Option<[&'static str; 12]> {
    let model = given.get("model")?.to_lowercase();
    let rows = || rows().filter(|row| row[0] == model);
    let default = rows().find(|row| row[4] == "true");
    let tp = given.get("tp").map(String::as_str).or(default.map(|row| row[2]))?;
    let gpu = given.get("hardware").map(String::as_str).or(default.map(|row| row[1]));
    let agrees = |wanted: Option<&str>, found| wanted.is_none_or(|wanted| wanted == found);
    rows().find(|row| row[2] == tp && agrees(gpu, row[1]) && agrees(version, row[3]))
}

fn rows() -> impl Iterator<Item = [&'static str; 12]> {
    let fields = |row: &'static str| row.split(',').collect::<Vec<_>>().try_into().ok();
    COEFFICIENTS.lines().skip(1).filter_map(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_catalogue_is_a_legal_machine() {
        assert_eq!(rows().count() + 1, COEFFICIENTS.lines().count());
        for row in rows() {
            assert!(row[0].chars().all(|letter| !letter.is_uppercase()), "{row:?}");
            assert!(row[5..11].iter().all(|number| number.parse::<f64>().is_ok()), "{row:?}");
            assert!(row[2].parse::<u32>().is_ok() && row[11].parse::<u32>().is_ok(), "{row:?}");
        }
    }
}
