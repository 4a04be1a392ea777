//! Random workloads of random scenarios.

use super::maker::Maker;
use super::world::{Scale, whole};
use serde_json::{Value, json};

pub(super) const CLASSES: [&str; 5] = ["critical", "standard", "sheddable", "batch", "background"];

impl Maker {
    pub(super) fn workload(&mut self, scale: Scale, rate: f64) -> Value {
        let Scale { requests, .. } = scale;
        let mut workload = if scale.rivals.is_none() && self.has("distribution", 0.25) {
            let lengths = |mean: f64| {
                let most = whole(3.0 * mean);
                json!({ "mean": mean, "stdev": mean * 0.4, "min": 1, "max": most })
            };
            let rate = if self.has("users", 0.15) { self.users(scale) } else { json!(rate) };
            let mut fields = json!({
                "rate": rate, "num_requests": requests,
                "prompt_tokens": lengths(scale.prompt), "output_tokens": lengths(scale.output),
            });
            if self.chance(0.5) {
                fields["prefix_tokens"] = json!(whole(scale.prompt));
            }
            json!({ "distribution": fields })
        } else if self.has("preset", 0.05) {
            let preset = self.one(blis_scenario::presets::ALL).name;
            json!({ "preset": preset, "rate": rate, "num_requests": requests.min(30) })
        } else {
            let many = if scale.rivals.is_some() { 4 } else { self.between(1, 3) };
            let clients: Vec<Value> = (0..many).map(|id| self.client(id, scale)).collect();
            let open = |client: &Value| client["reasoning"]["multi_turn"]["closed_loop"] == false;
            let rate = if !clients.iter().any(open) && self.has("users", 0.15) {
                self.users(scale)
            } else {
                self.rate(rate, scale)
            };
            json!({ "mix": {
                "aggregate_rate": rate, "num_requests": requests, "clients": clients,
            } })
        };
        if self.has("patience of all", 0.1) {
            workload["patience_ms"] = json!(scale.step_us * self.scaled(0.001, 0.1));
        }
        workload
    }

    fn users(&mut self, scale: Scale) -> Value {
        let seconds = |maker: &mut Maker| scale.step_us / 1e6 * maker.scaled(0.5, 80.0);
        let (think_time_s, ramp_s) = (seconds(self), seconds(self));
        let think_time = self.one(&["constant", "exponential"]);
        json!({ "users": {
            "count": self.between(1, 12), "ramp_s": ramp_s,
            "think_time_s": think_time_s, "think_time": think_time,
        } })
    }

    fn rate(&mut self, rate: f64, scale: Scale) -> Value {
        let over_s = (scale.lasts_us / 3e6).max(1e-6);
        if self.has("ramp", 0.08) {
            return json!({ "ramp": { "from": rate / 3.0, "to": rate * 3.0, "over_s": over_s } });
        }
        if self.has("steps of the rate", 0.08) {
            let step = |rate: f64| json!({ "rate": rate, "for_s": over_s });
            return json!({ "steps": [step(rate), step(rate * 4.0), step(rate / 2.0)] });
        }
        json!(rate)
    }

    fn client(&mut self, id: usize, scale: Scale) -> Value {
        let mut client = json!({
            "id": format!("c{id}"),
            "tenant_id": format!("t{}", self.between(0, 2)),
            "slo_class": self.one(&CLASSES),
            "rate_fraction": self.scaled(0.1, 1.0),
            "arrival": self.arrival(),
            "input_distribution": self.lengths(scale.prompt, scale),
            "output_distribution": self.lengths(scale.output, scale),
        });
        let span_ms = |maker: &mut Maker| json!(scale.step_us / 1e3 * maker.scaled(0.5, 80.0));
        if let Some(tokens) = scale.rivals {
            client["prefix_group"] = json!(format!("p{id}"));
            client["prefix_length"] = json!(tokens);
        } else if self.has("shared prefix", 0.6) {
            client["prefix_group"] = json!(self.one(&["a", "b"]));
            client["prefix_length"] = json!(whole(scale.prompt * self.scaled(0.2, 2.0)));
        }
        if self.has("deadline", 0.25) {
            client["deadline_ms"] = span_ms(self);
        }
        if self.has("patience", if scale.starved && scale.rivals.is_none() { 0.5 } else { 0.2 }) {
            client["patience_ms"] = span_ms(self);
        }
        let mut closed = false;
        if self.has("sessions", if scale.rivals.is_some() { 0.1 } else { 0.5 }) {
            closed = self.has("closed loop", 0.5);
            client["reasoning"] = json!({ "multi_turn": self.turns(closed, scale) });
        }
        if !closed && self.has("retry", 0.15) {
            let backoff = whole(scale.step_us / 1e3 * self.scaled(1.0, 20.0));
            client["retry"] = json!({ "retries": self.between(1, 3), "backoff_ms": backoff });
        }
        client
    }

    fn turns(&mut self, closed: bool, scale: Scale) -> Value {
        let mut turns = json!({ "think_time_us": whole(scale.step_us * self.scaled(0.1, 30.0)) });
        if self.chance(0.5) {
            turns["max_rounds"] = json!(self.between(2, 4));
        } else {
            turns["rounds"] = json!({ "type": "geometric", "params": { "mean": 2.5 } });
        }
        turns["think_time"] = json!(self.one(&["constant", "exponential"]));
        turns["context_growth"] = json!(self.one(&["accumulate", "accumulate", "none"]));
        turns["single_session"] = json!(self.chance(0.15));
        turns["closed_loop"] = json!(closed);
        if closed && self.has("retry of a round", 0.4) {
            turns["on_rejection"] = json!("retry");
            turns["retry_after_us"] = json!(whole(scale.step_us * self.scaled(0.5, 9.0)));
            turns["retries"] = json!(self.between(1, 3));
        }
        turns
    }

    fn arrival(&mut self) -> Value {
        let process = *self.one(&["poisson", "constant", "gamma", "weibull"]);
        self.tag(&format!("arrival {process}"));
        let mut arrival = json!({ "process": process });
        if ["gamma", "weibull"].contains(&process) {
            arrival["cv"] = json!(self.scaled(0.3, 4.0));
        }
        arrival
    }

    fn lengths(&mut self, mean: f64, scale: Scale) -> Value {
        let kinds = ["constant", "gaussian", "exponential", "geometric", "empirical"];
        let kind = *self.one(if scale.rivals.is_some() { &kinds[..1] } else { &kinds });
        let (most, mean) = (whole(3.0 * mean), mean.max(1.0));
        let params = match kind {
            "gaussian" => json!({ "mean": mean, "std_dev": mean / 2.0, "min": 1, "max": most }),
            "exponential" => json!({ "mean": mean, "min": 1, "max": most }),
            "geometric" => json!({ "mean": mean + 1.0 }),
            "empirical" => json!({ "1": 0.2, whole(mean).max(2).to_string(): 0.6 }),
            _ => json!({ "value": whole(mean) }),
        };
        json!({ "type": kind, "params": params })
    }
}
