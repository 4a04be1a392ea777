//! Policies of the Go program and of its strategy branches, and what they are here.

use super::Given;
use crate::failure::Failure;

/// What a name stands for.
enum Here {
    /// A policy that does the same.
    Same(&'static str),
    /// Nothing that does the same; this comes closest.
    Use(&'static str),
}

use Here::{Same, Use};

/// Priority by age alone.
const BY_AGE: &str = "age[critical=1,standard=1,sheddable=1,batch=1,background=1]";

/// Names by the flag that gives them.
const NAMES: &[(&str, &str, Here)] = &[
    ("priority-policy", "slo-based", Same(BY_AGE)),
    ("priority-policy", "inverted-slo", Same(BY_AGE)),
    ("priority-policy", "static-class-weight", Same("slo-class")),
    ("priority-policy", "deadline-aware", Use("`deadline`")),
    ("priority-policy", "load-adaptive", Use("`slo-tiered`")),
    ("routing-policy", "prefix-affinity", Use("`weighted` with the scorer `prefix-affinity`")),
    ("routing-policy", "adaptive-weighted", Use("`weighted`, `kv-adaptive` or `epoch-adaptive`")),
    ("admission-policy", "predictive-slo", Use("`ttft-budget`")),
    ("admission-policy", "tier-shed", Use("`slo-gated`")),
    ("admission-policy", "gaie-legacy", Use("`probabilistic`")),
    ("latency-model", "crossmodel", Use("`roofline`")),
    ("latency-model", "trained-roofline", Use("`roofline`, or a profile of `blis calibrate`")),
    ("latency-model", "trained-physics", Use("`roofline`, or a profile of `blis calibrate`")),
];

/// Replaces the names of policies, and the flags that turn on parts of strategies.
pub(super) fn translate(given: &mut Given) -> Result<(), Failure> {
    gate(given)?;
    victims(given)?;
    let inverted = given.get("priority-policy").is_some_and(|name| name == "inverted-slo");
    for (flag, name, here) in NAMES {
        if given.get(flag).is_some_and(|found| found == name) {
            match here {
                Same(ours) => given.insert(flag, (*ours).to_owned()),
                Use(instead) => {
                    let message = format!("--{flag}: there is no `{name}`; use {instead}");
                    return Err(Failure::Input(message));
                }
            };
        }
    }
    if inverted {
        invert(given);
    }
    if given.remove("precise-kv-routing").is_some() {
        let usual = "prefix-affinity:3,queue-depth:2,kv-utilization:2".to_owned();
        let scorers = given.entry("routing-scorers").or_insert(usual);
        *scorers = scorers.replace("prefix-affinity", "precise-prefix");
    }
    Ok(())
}

/// `slo-gated` compares the sum of all queues with what is otherwise the capacity of the bucket.
fn gate(given: &mut Given) -> Result<(), Failure> {
    let gated = given.get("admission-policy").is_some_and(|name| name == "slo-gated");
    if !gated || !given.contains_key("token-bucket-capacity") {
        return Ok(());
    }
    let number = |flag: &'static str, usual: f64| {
        given.get(flag).map_or(Ok(usual), |text| {
            let refused = |_| Failure::Input(format!("--{flag}: found `{text}`; legal: a number"));
            text.parse::<f64>().map_err(refused)
        })
    };
    let (sum, instances) = (number("token-bucket-capacity", 0.0)?, number("num-instances", 1.0)?);
    let policy = format!("slo-gated[threshold={},statistic=mean]", sum / instances);
    given.insert("admission-policy", policy);
    Ok(())
}

/// Who gives way when blocks run out, and for whom: by priority, if it is not by position.
fn victims(given: &mut Given) -> Result<(), Failure> {
    let margin = given.remove("priority-preemption-margin").unwrap_or_default();
    given.remove("max-priority-preemptions-per-step");
    if margin.parse().is_ok_and(|margin: f64| margin > 0.0) {
        return Err(Failure::Input(
            "--priority-preemption-margin: there is no preemption for the sake of priority; use \
             `--preempt lowest-priority`, for when blocks run out"
                .to_owned(),
        ));
    }
    let formation = given.remove("batch-formation").unwrap_or_default();
    let by_slo = match formation.as_str() {
        "" | "vllm" => given.remove("slo-aware-kv-eviction").is_some(),
        "slo-priority-preemption" => true,
        other => {
            return Err(Failure::Input(format!(
                "--batch-formation: there is no `{other}`; use `vllm` or `slo-priority-preemption`"
            )));
        }
    };
    for flag in ["slo-aware-kv-eviction", "tier-budget-critical-frac", "tier-budget-standard-frac"]
    {
        given.remove(flag);
    }
    if by_slo {
        given.insert("preempt", "lowest-priority".to_owned());
        let priority = given.entry("priority-policy").or_insert("constant".to_owned());
        if priority == "constant" {
            "static-class-weight".clone_into(priority);
        }
    }
    Ok(())
}

/// The lowest age first is the highest of its negative first.
fn invert(given: &mut Given) {
    if let Some(order) = given.get_mut("scheduler") {
        match order.as_str() {
            "priority-fcfs" => "reverse-priority".clone_into(order),
            "reverse-priority" => "priority-fcfs".clone_into(order),
            _ => {}
        }
    }
}
