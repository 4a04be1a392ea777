//! The flags of the Go program, as tables.

use super::Given;
use crate::failure::Failure;

/// What a flag of the Go program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A value, which we check if the flag is ours.
    Value,
    /// A whole number above 0.
    Above0,
    /// A whole number from 0 on.
    From0,
    /// Nothing.
    Nothing,
}

/// Its flags, and those of its strategy branches, by what they take.
const FLAGS: [(Takes, &str); 4] = [
    (
        Takes::Value,
        "admission-policy alpha-coeffs batch-formation beta-coeffs defaults-filepath \
         fitness-weights hardware hardware-config kv-offload-threshold kv-transfer-bandwidth \
         latency-model log max-priority-preemptions-per-step model model-config-folder \
         output-tokens output-tokens-max output-tokens-min output-tokens-stdev policy-config \
         priority-policy priority-preemption-margin prompt-tokens prompt-tokens-max \
         prompt-tokens-min prompt-tokens-stdev rate results-path routing-policy routing-scorers \
         scheduler seed tier-budget-critical-frac tier-budget-standard-frac token-bucket-capacity \
         token-bucket-refill-rate tp trace-level vllm-version workload workload-spec \
         workload-traces-filepath",
    ),
    (
        Takes::Above0,
        "block-size-in-tokens horizon max-num-running-reqs max-num-scheduled-tokens num-instances \
         total-kv-blocks",
    ),
    (
        Takes::From0,
        "admission-latency counterfactual-k kv-cpu-blocks kv-transfer-base-latency \
         long-prefill-token-threshold num-requests prefix-tokens routing-latency \
         snapshot-refresh-interval",
    ),
    (Takes::Nothing, "precise-kv-routing slo-aware-kv-eviction summarize-trace"),
];

/// Names that it gave its flags later.
const RENAMED: [(&str, &str); 3] = [
    ("max-num-batched-tokens", "max-num-scheduled-tokens"),
    ("max-num-seqs", "max-num-running-reqs"),
    ("metrics-path", "results-path"),
];

/// All its flags, by the names that they had first.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Takes)> {
    FLAGS.into_iter().flat_map(|(takes, names)| names.split(' ').map(move |name| (name, takes)))
}

/// Its flag of that name.
pub(super) fn flag(name: &str) -> Option<(&'static str, Takes)> {
    let renamed = RENAMED.iter().find(|(later, _)| *later == name);
    let name = renamed.map_or(name, |(_, first)| first);
    all().find(|(known, _)| *known == name)
}

const COEFFICIENTS: &str = "`--alpha-coeffs`, `--beta-coeffs` and `--total-kv-blocks`";
const BY_PRIORITY: &str = "`--preempt lowest-priority`, for when blocks run out";
const BY_CLASS: &str = "`--scheduler priority-fcfs` with `--priority-policy slo-class`";

/// Those that we do not have, and what does the same in calls of ours.
pub(super) const FOREIGN: &[(&str, &str)] = &[
    ("batch-formation", BY_PRIORITY),
    ("defaults-filepath", COEFFICIENTS),
    ("hardware-config", "`--hardware`, whose data sheet is in the catalogue"),
    ("log", "`--quiet`"),
    ("max-num-batched-tokens", "`--max-num-scheduled-tokens`"),
    ("max-num-seqs", "`--max-num-running-reqs`"),
    ("max-priority-preemptions-per-step", BY_PRIORITY),
    ("metrics-path", "`--results-path`"),
    ("model-config-folder", "`--model FOLDER/config.json`"),
    ("precise-kv-routing", "the scorer `precise-prefix`"),
    ("priority-preemption-margin", BY_PRIORITY),
    ("slo-aware-kv-eviction", BY_PRIORITY),
    ("tier-budget-critical-frac", BY_CLASS),
    ("tier-budget-standard-frac", BY_CLASS),
    ("vllm-version", COEFFICIENTS),
    ("workload-traces-filepath", "`--trace`"),
];

/// Refuses numbers as it does, in its words, which scripts look for.
pub(super) fn check(given: &Given) -> Result<(), Failure> {
    for (name, takes) in all() {
        let number = given.get(name).and_then(|text| text.parse::<i64>().ok());
        let (least, sign) = match takes {
            Takes::Above0 => (1, ">"),
            Takes::From0 => (0, ">="),
            Takes::Value | Takes::Nothing => continue,
        };
        if let Some(found) = number.filter(|&number| number < least) {
            return Err(Failure::Input(format!("--{name} must be {sign} 0, got {found}")));
        }
    }
    Ok(())
}

/// Leaves out settings of parts that are not used, which it ignores and we refuse, and gives a CPU
/// tier its link.
pub(super) fn settle(given: &mut Given) {
    let tiered = given.get("kv-cpu-blocks").is_some_and(|blocks| blocks != "0");
    let policy = |flag: &str| given.get(flag).map_or("", String::as_str);
    let scores =
        !["", "round-robin", "least-loaded", "always-busiest"].contains(&policy("routing-policy"));
    let bucket = policy("admission-policy").starts_with("token-bucket");
    let unread = [
        ("kv-offload-threshold", !tiered),
        ("kv-transfer-bandwidth", !tiered),
        ("kv-transfer-base-latency", !tiered),
        ("routing-scorers", !scores),
        ("token-bucket-capacity", !bucket),
        ("token-bucket-refill-rate", !bucket),
    ];
    for (name, _) in unread.into_iter().filter(|(_, is_unread)| *is_unread) {
        given.remove(name);
    }
    if tiered {
        given.entry("kv-transfer-bandwidth").or_insert("100".to_owned());
        given.entry("kv-transfer-base-latency").or_insert("0".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_flag_of_the_go_program_is_one_of_ours_or_has_its_replacement() {
        let command = crate::args::Cli::command();
        let run = command.find_subcommand("run").expect("a command");
        let ours = |name: &str| run.get_arguments().any(|arg| arg.get_long() == Some(name));
        for (name, _) in all().chain(RENAMED.map(|(later, _)| (later, Takes::Value))) {
            let foreign = FOREIGN.iter().any(|(foreign, _)| *foreign == name);
            assert_ne!(ours(name), foreign, "{name}");
        }
    }
}
