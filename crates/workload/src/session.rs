//! Conversations: clients that ask again.
//!
//! A session is a row of rounds. Where its context accumulates, a round's prompt is everything said
//! before, questions and answers, and the new question: one token stream that grows, so that a
//! cache which kept the earlier rounds finds all of them. Rounds come *open loop*, a think time
//! after the round before was **sent**, whatever the cluster does; or *closed loop*, a think time
//! after the round before was **answered**, as people and agents do.
//!
//! ```text
//!   round 0   [ prefix ][ session 0 .. i0 ]                        output: session i0 .. i0+o0
//!   round 1   [ prefix ][ session 0 .. i0+o0+i1 ]                  output: session i0+o0+i1 .. ...
//! ```

use crate::error::{SpecError, ensure, within_ten_years};
use crate::length::Length;
use blis_core::{Dice, Ending, Span};

/// How a client's sessions go.
#[derive(Clone, Debug, PartialEq)]
pub struct Sessions {
    /// How many rounds a session has (1..=[`MAX_ROUNDS`]; longer draws are cut).
    pub rounds: Length,
    /// From one round to the next.
    pub think: Think,
    /// What a round knows of those before.
    pub context: Context,
    /// What the next round waits for.
    pub pacing: Pacing,
    /// Whether the client has only one session, instead of one at every arrival.
    pub single: bool,
}

/// Most rounds of a session: its number has 10 bits of a stream id.
pub const MAX_ROUNDS: u32 = 1 << 10;

/// How long a client thinks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Think {
    /// Always this long.
    Constant(Span),
    /// Exponentially distributed with this mean.
    Exponential(Span),
}

/// What a round knows of those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Everything: the prompt is the whole conversation so far and the new question.
    Accumulate,
    /// Nothing: the prompt is the new question.
    Fresh,
}

/// What the next round waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// The think time after the round before was sent.
    Open,
    /// The think time after the round before was answered.
    Closed(OnRejection),
}

/// What a closed-loop client does when a round is rejected, or not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRejection {
    /// It gives up: the session ends.
    End,
    /// It sends the round again.
    Retry {
        /// After this long.
        after: Span,
        /// At most so many times a round; then it gives up.
        at_most: u32,
    },
}

impl Sessions {
    /// Checks every number; the error's field is relative to the sessions, e.g. `rounds.value`.
    ///
    /// # Errors
    /// If a number is out of its range.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.rounds.validate().map_err(|error| error.under("rounds"))?;
        if let Length::Constant(rounds) = self.rounds {
            let legal = || format!("a whole number from 1 to {MAX_ROUNDS}");
            ensure(rounds <= MAX_ROUNDS, "rounds", rounds, legal)?;
        }
        let (Think::Constant(think) | Think::Exponential(think)) = self.think;
        within_ten_years("think", think)?;
        match self.pacing {
            Pacing::Closed(OnRejection::Retry { after, .. }) => {
                within_ten_years("retry.after", after)
            }
            _ => Ok(()),
        }
    }

    /// Whether rounds wait for answers.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.pacing, Pacing::Closed(_))
    }

    /// Draws the number of rounds.
    pub(crate) fn sample_rounds(&self, dice: &mut Dice) -> u32 {
        self.rounds.sample(dice).min(MAX_ROUNDS)
    }

    /// What a closed-loop client does after attempt number `attempt` (from 0) of a round came to
    /// this end.
    pub(crate) fn after(&self, ending: Ending, attempt: u32) -> Next {
        match (ending, self.pacing) {
            (Ending::Finished, _) => Next::Round,
            (
                Ending::Rejected | Ending::Abandoned,
                Pacing::Closed(OnRejection::Retry { after, at_most }),
            ) if attempt < at_most => Next::Again(after),
            (Ending::Rejected | Ending::Abandoned | Ending::Unservable, _) => Next::Nothing,
        }
    }
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It thinks, and sends the next round.
    Round,
    /// It sends the same round again after this long.
    Again(Span),
    /// It has given up.
    Nothing,
}

impl Think {
    /// Draws a think time, at most ten years.
    pub(crate) fn sample(self, dice: &mut Dice) -> Span {
        match self {
            Think::Constant(think) => think,
            Think::Exponential(mean) => {
                let nanos = blis_core::math::float(mean.as_nanos()) * dice.exponential();
                Span::from_nanos_f64(nanos).min(Span::LONGEST)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::random::Purpose;

    fn sessions(pacing: Pacing) -> Sessions {
        Sessions {
            rounds: Length::Constant(4),
            think: Think::Constant(Span::from_micros(500)),
            context: Context::Accumulate,
            pacing,
            single: false,
        }
    }

    #[test]
    fn a_client_gives_up_after_so_many_retries_and_at_once_if_it_can_never_be_served() {
        let wait = Span::from_micros(9);
        let retry = sessions(Pacing::Closed(OnRejection::Retry { after: wait, at_most: 2 }));
        let after = |attempt| retry.after(Ending::Rejected, attempt);
        assert_eq!(
            [after(0), after(1), after(2)],
            [Next::Again(wait), Next::Again(wait), Next::Nothing]
        );
        assert_eq!(retry.after(Ending::Abandoned, 1), Next::Again(wait));
        assert_eq!(retry.after(Ending::Abandoned, 2), Next::Nothing);
        assert_eq!(retry.after(Ending::Unservable, 0), Next::Nothing);
        assert_eq!(retry.after(Ending::Finished, 2), Next::Round);
        let end = sessions(Pacing::Closed(OnRejection::End));
        assert_eq!(end.after(Ending::Rejected, 0), Next::Nothing);
        assert_eq!(end.after(Ending::Abandoned, 0), Next::Nothing);
    }

    #[test]
    fn exponential_think_times_have_their_mean() {
        let think = Think::Exponential(Span::from_micros(1_000));
        let sum: f64 = (0..20_000)
            .map(|key| think.sample(&mut Dice::new(3, Purpose::Think, key)).as_micros_f64())
            .sum();
        assert!((sum / 20_000.0 - 1_000.0).abs() < 25.0, "{}", sum / 20_000.0);
    }

    #[test]
    fn too_many_rounds_are_refused() {
        let many = Sessions { rounds: Length::Constant(1_025), ..sessions(Pacing::Open) };
        let text = many.validate().expect_err("too many").to_string();
        assert_eq!(text, "field `rounds`: found 1025; legal: a whole number from 1 to 1024");
        assert!(sessions(Pacing::Open).validate().is_ok());
    }
}
