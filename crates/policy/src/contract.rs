//! The contracts of all kinds of policy.
//!
//! A policy is asked a question and answers with a value; the host (`sim`) carries it out. A policy
//! never changes the world, never sees an output length, and draws random numbers only from the
//! `Dice` it is handed, which are keyed by request. Scorers, routers and admission may keep state
//! of their own.

use crate::totals::Totals;
use crate::view::{
    Answer, ClusterView, InstanceView, Intent, MemoryView, RunningView, UseView, WaitingView,
};
use blis_core::{Dice, InstanceId, RequestId, RequestView, Time};

/// How often the mechanisms of policies have acted, by `policy.mechanism`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Firings(Vec<(String, u64)>);

impl Firings {
    /// `mechanism` of the policy of that name has acted so often.
    pub fn add(&mut self, policy: &str, mechanism: &str, times: u64) {
        let name = format!("{policy}.{mechanism}");
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += times,
            None => self.0.push((name, times)),
        }
    }

    /// All of them, as they were added.
    pub fn into_list(self) -> Vec<(String, u64)> {
        self.0
    }
}

/// Whether a request is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it in.
    Admit,
    /// Turn it away; the word is reported, and counted by it.
    Reject(&'static str),
    /// It waits at the gateway until [`Admission::release`] names it.
    Wait,
}

/// Decides at the gateway whether a request enters the cluster.
pub trait Admission: Send {
    /// Decides about `request` now.
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Verdict;

    /// Whom of those who wait it lets in or turns away now. It is asked when somebody comes to wait
    /// and every millisecond, each time until it lets somebody in or has nobody to name.
    fn release(&mut self, _cluster: &ClusterView<'_>) -> Option<(RequestId, Verdict)> {
        None
    }

    /// Has the last word about a request that it has let in, once the router has chosen.
    fn admit_at(
        &mut self,
        _request: &RequestView<'_>,
        _chosen: &InstanceView,
        _now: Time,
    ) -> Verdict {
        Verdict::Admit
    }

    /// Another policy has turned away a request that this one has let in: takes back what letting
    /// it in has changed. Whoever turns a request away itself takes it back itself.
    fn withdrawn(&mut self, _request: &RequestView<'_>, _now: Time) {}

    /// The client of a request has given up; no answer to it will pass.
    fn given_up(&mut self, _request: RequestId) {}

    /// An answer passes; only for those that need them.
    fn answered(&mut self, _answer: &Answer) {}

    /// Tells how often its mechanisms acted, beyond what the host counts of any policy: requests
    /// sent, admitted, and rejected by reason.
    fn firings(&self, _firings: &mut Firings) {}
}

/// A routing decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where the request goes.
    pub instance: InstanceId,
    /// What the router expects of it; travels with the request.
    pub intent: Intent,
}

impl Choice {
    /// `instance`, because of the policy of that name, without an opinion about cached blocks.
    pub const fn because(policy: &'static str, instance: InstanceId) -> Choice {
        Choice { instance, intent: Intent { expected_hit_blocks: None, because: policy } }
    }
}

/// Chooses an instance for an admitted request.
pub trait Router: Send {
    /// Chooses among the instances of `cluster`. Must not change what later choices are; only
    /// `sent` and `answered` may.
    fn route(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Choice;

    /// Learns that `request` was sent to `instance` now, which is the last choice unless somebody
    /// overruled it.
    fn sent(&mut self, _request: &RequestView<'_>, _instance: InstanceId, _now: Time) {}

    /// An answer passes; only for those that need them.
    fn answered(&mut self, _answer: &Answer) {}

    /// What the last choice was made for, if that is more than its intent says and takes a while to
    /// find out; asked only if somebody listens.
    fn because(&self) -> Option<&'static str> {
        None
    }

    /// What the last choice was among: a total score for each instance of the cluster it was shown;
    /// empty if it does not score. Instances that a filter left out have negative infinity.
    fn totals(&mut self) -> &[f64] {
        &[]
    }

    /// What each scorer added to these totals, by name; empty if it does not score.
    fn opinions(&self) -> Vec<(&'static str, Vec<f64>)> {
        Vec::new()
    }

    /// Tells how often its mechanisms acted, beyond what the host counts of any policy: requests
    /// sent, admitted, and rejected by reason.
    fn firings(&self, _firings: &mut Firings) {}
}

/// Narrows the instances to choose from; a part of the `weighted` router.
pub trait Filter: Send {
    /// Sets to `false` in `kept`, one per instance, what is out of the question. If none is left,
    /// the filter is passed over. Must not change what later answers are.
    fn keep(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
        kept: &mut [bool],
    );

    /// Learns that `request` was sent to `instance` now.
    fn sent(&mut self, _request: &RequestView<'_>, _instance: InstanceId, _now: Time) {}

    /// Tells how often its mechanisms acted, beyond what the router counts of any filter: how often
    /// it narrowed the choice, and how often it was passed over.
    fn firings(&self, _firings: &mut Firings) {}
}

/// Where a scorer has written.
#[derive(Clone, Copy, Debug)]
pub enum Rescored<'a> {
    /// Anywhere.
    All,
    /// At the places that have changed, and at these.
    Changed(&'a [usize]),
}

/// Scores instances for one request; a part of the `weighted` router.
pub trait Scorer: Send {
    /// Writes one finite score in 0..=1 per instance, higher is better. Must not change what later
    /// scores are.
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]);

    /// Brings `scores`, which it wrote for the request before, up to date for this one: the same as
    /// `score`, where it costs less to look at the `changed` instances only.
    fn rescore(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _changed: &[usize],
        scores: &mut [f64],
    ) -> Rescored<'_> {
        self.score(request, cluster, scores);
        Rescored::All
    }

    /// Learns that `request` was sent to `instance` now.
    fn sent(&mut self, _request: &RequestView<'_>, _instance: InstanceId, _now: Time) {}

    /// Full prompt blocks that this scorer believes are cached at `instance`, as of the last
    /// `score`.
    fn expected_hit_blocks(&self, _instance: InstanceId) -> Option<u32> {
        None
    }
}

/// Picks an instance given total scores; a part of the `weighted` router.
pub trait Picker: Send {
    /// An index into `scores`, which are never empty.
    fn pick(&mut self, scores: &Totals, dice: &mut Dice) -> usize;
}

/// How important a waiting request is.
pub trait Priority: Send {
    /// The priority of `waiting` now; higher is sooner.
    fn priority(&self, waiting: &WaitingView<'_>, now: Time) -> f64;

    /// Whether the answer changes while a request waits. If not, it is asked once, on joining the
    /// queue.
    fn varies(&self) -> bool {
        false
    }
}

/// The order in which waiting requests are scheduled.
pub trait Order: Send {
    /// The rank now of `waiting`, whose priority is given: lowest first, equal ranks in order of
    /// joining the queue.
    fn rank(&self, waiting: &WaitingView<'_>, priority: f64, now: Time) -> f64;

    /// Whether the answer changes while a request waits, even if its priority does not.
    fn varies(&self) -> bool {
        false
    }
}

/// Whom to preempt when a running request needs a block and none is left.
pub trait Preempt: Send {
    /// An index into `running`, which is never empty and in running order.
    fn victim(&self, running: &[RunningView]) -> usize;
}

/// Which cached blocks to drop when room is needed.
pub trait Evict: Send {
    /// What the blocks of `ended` are worth, now that a request has stopped using them: not
    /// negative, and finite. When room is needed, the blocks of the least worth go first, then
    /// those that were released first. A prefix must be worth at least as much as what continues
    /// it; it is never dropped before that.
    fn worth(&self, ended: &UseView) -> f64;

    /// Whether all blocks are worth 0, so that the order of release alone decides.
    fn is_indifferent(&self) -> bool {
        false
    }
}

/// Which blocks are copied to the CPU tier, and when.
pub trait Offload: Send {
    /// A request has joined or left the batch: how many of the idle blocks, counted from those that
    /// would be dropped first, should have a copy. Those that lack one are copied beside the steps.
    fn idle_blocks_to_copy(&self, _memory: &MemoryView) -> u32 {
        0
    }

    /// Whether the blocks of a request that leaves the batch are copied, beside the steps.
    fn copies_on_release(&self) -> bool {
        false
    }

    /// Whether blocks that are dropped are copied first; the step waits for it.
    fn copies_on_evict(&self) -> bool {
        false
    }

    /// Whether the prompt blocks of a request are copied as its steps compute them, and the tier
    /// works as with vLLM's connector: copies are read and made beside the steps, what is being
    /// copied is not read, and blocks that a step under way may write are not used again.
    fn copies_as_computed(&self) -> bool {
        false
    }
}
