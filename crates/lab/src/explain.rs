//! Why an arm is better: where the time went, and which of its components did it.
//!
//! [`decompose`] compares the parts of the time to first token of two arms. [`Ablation`] runs an
//! arm with every subset of its components (all of them up to five, else those along random
//! orders) and splits the difference between all and none into main effects, pairwise interactions
//! and Shapley shares; the sum of what components do alone, set against what they do together,
//! says whether the compound is more than its parts. [`Headroom`] lets oracles decide instead of an
//! arm's policies, and finds the floor that nobody goes below; [`decisions`] takes a sample of the
//! arm's routing decisions otherwise. Intervals are over seeds, which all of them share.

mod ablation;
mod decomposition;
pub(crate) mod headroom;
mod regret;
mod shares;

pub use ablation::{Ablation, Question};
pub use decomposition::{PartDifference, decompose};
pub use headroom::{Gap, Headroom, Reached};
pub use regret::{Decisions, Mean, Worth, decisions};
pub use shares::{Pair, Part, Shares, Subsets};
