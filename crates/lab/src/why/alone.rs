//! A request alone on an idle instance, with the start of its prompt in the prefix cache.

use blis_core::{Content, Request, RequestId, Segment, Source, StreamId, TenantId, Time};
use blis_metrics::{Fact, Life, Listener, Lives, Record};
use blis_policy::admission::always_admit;
use blis_policy::{Chosen, Gate};
use blis_scenario::scenario::oracles::Oracles;
use blis_scenario::{Plan, RunFailure, Trial};
use blis_sim::{Gateway, Signals, Unobserved};
use std::error::Error;

/// Long after any request has ended that comes first.
const LATER: Time = Time::from_micros(86_400_000_000);

/// What `request` does alone on an idle instance of `plan` that has the first `cached` tokens of
/// its prompt.
pub(super) fn alone(
    plan: &Plan,
    request: &Request,
    cached: u32,
) -> Result<(Life, Record<'static>), RunFailure> {
    let mut plan = plan.clone();
    (plan.instances, plan.gateways, plan.horizon, plan.patience) = (1, 1, None, None);
    (plan.gateway, plan.signals) = (Gateway::default(), Signals::IMMEDIATE);
    (plan.oracles, plan.warmup) = (Oracles::default(), Time::ZERO);
    plan.policies.admission = Gate::One(Chosen::plain(&always_admit::SPEC));
    let config = plan.config(&Trial { details: true, ..Trial::new(plan.seed) });
    let request = Request { arrival: LATER, patience: None, ..request.clone() };
    let mut source = Few { requests: vec![request.clone()] };
    if cached > 0 {
        // Whoever had the same start before leaves it in the cache.
        let content = beginning(&request.content, cached);
        let (arrival, session) = (Time::ZERO, None);
        source.requests.push(Request { arrival, session, content, output_tokens: 1, ..request });
    }
    let mut last = Last { lives: Lives::watching((0..2).map(RequestId)), ended: None };
    let ran = blis_sim::run(config, &mut source, &mut last, &mut Unobserved);
    ran.map_err(|error| RunFailure::Source(error.to_string()))?;
    last.ended.ok_or_else(|| RunFailure::Broken("a request alone did not end".to_owned()))
}

/// The first `tokens` tokens of a prompt.
fn beginning(content: &Content, tokens: u32) -> Content {
    let mut left = tokens;
    let cut = content.segments().iter().map(|segment| {
        let tokens = segment.tokens.min(left);
        left -= tokens;
        Segment { tokens, ..*segment }
    });
    let kept: Vec<Segment> = cut.filter(|segment| segment.tokens > 0).collect();
    Content::new(kept, StreamId(u64::MAX))
}

/// Requests, the last first.
struct Few {
    requests: Vec<Request>,
}

impl Source for Few {
    fn next_request(&mut self) -> Result<Option<Request>, Box<dyn Error + Send + Sync>> {
        Ok(self.requests.pop())
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn tenant_name(&self, tenant: TenantId) -> String {
        tenant.0.to_string()
    }
}

/// Keeps the request that ends last.
struct Last {
    lives: Lives,
    ended: Option<(Life, Record<'static>)>,
}

impl Listener for Last {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        if let Some(life) = self.lives.hear(at, fact)
            && let Fact::Closed { record, .. } = fact
        {
            self.ended = Some((life, record.nameless()));
        }
    }
}
