//! What every admission policy promises, alone and in compositions.

use crate::views::{CLUSTER, Question, questions};
use blis_core::{Content, RequestId, Segment, SloClass, Span, StreamId, Time};
use blis_policy::{Admission, Answer, Gate, Guests, InstanceView, Verdict, admission};
use proptest::prelude::*;

/// Every policy alone, and compositions of them.
fn texts() -> Vec<String> {
    let composed = |name: &str| name == "all-of" || name == "any-of";
    let mut texts: Vec<String> = admission::ALL
        .iter()
        .filter(|spec| !composed(spec.name))
        .map(|spec| spec.name.to_owned())
        .collect();
    let holds = "flow-control".to_owned();
    texts.retain(|name| *name != holds);
    let all = texts.iter().filter(|name| *name != "reject-all").cloned().collect::<Vec<_>>();
    texts.push(format!("all-of({})", all.join("; ")));
    let all = texts.iter().filter(|name| *name != "always-admit").cloned().collect::<Vec<_>>();
    texts.push(format!("any-of({})", all.join("; ")));
    texts.push(holds);
    texts.push("all-of(token-bucket; any-of(kv-gate; slo-gated[threshold=1]))".to_owned());
    texts
}

fn build(text: &str) -> Box<dyn Admission> {
    Gate::new(text, &[], &Guests::NONE).expect("legal").build(&CLUSTER)
}

/// What becomes of request `number` at both doors, if it is routed to the first instance. Whoever
/// was let in is answered at once.
fn enter(gate: &mut dyn Admission, number: u64, question: &Question) -> Verdict {
    let (request, cluster) = (question.request(number), question.cluster(number));
    let verdict = gate.admit(&request, &cluster, &mut Question::dice(number));
    if verdict != Verdict::Admit {
        return verdict;
    }
    let verdict = gate.admit_at(&request, &question.instances[0], cluster.now);
    if verdict == Verdict::Admit {
        gate.answered(&Answer {
            request: RequestId(number),
            class: request.class,
            instance: question.instances[0].id,
            input_tokens: request.input_tokens,
            cached_tokens: 0,
            ttft: Span::from_micros(300_000),
            e2e: Span::from_micros(900_000),
            now: cluster.now,
        });
    }
    verdict
}

fn verdicts(text: &str, sequence: &[Question]) -> Vec<Verdict> {
    let mut gate = build(text);
    (0..).zip(sequence).map(|(number, question)| enter(&mut *gate, number, question)).collect()
}

proptest! {
    #[test]
    fn admission_is_deterministic_and_names_its_reasons(sequence in questions()) {
        for text in texts() {
            let once = verdicts(&text, &sequence);
            prop_assert_eq!(&once, &verdicts(&text, &sequence), "{}", text);
            for verdict in once {
                // The reason is the policy's own name, or that of a member.
                let known = match verdict {
                    Verdict::Admit => true,
                    Verdict::Wait => text == "flow-control",
                    Verdict::Reject(reason) => text.contains(reason) && !reason.is_empty(),
                };
                prop_assert!(known, "{text}: {verdict:?}");
            }
        }
    }

    #[test]
    fn gates_in_line_let_in_whom_all_let_in_and_gates_side_by_side_whom_any_does(
        sequence in questions(),
    ) {
        // Gates without state or chance, so that asking one does not change what another says.
        let (a, b) = ("slo-gated[threshold=2]", "kv-gate[free-blocks=20]");
        let alone = [verdicts(a, &sequence), verdicts(b, &sequence)];
        let all = verdicts(&format!("all-of({a}; {b})"), &sequence);
        let any = verdicts(&format!("any-of({a}; {b})"), &sequence);
        for at in 0..sequence.len() {
            let in_alone = [0, 1].map(|member: usize| alone[member][at] == Verdict::Admit);
            prop_assert_eq!(all[at] == Verdict::Admit, in_alone[0] && in_alone[1]);
            prop_assert_eq!(any[at] == Verdict::Admit, in_alone[0] || in_alone[1]);
        }
    }
}

/// A request that comes to an instance in this state.
fn question(class: SloClass, instance: InstanceView) -> Question {
    let prompt = Segment { stream: StreamId(1), tokens: 5_000 };
    Question {
        prompt: Content::new([prompt], StreamId(2)),
        class,
        session: 0,
        round: 0,
        deadline: None,
        instances: vec![instance],
    }
}

#[test]
fn every_gate_lets_somebody_in_and_turns_somebody_away() {
    let idle = InstanceView::idle(blis_core::InstanceId(0), 60);
    let full = InstanceView {
        queue_depth: 500,
        waiting_by_class: [100; 5],
        running: 256,
        in_flight: 756,
        unstarted_tokens: 10_000_000,
        kv_utilization: 1.0,
        free_blocks: 0,
        ..idle
    };
    for text in texts() {
        let idle = question(SloClass::Critical, idle);
        let full = question(SloClass::Batch, full);
        // Requests come 0.1 s apart for a while, and then all at once.
        let mut gate = build(&text);
        let mut found = vec![enter(&mut *gate, 0, &idle)];
        found.extend((1..50).map(|number| enter(&mut *gate, number * 100, &full)));
        found.extend((5_000..5_100).map(|number| enter(&mut *gate, number, &full)));
        let [admits, rejects] =
            [true, false].map(|admit| found.iter().any(|v| (*v == Verdict::Admit) == admit));
        assert_eq!(admits, text != "reject-all", "{text}");
        assert_eq!(rejects, text != "always-admit", "{text}");
    }
}

#[test]
fn what_was_taken_back_changes_nothing() {
    let idle = InstanceView::idle(blis_core::InstanceId(0), 60);
    let question = question(SloClass::Standard, idle);
    for text in texts() {
        let mut gate = build(&text);
        for number in 0..3 {
            let (request, cluster) = (question.request(number), question.cluster(0));
            if gate.admit(&request, &cluster, &mut Question::dice(0)) == Verdict::Admit {
                gate.withdrawn(&request, Time::ZERO);
            }
        }
        let fresh = enter(&mut *build(&text), 0, &question);
        assert_eq!(enter(&mut *gate, 0, &question), fresh, "{text}");
    }
}
