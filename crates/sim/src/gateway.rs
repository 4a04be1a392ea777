//! The way in: arrival, admission, routing, ingress. What a request goes through before an instance
//! sees it.
//!
//! A delay of zero is no event: the next decision is made on the spot, so requests that arrive at
//! one instant are decided one after the other, each seeing what was done with those before.

use crate::agenda::Phase;
use crate::live::Slot;
use crate::world::World;
use blis_core::random::Purpose;
use blis_core::{Dice, Request, RequestId, Time};
use blis_metrics::{Fact, Status};
use blis_policy::Verdict;

impl World<'_> {
    /// A request arrives.
    pub(crate) fn arrive(&mut self, mut request: Request, now: Time) {
        request.id = RequestId(self.tally.arrived);
        assert!(request.content.prompt_tokens() > 0, "a request has a prompt");
        assert!(request.output_tokens > 0, "a request generates at least one token");
        let input_tokens = request.content.prompt_tokens();
        let (id, class) = (request.id, request.class);
        // The last generated token is never written to the KV cache.
        let tokens = u64::from(input_tokens) + u64::from(request.output_tokens) - 1;
        let blocks = tokens.div_ceil(self.config.engine.block_size.into());
        let slot = self.live.insert(request);
        self.tally.arrived += 1;
        self.tally.events += 1;
        self.listener.hear(now, &Fact::Arrived { request: id, class, input_tokens });
        if blocks > self.config.engine.total_kv_blocks.into() {
            // It could never finish, whoever else is there: refused at once, like vLLM's check of
            // max_model_len.
            self.close(slot, Status::Unservable, now);
            return;
        }
        let latency = self.config.gateway.admission_latency;
        self.after(latency, Phase::Admission, slot, now);
    }

    /// The admission decision is due.
    pub(crate) fn admit(&mut self, slot: Slot, now: Time) {
        self.tally.events += 1;
        if self.config.policies.admission_needs.any() {
            self.look(now);
        }
        let block_size = self.config.engine.block_size;
        let view = self.live.get(slot).request.view(block_size);
        match self.config.policies.admission.admit(&view, self.board.views(), now) {
            Verdict::Reject(reason) => self.close(slot, Status::Rejected(reason), now),
            Verdict::Admit => {
                let request = view.id;
                self.listener.hear(now, &Fact::Admitted { request });
                let latency = self.config.gateway.routing_latency;
                self.after(latency, Phase::Routing, slot, now);
            }
        }
    }

    /// The routing decision is due.
    pub(crate) fn route(&mut self, slot: Slot, now: Time) {
        self.tally.events += 1;
        if self.config.policies.router_needs.any() {
            self.look(now);
        }
        let live = self.live.get_mut(slot);
        let request = live.request.id;
        let block_size = self.config.engine.block_size;
        let view = live.request.view(block_size);
        let mut dice = Dice::new(self.config.seed, Purpose::Routing, request.0);
        let choice = self.config.policies.router.route(&view, self.board.views(), &mut dice);
        let instance = choice.instance;
        assert!(
            instance.0 < self.config.instances,
            "the router chose {instance:?}, which is not there"
        );
        let expected_cached_tokens = choice.expected_hit_blocks.map(|blocks| blocks * block_size);
        live.instance = Some(instance);
        live.expected_cached_tokens = expected_cached_tokens;
        let ingress = self.config.latency.ingress(live.request.content.prompt_tokens());
        self.board.sent(instance);
        self.listener.hear(now, &Fact::Routed { request, instance, expected_cached_tokens });
        self.agenda.add(now + ingress, Phase::Enqueue, slot);
    }

    fn after(&mut self, latency: blis_core::Span, phase: Phase, slot: Slot, now: Time) {
        if latency == blis_core::Span::ZERO {
            self.decide(phase, slot, now);
        } else {
            self.agenda.add(now + latency, phase, slot);
        }
    }
}
