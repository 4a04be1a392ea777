//! `class-queue`: turns away whom those who go first would make wait too long.
//!
//! **Prefers** requests that at some instance have few others ahead of them, of those who are at
//! least as important. By Little's law, who has a tenth as many requests ahead as are running waits
//! a tenth of the time that a request runs, whatever limits the engine: places, tokens or memory.
//! So queues are held against the batch, and there is nothing to predict or to learn. Whoever is
//! less important does not count: where engines schedule by class, they are overtaken. A queue of
//! unimportant requests thus shuts out more of them and nobody else, and in an overload classes are
//! shed from below, each only as far as it must be.
//!
//! **Reads** the running requests of instances and the waiting ones by class (polled), and the
//! request's service class. Of what was sent since the poll (live), those count as waiting that no
//! batch has a place for; of the others nobody knows whether they wait.
//!
//! **Parameters** one per class, named like it: the longest wait, as a share of the time that a
//! request runs. `protect`: classes up to this one are always let in. `slack` (requests): so many
//! may be ahead in any case. `floor`: the share of requests that is let in all the same, so that no
//! class is shut out.
//!
//! **Origin** ours. A gate with one limit for all classes counts, of a queue ordered by class,
//! those whom an important request would not wait for.

use crate::classes::numbers;
use crate::prelude::*;

/// How `class-queue` introduces itself.
pub const SPEC: Spec<dyn Admission> = Spec {
    name: "class-queue",
    help: "Rejects requests that would wait too long behind the same or more important classes",
    params: &[
        wait(SloClass::Critical, 1.0, "Longest wait of critical requests, in run times")
            .only_if("protect", &["nobody"]),
        wait(SloClass::Standard, 0.1, "Longest wait of standard requests, in run times")
            .only_if("protect", &["critical", "nobody"]),
        wait(SloClass::Sheddable, 0.03, "Longest wait of sheddable requests, in run times"),
        wait(SloClass::Batch, 0.03, "Longest wait of batch requests, in run times"),
        wait(SloClass::Background, 0.01, "Longest wait of background requests, in run times"),
        Param::choice("protect", &["critical", "standard", "nobody"])
            .help("This class and more important ones are always admitted"),
        Param::float("slack", 0.0..=100_000.0, 2.0, "requests")
            .help("Admit if at most this many requests are ahead"),
        Param::float("floor", 0.0..=1.0, 0.01, "").help("Share of requests admitted regardless"),
    ],
    needs: |_| Needs { load: true, classes: true, ..Needs::NONE },
    ..Spec::built_by(|values, cluster| Box::new(ClassQueue::new(values, cluster)))
};

const fn wait(class: SloClass, default: f64, help: &'static str) -> Param {
    Param::float(class.name(), 0.0..=1_000.0, default, "run times").help(help)
}

/// A gate that holds the queue ahead of a class against the batch.
#[derive(Clone, Copy, Debug)]
pub struct ClassQueue {
    waits: PerClass<f64>,
    /// Classes before this one, by index, are always let in.
    first_shed: usize,
    slack: f64,
    floor: f64,
    max_running: u32,
    /// Requests that were let in although all queues were too long.
    spared: u64,
}

impl ClassQueue {
    fn new(values: &Values, cluster: &Cluster) -> ClassQueue {
        let protected = SloClass::ALL.iter().find(|c| c.name() == values.choice("protect"));
        ClassQueue {
            waits: numbers(values),
            first_shed: protected.map_or(0, |class| class.index() + 1),
            slack: values.float("slack"),
            floor: values.float("floor"),
            max_running: cluster.max_running,
            spared: 0,
        }
    }

    /// Whether a request of `class` would wait too long at the instance of `view`.
    fn too_long(&self, class: SloClass, view: &InstanceView) -> bool {
        let important = &view.waiting_by_class[..=class.index()];
        let over = view.in_flight.saturating_sub(self.max_running + view.queue_depth);
        let ahead = important.iter().sum::<u32>() + over.min(view.unseen);
        f64::from(ahead) > self.slack + self.waits[class.index()] * f64::from(view.running)
    }
}

impl Admission for ClassQueue {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        dice: &mut Dice,
    ) -> Verdict {
        let class = request.class;
        if class.index() < self.first_shed
            || !cluster.instances.iter().all(|view| self.too_long(class, view))
        {
            return Verdict::Admit;
        }
        if self.floor > 0.0 && dice.unit() < self.floor {
            self.spared += 1;
            return Verdict::Admit;
        }
        Verdict::Reject("class-queue")
    }

    fn firings(&self, firings: &mut Firings) {
        firings.add("class-queue", "spared", self.spared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::values;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    const CLUSTER: Cluster = Cluster { max_running: 128, ..Cluster::SMALL };

    /// An instance where 100 requests run and these wait, by class.
    fn busy(waiting_by_class: PerClass<u32>) -> InstanceView {
        let queue_depth = waiting_by_class.iter().sum();
        InstanceView { running: 100, queue_depth, waiting_by_class, ..instances(&[0])[0] }
    }

    /// The classes that are turned away, with no slack and no floor unless given.
    fn shed(given: &[(&'static str, &'static str)], views: &[InstanceView]) -> Vec<SloClass> {
        let strict = [("slack", "0"), ("floor", "0")];
        let strict = strict.into_iter().filter(|(name, _)| given.iter().all(|(g, _)| g != name));
        let given: Vec<_> = given.iter().copied().chain(strict).collect();
        let mut gate = ClassQueue::new(&values(SPEC.params, &given), &CLUSTER);
        let mut refused = |class: &SloClass| {
            let request = RequestView { class: *class, ..request(&NOTHING) };
            gate.admit(&request, &cluster(views), &mut dice(0)) == Verdict::Reject("class-queue")
        };
        SloClass::ALL.into_iter().filter(|class| refused(class)).collect()
    }

    #[test]
    fn a_queue_of_unimportant_requests_shuts_out_no_one_above_them() {
        let unimportant = [SloClass::Sheddable, SloClass::Batch, SloClass::Background];
        assert_eq!(shed(&[], &[busy([0, 0, 500, 0, 0])]), unimportant);
        assert_eq!(shed(&[], &[busy([0, 0, 0, 0, 500])]), [SloClass::Background]);
        assert_eq!(shed(&[], &[busy([0, 500, 0, 0, 0])])[0], SloClass::Standard);
    }

    #[test]
    fn queues_are_held_against_the_batch_so_that_waits_are_shares_of_running_times() {
        assert_eq!(shed(&[("standard", "0.05")], &[busy([0, 5, 0, 0, 0])])[0], SloClass::Sheddable);
        assert_eq!(shed(&[("standard", "0.05")], &[busy([3, 3, 0, 0, 0])])[0], SloClass::Standard);
        let small = InstanceView { running: 40, ..busy([0, 3, 0, 0, 0]) };
        assert_eq!(shed(&[("standard", "0.05")], &[small])[0], SloClass::Standard);
        let roomy = shed(&[("standard", "0.05"), ("slack", "1")], &[small]);
        assert_eq!(roomy[0], SloClass::Sheddable);
    }

    #[test]
    fn one_instance_with_a_short_queue_is_enough() {
        let full = busy([0, 0, 9, 9, 9]);
        assert!(shed(&[], &[full, busy([0; 5])]).is_empty());
        assert!(!shed(&[], &[full, full]).is_empty());
    }

    #[test]
    fn what_was_sent_since_the_poll_waits_only_if_no_place_is_left_for_it() {
        let sent = |in_flight| [InstanceView { in_flight, unseen: 40, ..busy([0; 5]) }];
        assert!(shed(&[], &sent(129)).is_empty(), "28 places were free, 11 have ended");
        assert_eq!(shed(&[], &sent(132))[0], SloClass::Sheddable);
        assert_eq!(shed(&[], &sent(140))[0], SloClass::Standard);
        // Who was seen waiting is not counted twice.
        let seen = InstanceView { in_flight: 140, unseen: 40, ..busy([0, 0, 0, 0, 12]) };
        assert_eq!(shed(&[], &[seen]), [SloClass::Background]);
    }

    #[test]
    fn protected_classes_are_let_in_whatever_waits() {
        let hopeless = [busy([900, 900, 900, 900, 900])];
        assert_eq!(shed(&[], &hopeless)[0], SloClass::Standard);
        assert_eq!(shed(&[("protect", "standard")], &hopeless)[0], SloClass::Sheddable);
        assert_eq!(shed(&[("protect", "nobody")], &hopeless)[0], SloClass::Critical);
    }

    #[test]
    fn no_class_is_shut_out_while_there_is_a_floor() {
        let mut gate = ClassQueue::new(&values(SPEC.params, &[("floor", "0.1")]), &CLUSTER);
        let views = [busy([0, 0, 900, 0, 0])];
        let request = RequestView { class: SloClass::Sheddable, ..request(&NOTHING) };
        let mut admit = |key| gate.admit(&request, &cluster(&views), &mut dice(key));
        let admitted = (0..1_000).filter(|&key| admit(key) == Verdict::Admit).count();
        assert!((70..130).contains(&admitted), "{admitted} of 1000");
        assert_eq!(gate.spared, admitted as u64);
    }
}
