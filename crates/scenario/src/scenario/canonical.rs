//! The canonical text of a plan and its hash: equal exactly if two scenarios mean the same.

mod spell;

pub(crate) use spell::{Spell, group};

use crate::scenario::plan::{Plan, Workload};
use blis_core::{SloClass, Span, Time};
use blis_metrics::SloTargets;
use blis_sim::{Engine, Freshness, Gateway, Prefill, Signals, Speculation};
use blis_workload::{Client, Mix, Retry, TraceEdit};
use std::fmt::Write;

/// Every field that has an effect on the numbers, one a line.
pub(crate) fn canonical(plan: &Plan) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        writeln!(text, "{name}: {value}").expect("writing to a string cannot fail");
    };
    line("latency", &plan.latency_name);
    line("cluster.instances", &plan.instances);
    if plan.gateways > 1 {
        line("cluster.gateways", &plan.gateways);
    }
    engine(plan, &mut line);
    let Gateway { admission_latency, routing_latency } = plan.gateway;
    line("gateway.admission_latency", &admission_latency);
    line("gateway.routing_latency", &routing_latency);
    let Signals { load, kv, event_delay, speculation } = plan.signals;
    match load {
        Freshness::Immediate => line("signals", &"immediate"),
        Freshness::Periodic { interval } => line("signals.interval", &interval),
    }
    if kv != load {
        line("signals.kv", &kv.spell());
    }
    if plan.hears_events {
        line("signals.event_delay", &event_delay);
        line("signals.speculation", &speculation.unwrap_or(Span::ZERO));
    }
    line("admission", &plan.policies.admission);
    line("routing", &plan.routing());
    line("scheduler", &plan.scheduler());
    line("priority", &plan.policies.priority);
    line("preempt", &plan.policies.preempt);
    line("evict", &plan.evict());
    line("horizon", &plan.horizon.spell());
    if plan.warmup > Time::ZERO {
        line("warmup", &plan.warmup);
    }
    targets(&plan.slo, &mut line);
    workload(&plan.workload, &mut line);
    if let Some(patience) = plan.patience {
        line("workload.patience", &patience);
    }
    text
}

fn engine(plan: &Plan, line: &mut dyn FnMut(&str, &dyn std::fmt::Display)) {
    // Destructured without `..`, so that a new field makes this line decide how it is spelled.
    let Engine {
        total_kv_blocks,
        block_size,
        max_num_running_reqs,
        max_num_scheduled_tokens,
        long_prefill_token_threshold,
        reserve_full_prompt,
        watermark_blocks,
        async_scheduling,
        stages,
        cache_on_allocation,
        prefill,
        preemption,
        tier,
        speculation,
    } = plan.engine;
    line("engine.total_kv_blocks", &total_kv_blocks);
    line("engine.block_size", &block_size);
    line("engine.max_num_running_reqs", &max_num_running_reqs);
    line("engine.max_num_scheduled_tokens", &max_num_scheduled_tokens);
    line("engine.long_prefill_token_threshold", &long_prefill_token_threshold);
    line("engine.reserve_full_prompt", &reserve_full_prompt);
    line("engine.watermark_blocks", &watermark_blocks);
    line("engine.async_scheduling", &async_scheduling);
    if stages > 1 {
        line("engine.stages", &stages);
    }
    line("engine.cache_on_allocation", &cache_on_allocation);
    if prefill != Prefill::Mixed {
        line("engine.prefill", &prefill.spell());
    }
    if let Some(Speculation { tokens, accepted, step, token }) = speculation {
        line("engine.num_speculative_tokens", &tokens);
        line("engine.acceptance_rate", &accepted[..tokens as usize].spell());
        line("engine.draft_step_us", &step.spell());
        line("engine.draft_token_us", &token.spell());
    }
    // Without a tier there is nothing to swap to.
    if let Some(tier) = tier {
        line("engine.preemption", &preemption.spell());
        line("kv_tier", &tier.spell());
        line("kv_tier.offload", &plan.policies.offload);
    }
}

fn targets(slo: &SloTargets, line: &mut dyn FnMut(&str, &dyn std::fmt::Display)) {
    for class in SloClass::ALL {
        let target = slo.of(class);
        for (name, value) in
            [("ttft_ms", target.ttft_ms), ("itl_ms", target.itl_ms), ("e2e_ms", target.e2e_ms)]
        {
            if let Some(value) = value {
                line(&format!("slo.{}.{name}", class.name()), &value);
            }
        }
    }
}

fn workload(workload: &Workload, line: &mut dyn FnMut(&str, &dyn std::fmt::Display)) {
    match workload {
        Workload::Trace { path: _, options, requests, closed_loop: _, content } => {
            line("workload.trace.requests", requests);
            if let Some(format) = options.format {
                line("workload.trace.format", &format.name());
            }
            if options.edit != TraceEdit::default() {
                line("workload.trace.edit", &options.edit.spell());
            }
            line("workload.trace.hash", &format_args!("{:016x}", content.hash()));
        }
        Workload::Mix(mix) => {
            let Mix { clients, rate, num_requests, horizon: _, seed: _, in_turn } = mix;
            line("workload.rate", &rate.spell());
            if *in_turn {
                line("workload.in_turn", in_turn);
            }
            line("workload.num_requests", &num_requests.spell());
            for (index, one) in clients.iter().enumerate() {
                line(&format!("workload.clients[{index}]"), &client(one));
            }
        }
    }
}

fn client(client: &Client) -> String {
    let Client {
        name: _,
        tenant,
        class,
        share,
        arrival,
        prefix_group,
        prefix_tokens,
        input,
        output,
        activity,
        sessions,
        deadline,
        patience,
        retry,
    } = client;
    let mut fields = vec![
        ("tenant", tenant.spell()),
        ("class", class.name().to_owned()),
        ("share", share.to_string()),
        ("arrival", arrival.spell()),
        ("prefix_group", prefix_group.spell()),
        ("prefix_tokens", prefix_tokens.spell()),
        ("input", input.spell()),
        ("output", output.spell()),
        ("activity", activity.spell()),
        ("sessions", sessions.spell()),
        ("deadline", deadline.spell()),
    ];
    if let Some(Retry { at_most, backoff }) = retry {
        fields.extend([("retry", at_most.spell()), ("backoff", backoff.spell())]);
    }
    fields.extend(patience.map(|patience| ("patience", patience.spell())));
    let fields: Vec<String> = fields.iter().map(|(name, text)| format!("{name}={text}")).collect();
    fields.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;

    fn text(scenario: &str) -> String {
        let draft = Draft::from_text("everything.yaml", scenario).expect("well-formed");
        let checked = draft.resolve().unwrap_or_else(|problems| panic!("{problems}"));
        canonical(checked.plan())
    }

    #[test]
    fn the_canonical_text_of_a_scenario_with_everything_set_is_the_committed_one() {
        let scenario = include_str!("canonical/everything.yaml");
        assert_eq!(text(scenario), include_str!("canonical/everything.txt"));
    }

    #[test]
    fn the_canonical_text_of_a_trace_has_how_it_is_read_and_what_is_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.jsonl");
        let request = "{\"arrival_us\":1,\"input_tokens\":5,\"output_tokens\":2}\n";
        std::fs::write(&path, request.repeat(3)).expect("it is written");
        let scenario = format!(
            "latency: {{model: roofline}}\nhardware: H100\ntp: 2\nworkload: {{trace: {}, \
             trace_format: native, speedup: 2, trace_start_s: 0, trace_end_s: 1.5, \
             trace_sample: 1, trace_limit: 2}}\n",
            path.display()
        );
        assert_eq!(text(&scenario), include_str!("canonical/trace.txt"));
    }
}
