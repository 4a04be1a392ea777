//! The way in: arrival, admission, routing, ingress. What a request goes through before an instance
//! sees it.
//!
//! A delay of zero is no event: the next decision is made on the spot, so requests that arrive at
//! one instant are decided one after the other, each seeing what was done with those before.

use super::{World, foresight};
use crate::agenda::Phase;
use crate::config::{Config, GatewayPolicies, Instead, Policies, Pool};
use crate::live::Slot;
use blis_core::random::Purpose;
use blis_core::{Dice, Request, RequestId, Span, Time};
use blis_metrics::{Fact, Status};
use blis_policy::{Choice, ClusterView, Firings, Verdict};
use std::collections::BTreeMap;

/// Why a request goes where its router was overruled.
const OVERRULED: &str = "overruled";

/// How often replicas look through those who wait there, as llm-d's do, in ns.
const TICK: u64 = 1_000_000;

/// What the gateway has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    admitted: u64,
    sent: u64,
    /// Clients that lost their patience.
    pub(crate) gave_up: u64,
    /// By reason.
    rejected: BTreeMap<&'static str, u64>,
}

impl World<'_> {
    /// A request arrives.
    pub(crate) fn arrive(&mut self, mut request: Request, now: Time) {
        request.id = RequestId(self.tally.arrived);
        assert!(request.content.prompt_tokens() > 0, "a request has a prompt");
        assert!(request.output_tokens > 0, "a request generates at least one token");
        request.patience = request.patience.or(self.config.patience);
        if self.unseen.contents {
            request.content.set_private();
        }
        let input_tokens = request.content.prompt_tokens();
        let (id, class, round) = (request.id, request.class, request.round);
        // The last generated token is never written to the KV cache.
        let tokens = u64::from(input_tokens) + u64::from(request.output_tokens) - 1;
        let is_short = |pool: &Pool| {
            let tokens = tokens + u64::from(pool.engine.overshoot());
            tokens.div_ceil(pool.engine.block_size.into()) > pool.engine.total_kv_blocks.into()
        };
        let unservable = self.config.pools.iter().any(is_short);
        let gateway = self.gateway_of(id);
        if let Some(future) = &mut self.config.future {
            future.arrive(&request);
        }
        let slot = self.live.insert(request, gateway, self.config.warmup);
        self.tally.arrived += 1;
        self.tally.events += 1;
        self.listener.hear(now, &Fact::Arrived { request: id, class, input_tokens, round });
        if unservable {
            // It could never finish where it may be sent, whoever else is there: refused at once,
            // like vLLM's check of max_model_len.
            self.close(slot, Status::Unservable, now);
            return;
        }
        self.note_patience(slot);
        let latency = self.config.gateway.admission_latency;
        self.after(latency, Phase::Admission, slot, now);
    }

    /// The admission decision is due.
    pub(crate) fn admit(&mut self, slot: Slot, now: Time) {
        self.tally.events += 1;
        if self.config.policies.admission_needs.looks() {
            self.look(slot, now);
        }
        let live = self.live.get(slot);
        let gateway = live.gateway;
        self.hear_answers(gateway, now);
        let view = self.live.get(slot).request.view(self.config.block_size());
        let seed = self.config.seed;
        let instances = self.boards.views(gateway);
        let cluster = ClusterView { now, seed, instances, changed: None };
        let mut dice = Dice::new(seed, Purpose::Admission, view.id.0);
        let admission = &mut self.config.policies.gateways[gateway].admission;
        match admission.admit(&view, &cluster, &mut dice) {
            Verdict::Reject(reason) => self.reject(slot, reason, now),
            Verdict::Admit => self.let_in(slot, now),
            Verdict::Wait => {
                let request = view.id;
                self.held[gateway].insert(request, slot);
                self.release(gateway, now);
                self.release_later(now);
            }
        }
    }

    fn let_in(&mut self, slot: Slot, now: Time) {
        let request = self.live.get(slot).request.id;
        self.counts.admitted += 1;
        self.listener.hear(now, &Fact::Admitted { request });
        let latency = self.config.gateway.routing_latency;
        self.after(latency, Phase::Routing, slot, now);
    }

    /// Every replica looks through those who wait there.
    pub(crate) fn release_all(&mut self) {
        self.tally.events += 1;
        let now = self.now;
        for gateway in 0..self.held.len() {
            self.release(gateway, now);
        }
        self.release_later(now);
    }

    /// Replicas look again at the next full millisecond if somebody waits.
    fn release_later(&mut self, now: Time) {
        let anybody = self.held.iter().any(|held| !held.is_empty());
        let next = Time::from_nanos((now.as_nanos() / TICK + 1) * TICK);
        self.agenda.set_release(if anybody { next } else { Time::NEVER });
    }

    /// Turns away those who have waited at this replica for too long, and lets in one who may go.
    fn release(&mut self, gateway: usize, now: Time) {
        while let Some(&slot) = self.held[gateway].values().next() {
            if self.config.policies.admission_needs.looks() {
                self.look(slot, now);
            }
            let seed = self.config.seed;
            let instances = self.boards.views(gateway);
            let cluster = ClusterView { now, seed, instances, changed: None };
            let admission = &mut self.config.policies.gateways[gateway].admission;
            let Some((request, verdict)) = admission.release(&cluster) else { return };
            let slot = self.held[gateway].remove(&request).expect("whoever is released waited");
            match verdict {
                Verdict::Reject(reason) => self.reject(slot, reason, now),
                Verdict::Admit | Verdict::Wait => return self.let_in(slot, now),
            }
        }
    }

    /// The routing decision is due.
    pub(crate) fn route(&mut self, slot: Slot, now: Time) {
        self.tally.events += 1;
        let policies = &self.config.policies;
        let waited = self.config.gateway.routing_latency > Span::ZERO;
        // Admission has the last word, and has looked already if that was at this instant.
        if policies.router_needs.looks() || (waited && policies.admission_needs.looks()) {
            self.look(slot, now);
        }
        let gateway = self.live.get(slot).gateway;
        self.hear_answers(gateway, now);
        let Choice { instance, intent } = self.choose(slot, now);
        if self.config.policies.are_detailed() && !self.config.oracles.routing {
            self.state_considered(slot, now);
        }
        let block_size = self.config.block_size();
        let Config { policies, oracles, .. } = &mut self.config;
        let live = self.live.get_mut(slot);
        let request = live.request.id;
        let view = live.request.view(block_size);
        let policies = &mut policies.gateways[gateway];
        assert!(
            instance.index() < self.instances.len(),
            "the router chose {instance:?}, which is not there"
        );
        let chosen = &self.boards.views(gateway)[instance.index()];
        if let Verdict::Reject(reason) = policies.admission.admit_at(&view, chosen, now) {
            self.counts.admitted -= 1;
            self.reject(slot, reason, now);
            return;
        }
        let fact = Fact::Routed {
            request,
            instance,
            expected_cached_tokens: intent.expected_hit_blocks.map(|blocks| blocks * block_size),
            because: intent.because,
            totals: if oracles.routing { &[] } else { policies.router.totals() },
        };
        self.listener.hear(now, &fact);
        policies.router.sent(&view, instance, now);
        if let Some(shadow) = &mut policies.shadow {
            shadow.sent(&view, instance, now);
        }
        live.instance = Some(instance);
        live.intent = intent;
        let work = live.expected_work(block_size);
        let view = live.request.view(block_size);
        let input_tokens = view.input_tokens;
        self.boards.sent(gateway, instance, &view, work, now);
        self.counts.sent += 1;
        let joins = now + self.pool(instance).latency.ingress(input_tokens);
        self.live.get_mut(slot).enqueued = joins;
        self.agenda.add(joins, Phase::Enqueue, slot);
    }

    /// Where a request goes: where it is made to, or where the oracle or the router wants it.
    fn choose(&mut self, slot: Slot, now: Time) -> Choice {
        let id = self.live.get(slot).request.id;
        let overruled = self.config.overrule.filter(|&(overruled, _)| overruled == id);
        let overruled = overruled.map(|(_, instead)| instead);
        let oracle = self.config.oracles.routing;
        let said = (!oracle).then(|| self.ask_router(slot, now));
        let (instance, because) = match (overruled, said) {
            (None, Some(choice)) => return choice,
            (Some(Instead::At(instance)), Some(_)) => return Choice::because(OVERRULED, instance),
            (Some(Instead::At(instance)), None) => (instance, OVERRULED),
            (Some(Instead::Foreseen), _) | (None, None) => {
                (self.foresee(slot, now), foresight::BECAUSE)
            }
        };
        Choice { instance, intent: self.known_intent(slot, instance, because) }
    }

    /// States what the router of a request chose among, and what it would choose if nothing that it
    /// reads were stale.
    #[cold]
    fn state_considered(&mut self, slot: Slot, now: Time) {
        let block_size = self.config.block_size();
        let live = self.live.get(slot);
        let (fresh, candidates) = self.boards.compare(&self.instances, live, now);
        let Config { policies, seed, .. } = &mut self.config;
        let view = live.request.view(block_size);
        let GatewayPolicies { router, shadow, .. } = &mut policies.gateways[live.gateway];
        let Some(shadow) = shadow else { return };
        let cluster = ClusterView { now, seed: *seed, instances: &fresh, changed: None };
        let mut dice = Dice::new(*seed, Purpose::Routing, view.id.0);
        let fresh = shadow.route(&view, &cluster, &mut dice).instance;
        let (opinions, candidates) = (&router.opinions()[..], &candidates[..]);
        let fact = Fact::Considered { request: view.id, candidates, opinions, fresh };
        self.listener.hear(now, &fact);
    }

    /// What the router says.
    fn ask_router(&mut self, slot: Slot, now: Time) -> Choice {
        let block_size = self.config.block_size();
        let Config { policies, seed, .. } = &mut self.config;
        let live = self.live.get(slot);
        let view = live.request.view(block_size);
        let gateway = live.gateway;
        let (instances, changed) = (self.boards.views(gateway), self.boards.changed(gateway));
        let cluster = ClusterView { now, seed: *seed, instances, changed };
        let mut dice = Dice::new(*seed, Purpose::Routing, view.id.0);
        let router = &mut policies.gateways[gateway].router;
        let mut choice = router.route(&view, &cluster, &mut dice);
        self.boards.asked(gateway);
        if !self.unseen.details {
            choice.intent.because = router.because().unwrap_or(choice.intent.because);
        }
        // The last token is always computed, so a block that ends with it never hits.
        let most = (view.input_tokens - 1) / block_size;
        let expected = &mut choice.intent.expected_hit_blocks;
        *expected = expected.map(|blocks| blocks.min(most));
        choice
    }

    /// Admission has turned a request away.
    fn reject(&mut self, slot: Slot, reason: &'static str, now: Time) {
        *self.counts.rejected.entry(reason).or_default() += 1;
        self.close(slot, Status::Rejected(reason), now);
    }

    /// The policies of a replica see the answers that have passed through it by now.
    fn hear_answers(&mut self, gateway: usize, now: Time) {
        let Policies { gateways, admission_needs, router_needs, .. } = &mut self.config.policies;
        let GatewayPolicies { admission, router, shadow } = &mut gateways[gateway];
        while let Some(answer) = self.answers[gateway].pop_front_if(|answer| answer.now <= now) {
            if admission_needs.answers {
                admission.answered(&answer);
            }
            if router_needs.answers {
                router.answered(&answer);
                if let Some(shadow) = shadow {
                    shadow.answered(&answer);
                }
            }
        }
    }

    /// The replica of the gateway that a request comes to: any of them, as behind a load balancer
    /// that opens a connection for each request.
    fn gateway_of(&self, request: RequestId) -> usize {
        match self.config.policies.gateways.len() {
            1 => 0,
            replicas => Dice::new(self.config.seed, Purpose::Gateway, request.0).below(replicas),
        }
    }

    /// How often each mechanism acted: what the policies of the gateway tell, and what is counted
    /// of any policy.
    pub(crate) fn mechanisms(&self) -> BTreeMap<String, u64> {
        let mut firings = Firings::default();
        for gateway in &self.config.policies.gateways {
            gateway.admission.firings(&mut firings);
            gateway.router.firings(&mut firings);
        }
        firings.add("admission", "admitted", self.counts.admitted);
        for (reason, times) in &self.counts.rejected {
            firings.add(reason, "rejected", *times);
        }
        firings.add("routing", "sent", self.counts.sent);
        if self.counts.gave_up > 0 {
            firings.add("clients", "gave-up", self.counts.gave_up);
        }
        firings.add("order", "overtaken", self.tally.overtaken);
        firings.add("preempt", "spared-last", self.tally.spared_last);
        firings.into_list().into_iter().collect()
    }

    fn after(&mut self, latency: Span, phase: Phase, slot: Slot, now: Time) {
        if latency == Span::ZERO {
            self.decide(phase, slot, now);
        } else {
            self.agenda.add(now + latency, phase, slot);
        }
    }
}
