//! `oracles:` of a scenario: decisions that are taken with knowledge that nobody has.
//!
//! ```yaml
//! oracles: [routing, evict, scheduler]
//! ```
//!
//! What such a run reaches is what an informed policy reaches, not a strategy: no strategy can name
//! an oracle. The policies that it replaces are still checked, and those that it does not replace
//! decide as before.

use schemars::JsonSchema;
use serde::Deserialize;

/// A decision that an oracle takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OracleField {
    /// Routing: where the first token comes soonest if nobody comes later.
    Routing,
    /// Eviction: the blocks that are needed again last go first.
    Evict,
    /// The order of waiting requests: least work left first.
    Scheduler,
}

/// The decisions that oracles take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oracles {
    /// Routing: where the first token comes soonest if nobody comes later.
    pub routing: bool,
    /// Eviction: the blocks that are needed again last go first.
    pub evict: bool,
    /// The order of waiting requests: least work left first, by true output lengths.
    pub scheduler: bool,
}

impl Oracles {
    /// None of them.
    pub const NONE: Oracles = Oracles { routing: false, evict: false, scheduler: false };
    /// All of them.
    pub const ALL: Oracles = Oracles { routing: true, evict: true, scheduler: true };

    /// Those that `fields` name.
    pub(super) fn of(fields: &[OracleField]) -> Oracles {
        Oracles {
            routing: fields.contains(&OracleField::Routing),
            evict: fields.contains(&OracleField::Evict),
            scheduler: fields.contains(&OracleField::Scheduler),
        }
    }

    /// Whether there is any.
    pub fn any(self) -> bool {
        self != Oracles::NONE
    }

    /// The fields of a scenario whose policies they replace.
    pub fn fields(self) -> Vec<&'static str> {
        let all = [(self.routing, "routing"), (self.evict, "evict"), (self.scheduler, "scheduler")];
        all.iter().filter(|(taken, _)| *taken).map(|(_, name)| *name).collect()
    }

    /// What the user should know of them.
    pub(super) fn note(self) -> Option<String> {
        self.any().then(|| {
            format!(
                "oracles decide about {}: the result shows the value of perfect knowledge, not of \
                 a strategy",
                self.fields().join(", ")
            )
        })
    }
}
