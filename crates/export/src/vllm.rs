//! The engine of a scenario as a command line of vLLM's server.

pub mod schema;

use super::spelled::Spelled;
use super::write::{Yaml, comment, shell_word};
use super::{Exported, Note, comments, coverage};
use blis_core::SloClass;
use blis_core::math::{count, float};
use blis_latency::{Catalogue, Memory, ModelShape, Parallel, kv_blocks};
use blis_scenario::scenario::Plan;
use blis_sim::{Preemption, Prefill, Reload};
use std::fmt;

/// A flag and its value, if it has one.
type Flag = (&'static str, Option<String>);

/// The command line of `plan`, which is called `title` in its first line, with the flags that its
/// policies need.
///
/// # Panics
/// If the text is not what vLLM reads; a test exports every policy.
pub fn export(plan: &Plan, title: &str) -> Exported {
    let mut made = Made { plan, flags: Vec::new(), notes: Vec::new() };
    made.machine();
    made.batch();
    made.order();
    made.memory();
    made.tier();
    made.events();
    let mut out =
        comment(&format!("vLLM's server for {title}, written by `blis export vllm`."), "");
    let count = plan.instances;
    let which = match count {
        1 => "For vLLM 0.28 or later.".to_owned(),
        count => format!("One of {count} equal servers, of vLLM 0.28 or later."),
    };
    let many = format!(
        "{which} Put llm-d's endpoint picker in front, with what `blis export llm-d` writes."
    );
    out.push_str(&comment(&many, ""));
    out.push_str("#\n");
    out.push_str(&comments(&made.notes));
    out.push_str(&made.command());
    let problems = schema::problems(&out);
    assert!(
        problems.is_empty(),
        "the export is not what vLLM reads: {}\n{out}",
        problems.join("; ")
    );
    Exported::new(out, &made.notes)
}

struct Made<'a> {
    plan: &'a Plan,
    flags: Vec<Flag>,
    notes: Vec<Note>,
}

impl Made<'_> {
    fn flag(&mut self, name: &'static str, value: &dyn fmt::Display) {
        self.flags.push((name, Some(value.to_string())));
    }

    fn switch(&mut self, name: &'static str) {
        self.flags.push((name, None));
    }

    fn policy(&mut self, policy: &Spelled, more: Vec<String>) {
        let fit = coverage::fit(policy.kind, &policy.name);
        self.notes.push(Note { part: policy.part(), policy: true, fit, more });
    }

    /// Says what the table has about a part that is no policy.
    fn say(&mut self, part: &str, key: &str) {
        self.notes.push(Note::new(part, key, Vec::new()));
    }

    fn machine(&mut self) {
        if let Some(Parallel { tp, pp, dp, expert }) = self.plan.parallel {
            self.flag("--tensor-parallel-size", &tp);
            if pp > 1 {
                self.flag("--pipeline-parallel-size", &pp);
            }
            if dp > 1 {
                self.flag("--data-parallel-size", &dp);
            }
            if expert {
                self.switch("--enable-expert-parallel");
            }
        }
        if let Some(gpu) = &self.plan.hardware {
            let more = vec![format!("Simulated: {gpu}")];
            self.notes.push(Note::new("hardware", "hardware", more));
        }
    }

    fn batch(&mut self) {
        let engine = self.plan.engine;
        // They are those of each rank.
        let ranks = self.plan.shared().dp;
        let tokens = engine.max_num_scheduled_tokens / ranks;
        self.flag("--max-num-seqs", &(engine.max_num_running_reqs / ranks));
        self.flag("--max-num-batched-tokens", &tokens);
        if engine.prefill == Prefill::Mixed {
            self.switch("--enable-chunked-prefill");
        } else {
            self.say("prompts in steps of their own", "prompts in steps of their own");
        }
        let threshold = engine.long_prefill_token_threshold;
        if threshold > 0 && (ranks == 1 || threshold != tokens) {
            self.flag("--long-prefill-token-threshold", &threshold);
        }
        self.switch(if engine.reserve_full_prompt {
            "--scheduler-reserve-full-isl"
        } else {
            "--no-scheduler-reserve-full-isl"
        });
        self.switch(if engine.async_scheduling {
            "--async-scheduling"
        } else {
            "--no-async-scheduling"
        });
        if let Some(speculation) = engine.speculation {
            let more = vec![format!("Simulated: drafts of {} tokens", speculation.tokens)];
            self.notes.push(Note::new("drafts", "drafts", more));
        }
        if engine.watermark_blocks > 0 {
            let share = f64::from(engine.watermark_blocks) / f64::from(engine.total_kv_blocks);
            let share = float(count(share * 1e6)) / 1e6;
            self.flag("--watermark", &share);
        }
        if engine.max_num_running_reqs > engine.max_num_scheduled_tokens {
            self.say("token budget", "token budget");
        }
    }

    /// Who is scheduled first, and who is preempted.
    fn order(&mut self) {
        let Plan { policies, oracles, .. } = self.plan;
        let oracle = oracles.scheduler.then(|| self.plan.scheduler());
        let order = Spelled::or_oracle("order", &policies.order, oracle);
        let priority = Spelled::of("priority", &policies.priority);
        let preempt = Spelled::of("preempt", &policies.preempt);
        let by_priority = matches!(order.name.as_str(), "priority-fcfs" | "sjf" | "edf")
            || preempt.name == "lowest-priority";
        let scheduling = if by_priority { "priority" } else { "fcfs" };
        self.flag("--scheduling-policy", &scheduling);
        self.policy(&order, Vec::new());
        let numbers = bases(&priority).map(|all| format!("Send {all}"));
        self.policy(&priority, numbers.into_iter().collect());
        if by_priority && preempt.name == "tail" {
            self.say(&preempt.part(), "tail by priority");
        } else {
            self.policy(&preempt, Vec::new());
        }
    }

    fn memory(&mut self) {
        let engine = self.plan.engine;
        self.switch("--enable-prefix-caching");
        self.flag("--block-size", &engine.block_size);
        if let Some(dtype) = self.plan.kv_cache_dtype {
            self.flag("--kv-cache-dtype", &dtype);
        }
        let ranks = self.plan.shared().dp;
        match self.room().filter(|&room| engine.total_kv_blocks > room) {
            None => {
                self.flag("--num-gpu-blocks-override", &(engine.total_kv_blocks / ranks));
                self.say("KV blocks", "KV blocks");
            }
            Some(room) => {
                let simulated = engine.total_kv_blocks;
                let more = vec![format!("Simulated: {simulated} blocks; room for about {room}")];
                self.notes.push(Note::new("KV blocks", "KV blocks beyond the memory", more));
            }
        }
        let oracle = self.plan.oracles.evict.then(|| self.plan.evict());
        let evict = Spelled::or_oracle("evict", &self.plan.policies.evict, oracle);
        self.policy(&evict, Vec::new());
        if engine.preemption == Preemption::Swap {
            self.say("preemption by swapping", "preemption by swapping");
        }
    }

    /// How many KV blocks the whole memory of the GPUs holds beside the model, if both are known.
    fn room(&self) -> Option<u32> {
        let Plan { hardware, parallel, engine, .. } = self.plan;
        let gpu = Catalogue::shipped().gpu(hardware.as_deref()?)?;
        let memory =
            Memory { usable_gib: gpu.usable_gib, utilisation: 1.0, parallel: (*parallel)? };
        // A model that leaves no room has none.
        Some(kv_blocks(&self.shape()?, memory, engine.block_size).unwrap_or(0))
    }

    /// The model with the simulated KV cache, if it is in the catalogue.
    fn shape(&self) -> Option<ModelShape> {
        let mut shape = Catalogue::shipped().model(&self.plan.model)?.shape();
        if let Some(dtype) = self.plan.kv_cache_dtype {
            shape.formats.kv_fp8 = dtype == "fp8";
        }
        Some(shape)
    }

    fn tier(&mut self) {
        let Some(tier) = self.plan.engine.tier else { return };
        self.policy(&Spelled::of("offload", &self.plan.policies.offload), Vec::new());
        let size = self
            .shape()
            .map(|shape| shape.kv_bytes_per_token() * f64::from(self.plan.engine.block_size));
        let mut extra = vec![("block_size", Yaml::Number(f64::from(self.plan.engine.block_size)))];
        if let Some(block) = size {
            let bytes = float(count(block * f64::from(tier.blocks)));
            extra.push(("cpu_bytes_to_use", Yaml::Number(bytes)));
            self.say("CPU tier", "CPU tier");
        } else {
            extra.push(("cpu_bytes_to_use", Yaml::Number(1e9)));
            self.say("CPU tier", "CPU tier of a model that is not known");
        }
        let config = Yaml::Map(vec![
            ("kv_connector", Yaml::text("OffloadingConnector")),
            ("kv_role", Yaml::text("kv_both")),
            ("kv_connector_extra_config", Yaml::Map(extra)),
        ]);
        self.flag("--kv-transfer-config", &config.flow());
        let reload = match tier.reload {
            Reload::Async => "reload `async`",
            Reload::Blocking => "reload `blocking`",
        };
        self.say(reload, reload);
    }

    fn events(&mut self) {
        if !self.plan.hears_events {
            return;
        }
        let config = Yaml::Map(vec![
            ("enable_kv_cache_events", Yaml::Flag(true)),
            ("publisher", Yaml::text("zmq")),
            ("endpoint", Yaml::text("tcp://*:5557")),
            ("topic", Yaml::Text(format!("kv@$(POD_IP):8000@{}", self.plan.model))),
        ]);
        self.flag("--kv-events-config", &config.flow());
        self.say("KV events", "KV events");
    }

    fn command(&self) -> String {
        let mut lines = vec![format!("vllm serve {}", shell_word(&self.plan.model))];
        for (name, value) in &self.flags {
            lines.push(match value {
                None => format!("  {name}"),
                Some(value) => format!("  {name} {}", shell_word(value)),
            });
        }
        lines.join(" \\\n") + "\n"
    }
}

/// The number that requests of each class are sent with: vLLM schedules the lowest first.
fn bases(priority: &Spelled) -> Option<String> {
    let prefix = match priority.name.as_str() {
        "slo-class" => "",
        "slo-tiered" => "base-",
        _ => return None,
    };
    let class = |class: SloClass| {
        let value = priority.number(&format!("{prefix}{}", class.name())).unwrap_or_default();
        // vLLM reads whole numbers.
        let number = format!("{:.0}", -value);
        format!("{} {}", class.name(), if number == "-0" { "0" } else { &number })
    };
    let all: Vec<String> = SloClass::ALL.into_iter().map(class).collect();
    Some(format!("`priority`: {}", all.join(", ")))
}

#[cfg(test)]
mod tests;
