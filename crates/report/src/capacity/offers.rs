//! `blis capacity --search`: which machines to rent, cheapest first.

use super::{conditions, measured, question, table, told};
use crate::model::{Block, Document, Table};
use crate::text::{counted, grouped};
use blis_core::math::count;
use blis_lab::capacity::{Answer, Findings, Found, Judged, Point, Search, Subject};
use blis_lab::verdict::number;
use serde_json::{Value, json};

/// Machines that meet the SLOs, and how many.
struct Offer<'a> {
    subject: &'a Subject,
    answer: &'a Answer,
    instances: f64,
    gpus: f64,
    dollars: f64,
}

/// What was found.
pub(super) fn document(search: &Search, findings: &Findings, mut data: Value) -> Document {
    let mut offers: Vec<Offer<'_>> =
        search.subjects.iter().zip(&findings.answers).filter_map(offer).collect();
    offers.sort_by(|a, b| a.dollars.total_cmp(&b.dollars).then(b.slack().total_cmp(&a.slack())));
    data["offers"] = offers.iter().map(Offer::json).collect();
    let mut found = Vec::new();
    match offers.first() {
        None => found.push(nothing(findings)),
        Some(cheapest) => {
            found.push(Block::prose(cheapest.sentence()));
            found.push(listed(search, &offers).into());
            found.push(Block::List(cheapest.neighbours(&offers)));
            found.extend(told(search, cheapest.answer));
            let caveat = cheapest.subject.plan.latency_caveat.clone();
            found.extend(caveat.map(|caveat| Block::warning(caveat, "")));
        }
    }
    let mut blocks = vec![Block::group("Cheapest", found)];
    if let Some(cheapest) = offers.first() {
        blocks.push(Block::group("Around it", vec![table(search, cheapest.answer).into()]));
    }
    blocks.push(Block::prose(conditions(search, findings)));
    Document::new(question(search), blocks, data)
}

fn offer<'a>((subject, answer): (&'a Subject, &'a Answer)) -> Option<Offer<'a>> {
    let instances = answer.safe?;
    let gpus = instances * f64::from(subject.plan.shared().gpus());
    let rent = subject.rent?;
    let dollars = gpus * rent.dollars;
    subject.has_gpus_for(instances).then_some(Offer { subject, answer, instances, gpus, dollars })
}

/// Why no machine is enough.
fn nothing(findings: &Findings) -> Block {
    if findings.answers.iter().any(|answer| answer.safe.is_some()) {
        let text = "every machine that meets the SLOs takes more GPUs than there are";
        return Block::warning(text, "allow more GPUs, relax the SLOs, or name other GPUs");
    }
    let why = findings.answers.iter().find_map(|answer| match &answer.found {
        Found::Never { why, .. } => Some(format!("{}: {why}", answer.name)),
        _ => None,
    });
    let why = why.map_or_else(String::new, |why| format!("; {why}"));
    let text = format!("no machine meets the SLOs with confidence{why}");
    Block::warning(text, "relax the SLOs, or name other GPUs")
}

/// The best offers; numbers of sequences that make no difference share a row.
fn listed(search: &Search, offers: &[Offer<'_>]) -> Table {
    const MOST: usize = 10;
    let header = ["machine", "sequences", "instances", "GPUs", "$/h"];
    let header = header.map(str::to_owned).into_iter();
    let header = header.chain(search.question.slo.iter().map(|slo| slo.text.clone()));
    let mut rows: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for offer in offers {
        let engine = &offer.subject.plan.engine;
        let sequences = grouped(engine.max_num_running_reqs.into());
        let tokens = grouped(engine.max_num_scheduled_tokens.into());
        let cells = [
            format!("{}, {}, {tokens} tokens", offer.gpu(), offer.shared()),
            number(offer.instances),
            number(offer.gpus),
            format!("{:.2}", offer.dollars),
        ];
        let cells: Vec<String> = cells.into_iter().chain(offer.values()).collect();
        match rows.iter_mut().find(|(known, _)| *known == cells) {
            Some((_, all)) => all.push(sequences),
            None => rows.push((cells, vec![sequences])),
        }
    }
    let whole = rows.into_iter().take(MOST).map(|(mut cells, sequences)| {
        cells.insert(1, sequences.join(" or "));
        cells
    });
    Table::new("", header.collect::<Vec<_>>(), whole)
}

impl Offer<'_> {
    fn gpu(&self) -> &str {
        self.subject.plan.hardware.as_deref().unwrap_or_default()
    }

    /// How its GPUs share the model, and its KV cache if that is not the model's own.
    fn shared(&self) -> String {
        let plan = &self.subject.plan;
        let cache = plan.kv_cache_dtype.map(|cache| format!(", {cache} KV cache"));
        format!("{}{}", plan.shared(), cache.unwrap_or_default())
    }

    /// What the SLOs bound, with so many instances.
    fn values(&self) -> Vec<String> {
        let values = |point: &Point| point.slo.iter().map(|it| measured(&it.effect)).collect();
        self.point().map_or_else(Vec::new, values)
    }

    /// What was found with so many instances.
    fn point(&self) -> Option<&Point> {
        self.answer.points.iter().rfind(|point| point.value >= self.instances)
    }

    /// How far it is from the bound of the SLO that it meets most narrowly, as a share of that
    /// bound.
    fn slack(&self) -> f64 {
        let share = |judged: &Judged| {
            let effect = &judged.effect;
            let bound = effect.at_most.or(effect.at_least)?;
            let below = (bound - effect.estimate?.mean) / bound.abs();
            Some(if effect.at_most.is_some() { below } else { -below })
        };
        let all = self.point().into_iter().flat_map(|point| &point.slo).filter_map(share);
        all.fold(f64::INFINITY, f64::min)
    }

    fn sentence(&self) -> String {
        let plan = &self.subject.plan;
        let (engine, shared) = (&plan.engine, self.shared());
        format!(
            "{} {} at ${:.2}/h serve {}: {} with {shared}, {} tokens and {} sequences a step.",
            number(self.gpus),
            self.gpu(),
            self.dollars,
            plan.model,
            counted(count(self.instances), "instance"),
            grouped(engine.max_num_scheduled_tokens.into()),
            grouped(engine.max_num_running_reqs.into()),
        )
    }

    /// What the same machine takes with other token budgets, and the best other machine.
    fn neighbours(&self, offers: &[Offer<'_>]) -> Vec<String> {
        let alike =
            |other: &Offer<'_>| other.gpu() == self.gpu() && other.shared() == self.shared();
        let engine = &self.subject.plan.engine;
        let budgets = offers.iter().filter(|other| {
            let own = &other.subject.plan.engine;
            alike(other)
                && own.max_num_scheduled_tokens != engine.max_num_scheduled_tokens
                && own.max_num_running_reqs == engine.max_num_running_reqs
        });
        let budgets = budgets.map(|other| {
            let tokens = other.subject.plan.engine.max_num_scheduled_tokens;
            let many = counted(count(other.instances), "instance");
            format!("With {} tokens a step it takes {many}.", grouped(tokens.into()))
        });
        let elsewhere = offers.iter().find(|other| !alike(other)).map(|other| {
            let (gpus, gpu) = (number(other.gpus), other.gpu());
            format!(
                "The next machine: {gpus} {gpu}, {}, ${:.2} an hour.",
                other.shared(),
                other.dollars
            )
        });
        budgets.chain(elsewhere).collect()
    }

    fn json(&self) -> Value {
        let plan = &self.subject.plan;
        json!({
            "model": plan.model,
            "gpu": plan.hardware,
            "tp": plan.parallel.map(|parallel| parallel.tp),
            "pp": plan.shared().pp,
            "dp": plan.shared().dp,
            "expert_parallel": plan.shared().expert,
            "kv_cache_dtype": plan.kv_cache_dtype,
            "max_num_scheduled_tokens": plan.engine.max_num_scheduled_tokens,
            "max_num_running_reqs": plan.engine.max_num_running_reqs,
            "instances": self.instances,
            "gpus": self.gpus,
            "dollars_per_hour": self.dollars,
            "slack": self.slack(),
        })
    }
}
