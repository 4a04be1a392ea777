//! What the gateway knows of the prefix caches, for those who want to know precisely.
//!
//! Engines publish KV events: what they have stored, dropped or copied, one batch a step. They
//! reach the gateway after a delay; until then it sees the cache as it was. Between sending a
//! prompt and the event that it is cached the gateway may *speculate*: it takes the prompt for
//! cached where it sent it, for a while. Without a delay nothing is kept twice: the gateway looks
//! into the engines' own books.

use crate::config::Signals;
use crate::instance::Instance;
use blis_core::{Blocks, InstanceId, Span, Time};
use blis_kv::{Change, Mirror, Shown};
use blis_policy::InstanceView;
use blis_policy::routing::prefix_index::PrefixIndex;
use std::collections::VecDeque;

/// What KV events have told; all replicas of the gateway hear the same.
pub(crate) struct Events {
    delay: Span,
    /// One an instance; none without a delay.
    feeds: Vec<Feed>,
}

/// The events of one instance.
struct Feed {
    mirror: Mirror,
    /// Events that have not arrived, in order, and when they do.
    under_way: VecDeque<(Time, Change)>,
}

/// Prompts that one replica of the gateway has sent so lately that it takes them for cached.
pub(crate) struct Speculation {
    ttl: Span,
    index: PrefixIndex,
    /// When to forget what was sent, in order: the instance, and the stamp in the index.
    until: VecDeque<(Time, InstanceId, u64)>,
    /// By instance: matches of the prompt in question.
    guessed: Vec<u32>,
}

impl Events {
    pub(crate) fn new(signals: &Signals, instances: usize, block_size: u32) -> Events {
        let feed = |_| Feed { mirror: Mirror::new(block_size), under_way: VecDeque::new() };
        let delayed = signals.event_delay > Span::ZERO;
        Events {
            delay: signals.event_delay,
            feeds: if delayed { (0..instances).map(feed).collect() } else { Vec::new() },
        }
    }

    /// Whether the engines have to tell what changes in their caches.
    pub(crate) fn wants_changes(&self) -> bool {
        !self.feeds.is_empty()
    }

    /// An instance has published what has changed at `now`.
    pub(crate) fn publish(&mut self, index: usize, instance: &mut Instance, now: Time) {
        let Some(feed) = self.feeds.get_mut(index) else { return };
        let Some(changes) = instance.changes() else { return };
        let arrival = now + self.delay;
        feed.under_way.extend(changes.map(|change| (arrival, change)));
    }

    /// Writes into `views` what is known at `now` to be cached of `prompt`.
    pub(crate) fn show(
        &mut self,
        prompt: Blocks<'_>,
        instances: &[Instance],
        views: &mut [InstanceView],
        now: Time,
    ) {
        for (index, view) in views.iter_mut().enumerate() {
            let Shown { blocks, copied } = match self.feeds.get_mut(index) {
                Some(feed) => feed.at(now).lookup(prompt),
                None => instances[index].cached(prompt),
            };
            (view.cached_blocks, view.cached_cpu_blocks) = (blocks, copied);
        }
    }
}

impl Speculation {
    pub(crate) fn new(ttl: Span, instances: usize) -> Speculation {
        let (index, until) = (PrefixIndex::new(u64::MAX), VecDeque::new());
        Speculation { ttl, index, until, guessed: vec![0; instances] }
    }

    /// The gateway has sent `prompt` to `instance`.
    pub(crate) fn sent(&mut self, instance: InstanceId, prompt: Blocks<'_>, now: Time) {
        let stamp = self.index.record(instance, prompt);
        self.until.push_back((now + self.ttl, instance, stamp));
    }

    /// Adds to `views`, which hold what events have told, what is taken for cached.
    pub(crate) fn show(&mut self, prompt: Blocks<'_>, views: &mut [InstanceView], now: Time) {
        while let Some((_, instance, stamp)) = self.until.pop_front_if(|(end, ..)| *end <= now) {
            self.index.forget_upto(instance, stamp);
        }
        self.guessed.fill(0);
        self.index.matches(prompt, |instance, blocks| self.guessed[instance] = blocks);
        for (view, &guessed) in views.iter_mut().zip(&self.guessed) {
            let known = view.cached_blocks + view.cached_cpu_blocks;
            view.cached_blocks = view.cached_blocks.max(guessed);
            view.cached_cpu_blocks = known.saturating_sub(view.cached_blocks);
        }
    }
}

impl Feed {
    /// The picture at `now`.
    fn at(&mut self, now: Time) -> &Mirror {
        while let Some((_, change)) = self.under_way.pop_front_if(|(at, _)| *at <= now) {
            self.mirror.apply(&change);
        }
        &self.mirror
    }
}
