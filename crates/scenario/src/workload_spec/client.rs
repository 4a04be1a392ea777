//! One client as written, and what it means.
//!
//! A cohort is written like a client, with a `population` besides; `cohort.rs` makes its members.

use crate::legal::{Finite, LONGEST_US, NetworkAmount, SpanMillis};
use crate::problem::none_of;
use crate::problems::{Problems, Together, given};
use crate::workload_spec::activity::{DiurnalSpec, DrainSpec, LifecycleSpec, SpikeSpec};
use crate::workload_spec::arrival::ArrivalSpec;
use crate::workload_spec::group::Group;
use crate::workload_spec::length::LengthSpec;
use crate::workload_spec::media::MultimodalSpec;
use crate::workload_spec::notes::{Note, Notes};
use crate::workload_spec::session::ReasoningSpec;
use crate::workload_spec::words::message;
use crate::yaml::{Amount, Node, Whole};
use blis_core::{SloClass, Span};
use blis_latency::Catalogue;
use blis_workload::{Client, Mix, Rate, Retry, Sessions, SpecError};
use schemars::JsonSchema;
use serde::Deserialize;

/// One client as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientSpec {
    pub(super) id: String,
    tenant_id: String,
    slo_class: String,
    model: String,
    rate_fraction: Option<Amount<Finite>>,
    arrival: ArrivalSpec,
    pub(super) input_distribution: Group<LengthSpec>,
    output_distribution: Group<LengthSpec>,
    prefix_group: String,
    pub(super) prefix_length: Option<Whole<0, 1_073_741_824>>,
    deadline_ms: Option<Amount<SpanMillis>>,
    patience_ms: Option<Amount<SpanMillis>>,
    retry: Group<RetrySpec>,
    streaming: bool,
    network: Group<NetworkSpec>,
    pub(super) lifecycle: Group<LifecycleSpec>,
    pub(super) diurnal: Group<DiurnalSpec>,
    pub(super) spike: Group<SpikeSpec>,
    pub(super) drain: Group<DrainSpec>,
    pub(super) multimodal: Group<MultimodalSpec>,
    reasoning: Group<ReasoningSpec>,
    /// Legal for cohorts only; here so that a client with one can be told where it belongs.
    pub(super) population: Option<Whole<1, 100_000>>,
}

/// `retry:` as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RetrySpec {
    retries: Option<Whole<1, MOST_RETRIES>>,
    backoff_ms: Option<Whole<0, LONGEST_MS>>,
}

/// Most retries of a request; `blis_workload::retry::MAX_RETRIES` as the schema needs it.
const MOST_RETRIES: u64 = blis_workload::retry::MAX_RETRIES as u64;
/// Ten years.
const LONGEST_MS: u64 = LONGEST_US / 1_000;

/// `network:` as written. It is checked, and has no effect.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct NetworkSpec {
    rtt_ms: Option<Amount<NetworkAmount>>,
    bandwidth_mbps: Option<Amount<NetworkAmount>>,
}

/// Which names of service classes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassNames {
    /// Today's.
    Current,
    /// Today's, and those of version 1 of the specification.
    Version1,
}

/// What the clients of a workload have in common.
#[derive(Clone, Copy, Debug)]
pub struct ClientContext<'a> {
    /// Which names of service classes are read.
    pub names: ClassNames,
    /// The model that the scenario simulates, by its name in the catalogue; `None`: that is not
    /// known, because the scenario is broken there.
    pub model: Option<&'a str>,
}

/// `text`, unless it is empty.
fn none_if_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Reads one client or cohort and knows where it stands.
pub(super) struct Reader<'a> {
    pub(super) tree: &'a Node,
    /// E.g. `workload.mix.clients[3]`.
    pub(super) path: String,
    pub(super) context: &'a ClientContext<'a>,
}

impl Reader<'_> {
    /// The path of a field of the client.
    pub(super) fn at(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }

    /// What is wrong with a field of the client.
    pub(super) fn problem(&self, field: &str, message: impl Into<String>) -> Problems {
        self.tree.problem(self.at(field), message)
    }

    /// Checks that nothing in these fields of the client is broken.
    pub(super) fn whole(&self, fields: &[&str]) -> Result<(), Problems> {
        fields.iter().try_for_each(|field| self.tree.whole(&[&self.at(field)]))
    }

    /// The client, but for the length of its prefix, which its group decides.
    pub(super) fn client(
        &self,
        spec: &ClientSpec,
        notes: &mut Notes<'_>,
    ) -> Result<Client, Problems> {
        if spec.streaming {
            notes.add(Note::Streaming, &self.at("streaming"));
        }
        if spec.network.given().is_some() {
            notes.add(Note::Network, &self.at("network"));
        }
        let output = spec.output_distribution.given().cloned().unwrap_or_default();
        let sessions = self.sessions(&spec.reasoning, notes);
        let retry = given(&sessions, |sessions| self.retry(spec, sessions.as_ref()));
        let (own, (), arrival, sessions, retry, input, output, activity) = (
            (self.share(spec), self.group(spec), self.class(&spec.slo_class)).together(),
            self.check_model(&spec.model),
            self.arrival(&spec.arrival),
            sessions,
            retry,
            self.input(spec, notes),
            self.length("output_distribution", &output),
            self.activity(spec, notes),
        )
            .together()?;
        let (share, prefix_group, class) = own;
        let span = |ms: Amount<SpanMillis>| Span::from_micros_f64(ms.get() * 1e3);
        self.check(Client {
            name: spec.id.clone(),
            tenant: none_if_empty(&spec.tenant_id).unwrap_or("default").to_owned(),
            class,
            share,
            arrival,
            prefix_group,
            prefix_tokens: 0,
            input,
            output,
            activity,
            sessions,
            deadline: spec.deadline_ms.map(span),
            patience: spec.patience_ms.map(span),
            retry,
        })
    }

    fn share(&self, spec: &ClientSpec) -> Result<f64, Problems> {
        spec.rate_fraction.map(|share| share.get()).ok_or_else(|| {
            self.problem("rate_fraction", "missing; write the client's share of the rate, e.g. `1`")
        })
    }

    /// The name of the prefix group.
    fn group(&self, spec: &ClientSpec) -> Result<Option<String>, Problems> {
        self.whole(&["prefix_group"])?;
        let group = none_if_empty(&spec.prefix_group);
        if group.is_none() && spec.prefix_length.is_some_and(|length| length.get() > 0) {
            let message = "there is no `prefix_group` whose tokens these are; name one";
            return Err(self.problem("prefix_length", message));
        }
        Ok(group.map(str::to_owned))
    }

    fn retry(
        &self,
        spec: &ClientSpec,
        sessions: Option<&Sessions>,
    ) -> Result<Option<Retry>, Problems> {
        let Some(retry) = spec.retry.given() else { return Ok(None) };
        if sessions.is_some_and(Sessions::is_closed_loop) {
            let message = "closed-loop sessions handle rejections themselves; write \
                `on_rejection: retry` there, or remove it";
            return Err(self.problem("retry", message));
        }
        let (Some(times), Some(backoff)) = (retry.retries, retry.backoff_ms) else {
            let message = "`retries` and `backoff_ms` are needed; write e.g. `{retries: 3, \
                           backoff_ms: 500}`";
            return Err(self.problem("retry", message));
        };
        let backoff = Span::from_micros(backoff.get() * 1_000);
        Ok(Some(Retry { at_most: times.get_u32(), backoff }))
    }

    /// Refuses what the workload crate refuses, at the place where it was written.
    fn check(&self, client: Client) -> Result<Client, Problems> {
        self.tree.whole(&[&self.path])?;
        let mut alone = Mix::new(vec![client], Rate::Steady(1.0), Some(1));
        let result = alone.validate();
        let client = alone.clients.remove(0);
        result.map_err(|error| self.own_words(&error))?;
        Ok(client)
    }

    fn own_words(&self, error: &SpecError) -> Problems {
        let field = error.field.trim_start_matches("clients[0].");
        let field = match field {
            "share" => "rate_fraction",
            "sessions.rounds" => "reasoning.multi_turn.rounds.params.value",
            "deadline" => "deadline_ms",
            "patience" => "patience_ms",
            other => other,
        };
        self.problem(field, message(error))
    }

    fn class(&self, name: &str) -> Result<SloClass, Problems> {
        match (name, self.context.names) {
            ("", _) | ("interactive", ClassNames::Version1) => return Ok(SloClass::Standard),
            ("realtime", ClassNames::Version1) => return Ok(SloClass::Critical),
            _ => {}
        }
        SloClass::from_name(name).ok_or_else(|| {
            let known = SloClass::ALL.map(SloClass::name);
            self.problem("slo_class", none_of(&known, name))
        })
    }

    /// One model is simulated, so a client can only ask for that one.
    fn check_model(&self, name: &str) -> Result<(), Problems> {
        let Some(ours) = self.context.model else { return Ok(()) };
        let catalogue = Catalogue::shipped();
        let canonical = catalogue.model(name).map_or(name, |model| model.name.as_str());
        if name.is_empty() || canonical == ours {
            return Ok(());
        }
        let legal = format!("`{ours}`, the scenario's, or none: only one model is simulated");
        Err(self.problem("model", format!("found `{name}`; legal: {legal}")))
    }
}
