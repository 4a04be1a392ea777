//! The story of one request as it is told when it ends, and the parts of its TTFT.

use blis_core::{InstanceId, RequestId, SessionId, SloClass, Span, TenantId, Time};

/// The story of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
    /// Which.
    pub request: RequestId,
    /// The name its trace gave it.
    pub name: Option<&'a str>,
    /// When the client sent it.
    pub arrival: Time,
    /// Service class.
    pub class: SloClass,
    /// Tenant.
    pub tenant: TenantId,
    /// Session, if it is a round of one.
    pub session: Option<SessionId>,
    /// Round within the session.
    pub round: u32,
    /// The client's own deadline for the whole answer.
    pub deadline: Option<Span>,
    /// How long the client waits for the first token.
    pub patience: Option<Span>,
    /// Where it was routed.
    pub instance: Option<InstanceId>,
    /// Prompt length in tokens.
    pub input_tokens: u32,
    /// Tokens generated so far.
    pub output_tokens: u32,
    /// Prompt tokens found in the prefix cache when it was first scheduled.
    pub cached_tokens: Option<u32>,
    /// Prompt tokens that the router believed were cached.
    pub expected_cached_tokens: Option<u32>,
    /// How often it was preempted.
    pub preemptions: u32,
    /// Arrival to first token leaving the server, once it has.
    pub ttft: Option<Span>,
    /// Arrival to last token leaving the server, once it has.
    pub e2e: Option<Span>,
    /// Where the time before the first token went; adds up to `ttft` exactly.
    pub split: TtftSplit,
}

impl Record<'_> {
    /// The same without the name, for those who keep it.
    pub fn nameless(&self) -> Record<'static> {
        // Destructured without `..`, so that a new field makes this line decide about it.
        let &Record {
            request,
            name: _,
            arrival,
            class,
            tenant,
            session,
            round,
            deadline,
            patience,
            instance,
            input_tokens,
            output_tokens,
            cached_tokens,
            expected_cached_tokens,
            preemptions,
            ttft,
            e2e,
            split,
        } = self;
        Record {
            request,
            name: None,
            arrival,
            class,
            tenant,
            session,
            round,
            deadline,
            patience,
            instance,
            input_tokens,
            output_tokens,
            cached_tokens,
            expected_cached_tokens,
            preemptions,
            ttft,
            e2e,
            split,
        }
    }
}

/// The parts of the time to first token. While there is no first token yet, the time spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TtftSplit {
    /// Arrival to joining the instance's queue: admission, routing, ingress.
    pub gateway: Span,
    /// Waiting in the queue, again after preemptions included.
    pub queue: Span,
    /// Waiting for KV blocks to be copied back.
    pub reload: Span,
    /// Running, from the scheduling that led to the first token on.
    pub prefill: Span,
    /// Running before a preemption that came before the first token: work done again.
    pub recompute: Span,
    /// Output processing of the first token.
    pub output: Span,
}

impl TtftSplit {
    /// The parts with their names, in the order of a request's life.
    pub fn parts(&self) -> [(&'static str, Span); 6] {
        let TtftSplit { gateway, queue, reload, prefill, recompute, output } = *self;
        [
            ("gateway", gateway),
            ("queue", queue),
            ("reload", reload),
            ("prefill", prefill),
            ("recompute", recompute),
            ("output", output),
        ]
    }

    /// The sum of the parts.
    pub fn total(&self) -> Span {
        self.parts().iter().map(|&(_, span)| span).sum()
    }
}
