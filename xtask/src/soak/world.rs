//! Random scenarios over every feature that a scenario file has.
//!
//! A world is small: a few instances and tens of requests, so that hundreds run in a second, and
//! short of memory, so that requests wait, are preempted and lose their blocks. Its tree is a
//! scenario file, but for `beside`, the fields of a second pool, which files cannot have.

use super::maker::Maker;
use super::workload::CLASSES;
use blis_core::math::float;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A token budget that no prompt exceeds.
const WHOLE_PROMPTS: u32 = 100_000;

/// The field of the second pool.
pub(super) const BESIDE: &str = "beside";

/// A random scenario.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) tree: Value,
    /// What it has, for the table of features.
    pub(super) tags: BTreeSet<String>,
}

/// How large things are.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) requests: usize,
    /// Typical length of a prompt and of an output in tokens, and of a step in us.
    pub(super) prompt: f64,
    pub(super) output: f64,
    pub(super) step_us: f64,
    /// How long the arrivals last, in us.
    pub(super) lasts_us: f64,
    /// Memory for hardly more than one request, and a CPU tier with a slow link.
    pub(super) starved: bool,
    /// The same, and prompts begin with one of a few prefixes of so many tokens, of which two fill
    /// the memory: whoever has them back from the CPU stands in the way of others.
    pub(super) rivals: Option<usize>,
}

impl World {
    /// World `number` of `seed`.
    pub(super) fn new(seed: u64, number: u64) -> World {
        let mut maker = Maker::new(seed, number);
        let (latency, step_us) = maker.latency();
        let starved = maker.has("hardly any memory", 0.3);
        let crowded = starved && maker.chance(0.5);
        let instances = match (starved, crowded) {
            (_, true) => 1,
            (true, _) => maker.between(1, 2),
            _ => maker.between(1, 4),
        };
        let (prompt, output, requests) = if starved {
            let (longest, fewest) = if crowded { (3.0, 12.0) } else { (8.0, 3.0) };
            (maker.scaled(1.0, longest), maker.scaled(2.0, 6.0), maker.scaled(fewest, 30.0))
        } else {
            (maker.scaled(3.0, 160.0), maker.scaled(1.0, 24.0), maker.scaled(4.0, 90.0))
        };
        let requests = whole(requests);
        let rate = float_of(instances) * maker.scaled(0.5, if starved { 90.0 } else { 20.0 }) * 1e6
            / (step_us * output);
        let lasts_us = float_of(requests) / rate * 1e6;
        let rivals = crowded.then(|| whole(prompt) + whole(output) + maker.between(0, 2));
        let scale = Scale { requests, prompt, output, step_us, lasts_us, starved, rivals };
        let mut tree = Map::new();
        tree.insert("seed".to_owned(), json!(maker.seed()));
        tree.insert("cluster".to_owned(), maker.cluster(instances));
        tree.extend(latency);
        tree.insert("workload".to_owned(), maker.workload(scale, rate));
        maker.engine(&mut tree, scale);
        maker.policies(&mut tree);
        maker.signals(&mut tree, scale);
        maker.bounds(&mut tree, scale);
        maker.beside(&mut tree, scale);
        World { tree: Value::Object(tree), tags: maker.tags }
    }
}

fn float_of(n: usize) -> f64 {
    float(n as u64)
}

/// `x` as a whole number, at least 1.
pub(super) fn whole(x: f64) -> usize {
    usize::try_from(blis_core::math::count(x.round())).unwrap_or(usize::MAX).max(1)
}

impl Maker {
    /// The latency model and its machine, and about how long its steps take.
    fn latency(&mut self) -> (Map<String, Value>, f64) {
        let kind = *self.one(&[
            "constant",
            "constant",
            "coefficients",
            "coefficients",
            "coefficients",
            "catalogue",
            "profile",
            "named profile",
            "roofline",
        ]);
        self.tag(&format!("latency {kind}"));
        let step_us = self.scaled(50.0, 5_000.0);
        let (fields, step_us) = match kind {
            "constant" => (json!({ "model": kind, "step_us": step_us }), step_us),
            "coefficients" => {
                let alpha =
                    [self.scaled(1.0, 300.0), self.scaled(0.01, 3.0), self.scaled(1.0, 90.0)];
                let beta = [step_us, self.scaled(0.1, 20.0), self.scaled(0.1, 50.0)];
                (json!({ "model": kind, "alpha_us": alpha, "beta_us": beta }), step_us)
            }
            "catalogue" => (json!({}), 7_000.0),
            "named profile" => {
                (json!({ "model": *self.one(&blis_scenario::profile::names()) }), 9_000.0)
            }
            model => (json!({ "model": model }), 9_000.0),
        };
        let mut tree = Map::new();
        tree.insert("latency".to_owned(), fields);
        if ["profile", "roofline"].contains(&kind) {
            tree.insert("model".to_owned(), json!("llama-3.1-8b"));
            tree.insert("hardware".to_owned(), json!("H200"));
            tree.insert("tp".to_owned(), json!(1));
        }
        (tree, step_us)
    }

    fn cluster(&mut self, instances: usize) -> Value {
        let mut cluster = json!({ "instances": instances });
        if instances > 1 {
            self.tag("several instances");
            if self.has("several gateways", 0.3) {
                cluster["gateways"] = json!(self.between(2, 4));
            }
        }
        cluster
    }

    fn engine(&mut self, tree: &mut Map<String, Value>, scale: Scale) {
        let sizes: &[u32] = if scale.starved { &[1, 1, 2] } else { &[1, 2, 4, 8, 16, 16] };
        let block_size = if scale.rivals.is_some() { 1 } else { *self.one(sizes) };
        let mut engine = json!({ "block_size": block_size });
        self.sizes(&mut engine, block_size, scale);
        if self.chance(0.2) {
            let presets = ["vllm-a100", "vllm-h100", "vllm-b200", "vllm-0.26"];
            engine["preset"] = json!(self.one(&presets));
        }
        // Rivals for memory are admitted although not all of their prompts fit.
        let (given, whole_prompt) = if scale.rivals.is_some() { (0.9, 0.1) } else { (0.4, 0.6) };
        for (field, share, so) in [
            ("reserve_full_prompt", given, whole_prompt),
            ("async_scheduling", 0.5, 0.6),
            ("cache_on_allocation", 0.3, 0.6),
        ] {
            if self.chance(share) {
                let on = self.chance(so);
                engine[field] = json!(on);
                self.tag(&format!("{field}: {on}"));
            }
        }
        if self.has("chunk limit", 0.2) {
            engine["long_prefill_token_threshold"] = json!(self.between(1, 64));
        }
        if self.has("prompts apart", 0.2) {
            engine["prefill"] = json!(self.one(&["separate", "whole"]));
        }
        if self.has("drafts", 0.25) {
            let tokens = self.between(1, 6);
            let rate = self.scaled(0.2, 1.0);
            engine["num_speculative_tokens"] = json!(tokens);
            engine["acceptance_rate"] = json!(rate);
            if self.chance(0.5) {
                let falling = (0..tokens).map(|position| rate / float_of(1 + position));
                engine["acceptance_rate"] = falling.collect();
                engine["draft_step_us"] = json!(scale.step_us * self.scaled(0.01, 0.5));
                engine["draft_token_us"] = json!(self.scaled(0.1, 20.0));
            }
        }
        if self.has("watermark", 0.15) {
            engine["watermark"] = json!(self.scaled(0.01, 0.4));
        }
        if self.has("CPU tier", if scale.starved { 0.9 } else { 0.4 }) {
            let blocks = engine["total_kv_blocks"].as_f64().unwrap_or(1.0);
            let tier = self.tier(&mut engine, blocks, scale);
            if scale.starved && self.has("patience of all", 0.4) {
                // About as long as a reload takes.
                let reload_us = tier["base_latency_us"].as_f64().unwrap_or_default();
                let patience = (reload_us + scale.step_us) / 1e3 * self.scaled(0.3, 5.0);
                tree["workload"]["patience_ms"] = json!(patience);
            }
            tree.insert("kv_tier".to_owned(), tier);
        }
        tree.insert("engine".to_owned(), engine);
    }

    /// Memory for one long request or for several, a batch and a token budget.
    fn sizes(&mut self, engine: &mut Value, block_size: u32, scale: Scale) {
        let longest = (2.0 * scale.prompt + 2.0 * scale.output) / f64::from(block_size) + 2.0;
        let most = if scale.starved { 1.3 } else { 4.0 };
        let mut blocks = whole(longest * self.scaled(0.6, most));
        if let Some(prefix) = scale.rivals {
            blocks = 2 * prefix + self.between(0, whole(scale.prompt));
        }
        engine["total_kv_blocks"] = json!(blocks);
        let least = if scale.starved { 3.0 } else { 1.0 };
        engine["max_num_running_reqs"] = json!(whole(self.scaled(least, 40.0)));
        engine["max_num_scheduled_tokens"] = json!(whole(self.scaled(4.0, 600.0)));
    }

    fn tier(&mut self, engine: &mut Value, blocks: f64, scale: Scale) -> Value {
        let rivals = scale.rivals.is_some();
        // Two policies copy whole prefixes, whatever else happens.
        let copies = |name: &str| !rivals || ["on-evict", "write-through"].contains(&name);
        let (offload, _) = self.policy("offload", &copies);
        let slowest = if scale.starved { 90.0 } else { 3.0 };
        let (fastest, smallest) = if rivals { (2.0, 2.0) } else { (0.01, 0.2) };
        let mut tier = json!({
            "cpu_blocks": whole(blocks * self.scaled(smallest, 9.0)),
            "offload": offload,
            "bandwidth_blocks_per_us": self.scaled(0.2, 100.0) / scale.step_us,
            "base_latency_us": scale.step_us * self.scaled(fastest, slowest),
        });
        if self.chance(0.4) {
            tier["thrashing_window_ms"] = json!(scale.step_us * self.scaled(0.001, 0.1));
        }
        if offload.starts_with("vllm") {
            engine["reserve_full_prompt"] = json!(true);
            if self.has("prompts in chunks, vLLM's connector", 0.5) {
                let block = engine["block_size"].as_u64().unwrap_or(1);
                if let Some(chunk) = engine["long_prefill_token_threshold"].as_u64() {
                    engine["long_prefill_token_threshold"] = json!(chunk.max(block));
                }
            } else {
                engine["max_num_scheduled_tokens"] = json!(WHOLE_PROMPTS);
                engine["long_prefill_token_threshold"] = json!(0);
            }
            return tier;
        }
        let reloads: &[&str] = if rivals { &["async"] } else { &["blocking", "async"] };
        let reload = *self.one(reloads);
        tier["reload"] = json!(reload);
        self.tag(&format!("reload {reload}"));
        if self.has("swap", 0.3) {
            engine["preemption"] = json!("swap");
        }
        tier
    }

    fn signals(&mut self, tree: &mut Map<String, Value>, scale: Scale) {
        let mut signals = Map::new();
        let policies =
            format!("{}{}", tree["routing"], tree.get("admission").unwrap_or(&json!("")));
        let events = ["=precise", "=events", "precise-prefix"].iter();
        let events = if events.clone().any(|word| policies.contains(word)) { 0.7 } else { 0.0 };
        for (field, tag, share) in [
            ("snapshot_refresh_interval_us", "stale signals", 0.35),
            ("load_refresh_interval_us", "stale loads", 0.1),
            ("kv_refresh_interval_us", "stale memory", 0.1),
            ("kv_event_delay_us", "late KV events", events),
            ("speculative_ttl_us", "speculation", events / 2.0),
        ] {
            if self.has(tag, share) {
                let span = scale.step_us * self.scaled(0.05, 30.0);
                signals.insert(field.to_owned(), json!(whole(span)));
            }
        }
        tree.insert("signals".to_owned(), Value::Object(signals));
        if self.has("gateway delays", 0.3) {
            let [admission, routing] =
                [0.0; 2].map(|_| whole(scale.step_us * self.scaled(0.05, 20.0)));
            let delays =
                json!({ "admission_latency_us": admission, "routing_latency_us": routing });
            tree.insert("gateway".to_owned(), delays);
        }
    }

    fn policies(&mut self, tree: &mut Map<String, Value>) {
        let mut set = |key: &str, value: String| tree.insert(key.to_owned(), json!(value));
        if self.chance(0.6) {
            set("admission", self.policy("admission", &|_| true).0);
        } else if self.has("flow control that holds", 0.2) {
            set("admission", self.flow_control());
        }
        let (order, reads) = self.policy("order", &|_| true);
        let (preempt, preempt_reads) = self.policy("preempt", &|_| true);
        // Nobody knows what clients will send that wait for answers.
        let closed = ["closed loop", "retry", "preset"].iter().any(|tag| self.tags.contains(*tag));
        let (evict, evict_reads) = self.policy("evict", &|name| name != "belady" || !closed);
        if reads.or(preempt_reads).or(evict_reads).priority {
            set("priority", self.policy("priority", &|_| true).0);
        }
        set("scheduler", order);
        set("preempt", preempt);
        set("evict", evict);
        tree.insert("routing".to_owned(), self.routing());
        if self.has("oracles", 0.06) {
            let oracles = ["routing", "scheduler", "evict"];
            tree.insert("oracles".to_owned(), json!([self.one(&oracles)]));
        }
    }

    /// Flow control with thresholds that small worlds reach.
    fn flow_control(&mut self) -> String {
        let detector = *self.one(&["utilization", "requests", "tokens", "hybrid"]);
        let (requests, tokens) = (self.between(1, 5), whole(self.scaled(1.0, 300.0)));
        let limits = match detector {
            "utilization" => format!("queue-threshold=1,kv-threshold={}", self.scaled(0.02, 1.0)),
            "requests" => format!("max-concurrency={requests}"),
            "tokens" => format!("max-tokens={tokens}"),
            _ => format!("max-concurrency={requests},max-tokens={tokens}"),
        };
        let fairness = *self.one(&["strict", "round-robin"]);
        let order = *self.one(&["fcfs", "slo-deadline"]);
        let (ttl, most) = (self.scaled(0.001, 60.0), self.between(1, 40));
        format!(
            "flow-control[detector={detector},{limits},standard={most},ttl={ttl},\
             fairness={fairness},order={order}]"
        )
    }

    fn routing(&mut self) -> Value {
        let weighted = self.chance(0.5);
        let (policy, _) = self.policy("routing", &|name| !weighted || name == "weighted");
        let mut routing = json!({ "policy": policy });
        if policy != "weighted" {
            return routing;
        }
        let mut scorers: Vec<String> = (0..self.between(1, 3))
            .map(|_| format!("{}:{}", self.policy("scorer", &|_| true).0, self.scaled(0.1, 5.0)))
            .collect();
        let name = |text: &String| text.split(['[', ':']).next().unwrap_or_default().to_owned();
        scorers.sort_by_key(name);
        scorers.dedup_by_key(|text| name(text));
        routing["scorers"] = json!(scorers.join(","));
        if self.chance(0.35) {
            routing["filters"] = json!(self.policy("filter", &|_| true).0);
        }
        if self.chance(0.5) {
            routing["picker"] = json!(self.policy("picker", &|_| true).0);
        }
        routing
    }

    /// A horizon, a warm-up, targets.
    fn bounds(&mut self, tree: &mut Map<String, Value>, scale: Scale) {
        if self.has("horizon", 0.15) {
            let micros = whole(scale.lasts_us * self.scaled(0.1, 3.0));
            tree.insert("horizon_us".to_owned(), json!(micros));
        }
        if self.has("warm-up", 0.25) {
            let seconds = scale.lasts_us * self.scaled(0.01, 0.9) / 1e6;
            tree.insert("warmup_s".to_owned(), json!(seconds));
        }
        if self.has("targets", 0.4) {
            let mut slo = Map::new();
            for class in CLASSES {
                let target = scale.step_us * self.scaled(0.5, 60.0) / 1e3;
                let key = *self.one(&["ttft_ms", "itl_ms", "e2e_ms"]);
                slo.insert(class.to_owned(), json!({ key: target }));
            }
            tree.insert("slo".to_owned(), Value::Object(slo));
        }
    }

    /// A second pool with another engine and another latency model.
    fn beside(&mut self, tree: &mut Map<String, Value>, scale: Scale) {
        let foresees = tree["evict"] == json!("belady") || tree.contains_key("oracles");
        if foresees || !self.has("two pools", 0.12) {
            return;
        }
        let block_size = tree["engine"]["block_size"].as_u64().and_then(|n| u32::try_from(n).ok());
        let mut engine = tree["engine"].clone();
        self.sizes(&mut engine, block_size.unwrap_or(1), scale);
        if tree["engine"]["max_num_scheduled_tokens"] == json!(WHOLE_PROMPTS) {
            engine["max_num_scheduled_tokens"] = json!(WHOLE_PROMPTS);
        }
        let step_us = scale.step_us * self.scaled(0.3, 3.0);
        let latency = json!({ "model": "constant", "step_us": step_us });
        let cluster = json!({ "instances": self.between(1, 2) });
        let pool = json!({ "cluster": cluster, "engine": engine, "latency": latency });
        tree.insert(BESIDE.to_owned(), pool);
    }
}
