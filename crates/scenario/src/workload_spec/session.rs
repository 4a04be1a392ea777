//! Conversations: rounds, think time, what a round knows of those before, and what it waits for.
//!
//! `max_rounds`, `think_time_us`, `context_growth` and `single_session` are the Go program's. The
//! other fields are ours: a distribution of `rounds`, exponential think times, and rounds that wait
//! for the answer to the one before.

use crate::legal::LONGEST_US;
use crate::problems::{Problems, Together};
use crate::rate::ThinkWord;
use crate::workload_spec::client::Reader;
use crate::workload_spec::group::Group;
use crate::workload_spec::length::LengthSpec;
use crate::workload_spec::notes::{Note, Notes};
use crate::yaml::Whole;
use blis_core::Span;
use blis_workload::{Context, Length, OnRejection, Pacing, Sessions};
use schemars::JsonSchema;
use serde::Deserialize;

/// Most rounds of a session; `blis_workload::session::MAX_ROUNDS` as the schema needs it.
pub(super) const MOST_ROUNDS: u64 = blis_workload::session::MAX_ROUNDS as u64;

/// `reasoning:` as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReasoningSpec {
    reason_ratio_distribution: Group<LengthSpec>,
    multi_turn: Group<MultiTurnSpec>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct MultiTurnSpec {
    max_rounds: Option<Whole<1, MOST_ROUNDS>>,
    rounds: Group<LengthSpec>,
    think_time_us: Option<Whole<0, LONGEST_US>>,
    think_time: Option<ThinkWord>,
    context_growth: Option<GrowthWord>,
    single_session: bool,
    closed_loop: bool,
    on_rejection: Option<RejectionWord>,
    retry_after_us: Option<Whole<0, LONGEST_US>>,
    retries: Option<Whole<1, 1_000_000>>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum GrowthWord {
    Accumulate,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RejectionWord {
    End,
    Retry,
}

const MULTI_TURN: &str = "reasoning.multi_turn";

fn in_turns(field: &str) -> String {
    format!("{MULTI_TURN}.{field}")
}

impl Reader<'_> {
    pub(super) fn sessions(
        &self,
        spec: &Group<ReasoningSpec>,
        notes: &mut Notes<'_>,
    ) -> Result<Option<Sessions>, Problems> {
        let Some(reasoning) = spec.given() else { return Ok(None) };
        let ratio = reasoning.reason_ratio_distribution.given().map(|ratio| {
            const FIELD: &str = "reasoning.reason_ratio_distribution";
            notes.add(Note::ReasonRatio, &self.at(FIELD));
            self.count(FIELD, ratio)
        });
        let turns = reasoning.multi_turn.given().map(|turns| self.turns(turns));
        Ok((ratio.transpose(), turns.transpose()).together()?.1)
    }

    fn turns(&self, turns: &MultiTurnSpec) -> Result<Sessions, Problems> {
        let (rounds, pacing) = (self.rounds(turns), self.pacing(turns)).together()?;
        let think = Span::from_micros(turns.think_time_us.map_or(0, Whole::get));
        Ok(Sessions {
            rounds,
            think: ThinkWord::of(turns.think_time, think),
            context: match turns.context_growth {
                None | Some(GrowthWord::None) => Context::Fresh,
                Some(GrowthWord::Accumulate) => Context::Accumulate,
            },
            pacing,
            single: turns.single_session,
        })
    }

    fn rounds(&self, turns: &MultiTurnSpec) -> Result<Length, Problems> {
        self.whole(&["max_rounds", "rounds"].map(in_turns).each_ref().map(String::as_str))?;
        match (turns.max_rounds, turns.rounds.given()) {
            (Some(rounds), None) => Ok(Length::Constant(rounds.get_u32())),
            (None, Some(rounds)) => self.length(&in_turns("rounds"), rounds),
            (Some(_), Some(_)) => {
                let message = "`rounds` and `max_rounds` are given together; keep one of them";
                Err(self.problem(&in_turns("rounds"), message))
            }
            (None, None) => {
                let message = "the number of rounds is missing; write `max_rounds`, e.g. `4`, or \
                    a distribution as `rounds`";
                Err(self.problem(MULTI_TURN, message))
            }
        }
    }

    fn pacing(&self, turns: &MultiTurnSpec) -> Result<Pacing, Problems> {
        let retries = turns.on_rejection == Some(RejectionWord::Retry);
        let read = ["closed_loop", "on_rejection", "retry_after_us", "retries"].map(in_turns);
        self.whole(&read.each_ref().map(String::as_str))?;
        let refused = |field: &str, message: &str| Err(self.problem(&in_turns(field), message));
        if !turns.closed_loop && turns.on_rejection.is_some() {
            return refused(
                "on_rejection",
                "only closed loops handle rejections; add `closed_loop: true`, or remove it",
            );
        }
        for (field, given) in [
            ("retry_after_us", turns.retry_after_us.is_some()),
            ("retries", turns.retries.is_some()),
        ] {
            if given && !retries {
                let message = "only `on_rejection: retry` reads it; add that, or remove it";
                return refused(field, message);
            }
        }
        if !turns.closed_loop {
            return Ok(Pacing::Open);
        }
        Ok(Pacing::Closed(match (retries, turns.retry_after_us, turns.retries) {
            (false, ..) => OnRejection::End,
            (true, Some(after), Some(times)) => OnRejection::Retry {
                after: Span::from_micros(after.get()),
                at_most: times.get_u32(),
            },
            (true, None, _) => {
                let message = "`retry` needs `retry_after_us`, the client's wait";
                return refused("on_rejection", message);
            }
            (true, _, None) => {
                let message = "`retry` needs `retries`, the most attempts";
                return refused("on_rejection", message);
            }
        }))
    }
}
