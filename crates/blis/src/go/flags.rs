//! The flags of the Go program, as tables.

use super::Given;
use crate::failure::Failure;

/// What a flag of the Go program is here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Is {
    /// A flag with a value: ours of the same name, or one that is translated.
    Value,
    /// The same, with a whole number above 0.
    Above0,
    /// The same, with a whole number from 0 on.
    From0,
    /// A flag without a value.
    Switch,
    /// Ours by another name, which it had before.
    Called(&'static str),
}

use Is::{Above0, Called, From0, Switch, Value};

/// Its flags, and those of its strategy branches.
pub(super) const FLAGS: &[(&str, Is)] = &[
    ("admission-latency", From0),
    ("admission-policy", Value),
    ("alpha-coeffs", Value),
    ("batch-formation", Value),
    ("beta-coeffs", Value),
    ("block-size-in-tokens", Above0),
    ("counterfactual-k", From0),
    ("defaults-filepath", Value),
    ("fitness-weights", Value),
    ("hardware", Value),
    ("hardware-config", Value),
    ("horizon", Above0),
    ("kv-cpu-blocks", From0),
    ("kv-offload-threshold", Value),
    ("kv-transfer-bandwidth", Value),
    ("kv-transfer-base-latency", From0),
    ("latency-model", Value),
    ("log", Value),
    ("long-prefill-token-threshold", From0),
    ("max-num-batched-tokens", Called("max-num-scheduled-tokens")),
    ("max-num-running-reqs", Above0),
    ("max-num-scheduled-tokens", Above0),
    ("max-num-seqs", Called("max-num-running-reqs")),
    ("max-priority-preemptions-per-step", Value),
    ("metrics-path", Called("results-path")),
    ("model", Value),
    ("model-config-folder", Value),
    ("num-instances", Above0),
    ("num-requests", From0),
    ("output-tokens", Value),
    ("output-tokens-max", Value),
    ("output-tokens-min", Value),
    ("output-tokens-stdev", Value),
    ("policy-config", Value),
    ("precise-kv-routing", Switch),
    ("prefix-tokens", From0),
    ("priority-policy", Value),
    ("priority-preemption-margin", Value),
    ("prompt-tokens", Value),
    ("prompt-tokens-max", Value),
    ("prompt-tokens-min", Value),
    ("prompt-tokens-stdev", Value),
    ("rate", Value),
    ("results-path", Value),
    ("routing-latency", From0),
    ("routing-policy", Value),
    ("routing-scorers", Value),
    ("scheduler", Value),
    ("seed", Value),
    ("slo-aware-kv-eviction", Switch),
    ("snapshot-refresh-interval", From0),
    ("summarize-trace", Switch),
    ("tier-budget-critical-frac", Value),
    ("tier-budget-standard-frac", Value),
    ("token-bucket-capacity", Value),
    ("token-bucket-refill-rate", Value),
    ("total-kv-blocks", Above0),
    ("tp", Value),
    ("trace-level", Value),
    ("vllm-version", Value),
    ("workload", Value),
    ("workload-spec", Value),
    ("workload-traces-filepath", Value),
];

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
    for (name, is) in FLAGS {
        let number = given.get(name).and_then(|text| text.parse::<i64>().ok());
        let (least, sign) = match is {
            Above0 => (1, ">"),
            From0 => (0, ">="),
            _ => continue,
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
        for (name, is) in FLAGS {
            let foreign = FOREIGN.iter().any(|(foreign, _)| foreign == name);
            assert_ne!(ours(name), foreign, "{name}");
            if let Called(name) = is {
                assert!(ours(name), "{name}");
            }
        }
    }
}
