//! The router that looks ahead: where the first token of a request comes soonest.

use super::{LATEST, MOST_IN_VAIN, World};
use crate::instance::{Kit, Tally, Unseen};
use crate::live::{Ended, Live, LiveRequests, Slot};
use blis_core::{InstanceId, Span, Time};
use blis_metrics::{Fact, Listener};
use blis_policy::Intent;

/// What a request that an oracle has routed was routed for.
pub(super) const BECAUSE: &str = "oracle";

/// Where a request could go.
struct Place {
    instance: InstanceId,
    /// The request and those that are on their way there, in the order in which they join.
    joining: Vec<(Time, Slot)>,
}

impl World<'_> {
    /// Where the first token of a request leaves soonest if nobody comes later; of equals, where
    /// fewest are, then the first.
    pub(crate) fn foresee(&self, slot: Slot, now: Time) -> InstanceId {
        let ended = vec![Ended::default(); self.config.policies.gateways.len()];
        let mut copy = Copy { live: self.live.clone(), tally: Tally::default(), ended };
        let mut places = self.places(slot, now);
        places.sort_by_key(|place| {
            let (waiting, running) = self.instances[place.instance.index()].requests();
            waiting as usize + running as usize + place.joining.len()
        });
        // Nothing comes after the end of the run; there, one place is as good as another.
        let (mut soonest, mut best) = (None, places[0].instance);
        for place in &places {
            let home = self.instances[place.instance.index()].home();
            let least = self.config.pools[home].latency.output(1);
            let limit = soonest.map_or(self.horizon, |left: Time| left - least);
            let found = self.first_token(place, slot, limit, &mut copy);
            if let Some(left) = found.map(|(at, output)| at + output.unwrap_or(least))
                && soonest.is_none_or(|soonest| left < soonest)
            {
                (soonest, best) = (Some(left), place.instance);
            }
        }
        best
    }

    /// What a request is sent to `instance` with: an oracle knows what is cached there.
    pub(crate) fn known_intent(
        &self,
        slot: Slot,
        instance: InstanceId,
        because: &'static str,
    ) -> Intent {
        let content = &self.live.get(slot).request.content;
        let size = self.config.block_size();
        let cached = self.instances[instance.index()].cached(content.prompt_blocks(size));
        // The last token is always computed, so a block that ends with it never hits.
        let most = (content.prompt_tokens() - 1) / size;
        let blocks = (cached.blocks + cached.copied).min(most);
        Intent { expected_hit_blocks: Some(blocks), because }
    }

    /// All places where a request that is routed now can go.
    fn places(&self, slot: Slot, now: Time) -> Vec<Place> {
        let tokens = self.live.get(slot).request.content.prompt_tokens();
        let place = |(id, home): (u32, usize)| {
            let joins = now + self.config.pools[home].latency.ingress(tokens);
            Place { instance: InstanceId(id), joining: vec![(joins, slot)] }
        };
        let mut places: Vec<Place> = (0..).zip(self.config.homes()).map(place).collect();
        for (instance, other, live) in self.live.on_the_way() {
            places[instance.index()].joining.push((live.enqueued, other));
        }
        for place in &mut places {
            // Who is routed later joins later, of those that join at one instant.
            place.joining.sort_by_key(|&(joins, other)| (joins, self.live.get(other).request.id));
        }
        places
    }

    /// When the first token of a request that goes to `place` comes, unless that is not before
    /// `limit`, and its way out; that of a request which has left with it is not known.
    fn first_token(
        &self,
        place: &Place,
        slot: Slot,
        limit: Time,
        copy: &mut Copy,
    ) -> Option<(Time, Option<Span>)> {
        let mut engine = self.instances[place.instance.index()].clone();
        // Others of this request's copies were at other places.
        copy.live.put(slot, self.live.get(slot).clone());
        let live = copy.live.get_mut(slot);
        live.instance = Some(place.instance);
        // Orders and evictors read it, so it must be what the engine would be told.
        live.intent = self.known_intent(slot, place.instance, BECAUSE);
        copy.tally.in_vain = 0;
        let mut deaf = Deaf;
        let mut kit = self.look_ahead(copy, &mut deaf);
        let mut joining = place.joining.iter().copied().peekable();
        let mut boundary = self.agenda.step(place.instance);
        loop {
            let join = joining.peek().map_or(Time::NEVER, |next| next.0);
            let at = join.min(boundary);
            // Requests that preempt each other for ever get nowhere.
            if at >= limit || kit.tally.in_vain > MOST_IN_VAIN {
                return None;
            }
            boundary = match joining.next_if(|next| next.0 <= boundary) {
                Some((_, next)) => engine.enqueue(next, at, &mut kit),
                None => engine.boundary(at, &mut kit),
            };
            match kit.live.find(slot) {
                // It had one token to generate, and has left with it.
                None => return Some((at, None)),
                Some(Live { first_token: Some(token), split, .. }) => {
                    return Some((*token, Some(split.output)));
                }
                Some(_) => {}
            }
        }
    }
}

impl World<'_> {
    /// What copies of engines work with. They are not told of the future, so what an oracle among
    /// evictors would think of blocks that are released meanwhile is not foreseen.
    fn look_ahead<'b>(&'b self, copy: &'b mut Copy, deaf: &'b mut Deaf) -> Kit<'b> {
        let pools = &self.config.pools[..];
        Kit {
            pools,
            home: 0,
            engine: &pools[0].engine,
            latency: &*pools[0].latency,
            policies: &self.config.policies,
            oracles: self.config.oracles,
            future: None,
            pace: self.config.pace,
            seed: self.config.seed,
            unseen: Unseen::default(),
            horizon: LATEST,
            audit: false,
            live: &mut copy.live,
            listener: deaf,
            tally: &mut copy.tally,
            finished: None,
            answers: None,
            ended: &mut copy.ended,
            sessions: self.config.policies.engine_needs.sessions,
        }
    }
}

/// What a copy of an engine works on.
struct Copy {
    live: LiveRequests,
    tally: Tally,
    ended: Vec<Ended>,
}

/// Hears nothing: what is looked ahead at has not happened.
struct Deaf;

impl Listener for Deaf {
    fn hear(&mut self, _: Time, _: &Fact<'_>) {}
}
