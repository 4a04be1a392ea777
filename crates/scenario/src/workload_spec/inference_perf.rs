//! `inference_perf:` in a specification: the load of the benchmark tool of that name, which is
//! users who share system prompts, in stages of given rates.
//!
//! As with the tool, all questions are asked in one shuffled order again and again, and a stage
//! begins when the one before is answered ([`Mix::in_turn`](blis_workload::Mix::in_turn)). Users
//! who chat ask at equal intervals that depend on the stage, so there a user is one client a
//! stage, as in the Go program, which has neither.

use crate::legal::{PerSecond, Seconds};
use crate::problems::Problems;
use crate::rate::{Level, RateSpec};
use crate::workload_spec::cohort::MOST_CLIENTS;
use crate::workload_spec::notes::{Note, Notes};
use crate::workload_spec::session::MOST_ROUNDS;
use crate::yaml::{Amount, Node, Whole};
use blis_core::math::{count, float};
use blis_core::{SloClass, Span, Time};
use blis_workload::{Activity, ActivityPart, Client, Context, Length, Pacing, Sessions, Think};
use schemars::JsonSchema;
use serde::Deserialize;

/// `inference_perf:` as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InferencePerfSpec {
    stages: Vec<StageSpec>,
    shared_prefix: SharedPrefixSpec,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StageSpec {
    rate: Amount<PerSecond>,
    duration: Amount<Seconds>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SharedPrefixSpec {
    num_unique_system_prompts: Whole<1, 1_048_576>,
    num_users_per_system_prompt: Whole<1, 1_048_576>,
    system_prompt_len: Whole<0, 1_073_741_824>,
    question_len: Whole<0, 1_073_741_824>,
    output_len: Whole<0, 1_073_741_824>,
    #[serde(default)]
    enable_multi_turn_chat: bool,
}

/// What the block stands for.
pub(super) struct Expanded {
    pub(super) clients: Vec<Client>,
    /// Requests per second over time; 0 after the last stage.
    pub(super) rate: RateSpec,
    /// How many requests are expected, if the stages alone say that.
    pub(super) requests: Option<f64>,
    /// Whether users ask in turn.
    pub(super) in_turn: bool,
}

const BLOCK: &str = "inference_perf";

impl InferencePerfSpec {
    /// The clients and their rate.
    pub(super) fn expand(&self, tree: &Node, notes: &mut Notes<'_>) -> Result<Expanded, Problems> {
        tree.whole(&[BLOCK])?;
        let refused =
            |field: &str, message: String| Err(tree.problem(format!("{BLOCK}.{field}"), message));
        if self.stages.is_empty() {
            return refused("stages", "there is no stage; add at least one".to_owned());
        }
        for (field, tokens) in [
            ("question_len", self.shared_prefix.question_len),
            ("output_len", self.shared_prefix.output_len),
        ] {
            if tokens.get() == 0 {
                notes.add(Note::NoTokens, &format!("{BLOCK}.shared_prefix.{field}"));
            }
        }
        let chat = self.shared_prefix.enable_multi_turn_chat;
        let users = self.users();
        let clients = if chat { users * self.stages.len() as u64 } else { users };
        if clients > MOST_CLIENTS as u64 {
            let legal = format!("at most {MOST_CLIENTS} clients in a workload");
            return refused("shared_prefix", format!("found {clients} clients; legal: {legal}"));
        }
        if !chat {
            let share = 1.0 / float(users);
            let clients = self.all_users().map(|(p, u)| self.user(p, u, share)).collect();
            let (rates, requests) = (self.stages.iter().map(StageSpec::pair), self.requests());
            let (rate, requests) = (until_the_end(rates), Some(requests));
            return Ok(Expanded { clients, rate, requests, in_turn: true });
        }
        let most = self.stages.iter().map(|stage| self.rounds(*stage)).fold(0.0, f64::max);
        if most > float(MOST_ROUNDS) {
            let message = format!(
                "found {most} rounds of a user in a stage; legal: at most {MOST_ROUNDS}; give more \
                 users or shorter stages"
            );
            return refused("shared_prefix.enable_multi_turn_chat", message);
        }
        Ok(self.chats())
    }

    fn users(&self) -> u64 {
        let SharedPrefixSpec { num_unique_system_prompts, num_users_per_system_prompt, .. } =
            self.shared_prefix;
        num_unique_system_prompts.get() * num_users_per_system_prompt.get()
    }

    /// All users, by system prompt and number.
    fn all_users(&self) -> impl Iterator<Item = (u64, u64)> {
        let prompts = self.shared_prefix.num_unique_system_prompts.get();
        let users = self.shared_prefix.num_users_per_system_prompt.get();
        (0..prompts).flat_map(move |prompt| (0..users).map(move |user| (prompt, user)))
    }

    fn requests(&self) -> f64 {
        self.stages.iter().map(|stage| stage.rate.get() * stage.duration.get()).sum()
    }

    fn user(&self, prompt: u64, user: u64, share: f64) -> Client {
        let tokens = |tokens: Whole<0, 1_073_741_824>| Length::Constant(tokens.get_u32().max(1));
        let prefix = self.shared_prefix.system_prompt_len.get_u32();
        let group = format!("prompt-{prompt}");
        let (name, tenant) = (format!("{group}-user-{user}"), group.clone());
        let (asked, answer) = (self.shared_prefix.question_len, self.shared_prefix.output_len);
        Client {
            class: SloClass::Batch,
            share,
            prefix_group: (prefix > 0).then_some(group),
            prefix_tokens: prefix,
            ..Client::plain(name, tenant, tokens(asked), tokens(answer))
        }
    }

    /// How many rounds each user has in a stage.
    fn rounds(&self, stage: StageSpec) -> f64 {
        (stage.rate.get() * stage.duration.get() / float(self.users())).ceil()
    }

    /// One session a user and stage, whose rounds come at the pace that gives the stage its rate.
    fn chats(&self) -> Expanded {
        let users = float(self.users());
        let mut clients = Vec::new();
        let mut from = Time::ZERO;
        for (number, stage) in self.stages.iter().enumerate() {
            let until = from + Span::from_secs_f64(stage.duration.get());
            let rounds = u32::try_from(count(self.rounds(*stage))).unwrap_or(u32::MAX);
            let sessions = Sessions {
                rounds: Length::Constant(rounds),
                think: Think::Constant(Span::from_secs_f64(users / stage.rate.get())),
                context: Context::Fresh,
                pacing: Pacing::Open,
                single: true,
            };
            for (prompt, user) in self.all_users() {
                let client = self.user(prompt, user, stage.rate.get() / users);
                clients.push(Client {
                    name: format!("stage-{number}-{}", client.name),
                    activity: Activity { parts: vec![ActivityPart::Window { from, until }] },
                    sessions: Some(sessions.clone()),
                    ..client
                });
            }
            from = until;
        }
        // Each client has its part of the sum of all rates while its stage lasts.
        let rate = self.stages.iter().map(|stage| stage.rate.get()).sum();
        let lasting = self.stages.iter().map(|stage| stage.duration.get()).sum();
        let rate = until_the_end([(rate, lasting)]);
        Expanded { clients, rate, requests: None, in_turn: false }
    }
}

impl StageSpec {
    fn pair(&self) -> (f64, f64) {
        (self.rate.get(), self.duration.get())
    }
}

/// Each rate for so many seconds, then nothing.
fn until_the_end(rates: impl IntoIterator<Item = (f64, f64)>) -> RateSpec {
    let steps = rates.into_iter().chain([(0.0, 0.0)]);
    RateSpec::Steps(steps.map(|(rate, lasting)| (Level::PerSecond(rate), lasting)).collect())
}
