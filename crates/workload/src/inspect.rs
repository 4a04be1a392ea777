//! What a workload looks like: how fast requests come, how long they are, how much they share.
//!
//! `blis trace inspect` feeds an [`Inspector`] request by request and prints the [`Inspection`].
//! Memory does not grow with the number of requests, but for an entry a tenant, an entry a session
//! and, if sharing is looked at, the tree of everything that was prompted or generated. It must
//! never judge: whether a workload is good for a cluster is for a simulation to say.

mod arrivals;
mod sessions;
mod sharing;
mod spread;

pub use arrivals::{Arrivals, Timeline};
pub use sessions::SessionStats;
pub use sharing::{SharedStretch, Sharing};
pub use spread::{Bar, QUANTILE_ERROR, Spread};

use arrivals::ArrivalCount;
use blis_core::{Request, SloClass, TenantId};
use sessions::SessionCount;
use sharing::SharingCount;
use spread::Histogram;

/// Tenants that an inspection lists.
const TENANTS_LISTED: usize = 10;

/// Looks at requests, one by one in order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Inspector {
    requests: u64,
    arrivals: ArrivalCount,
    input: Histogram,
    output: Histogram,
    total: Histogram,
    deadlines: Histogram,
    classes: [Group; SloClass::ALL.len()],
    tenants: Vec<Group>,
    sessions: SessionCount,
    sharing: Option<SharingCount>,
}

/// What a workload looks like.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// How many requests there are.
    pub requests: u64,
    /// When they come; absent if there are none.
    pub arrivals: Option<Arrivals>,
    /// Prompt tokens of a request.
    pub input: Option<Spread>,
    /// Output tokens of a request.
    pub output: Option<Spread>,
    /// Both together.
    pub total: Option<Spread>,
    /// Deadlines in nanoseconds, of the requests that have one.
    pub deadlines: Option<Spread>,
    /// The classes that there are, most important first.
    pub classes: Vec<(SloClass, Group)>,
    /// The ten tenants with the most requests, the most first.
    pub tenants: Vec<(TenantId, Group)>,
    /// How many tenants there are.
    pub tenant_count: u64,
    /// Sessions, if there are any.
    pub sessions: Option<SessionStats>,
    /// What requests share, if that was looked at.
    pub sharing: Option<Sharing>,
}

/// The requests of a class or a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// How many.
    pub requests: u64,
    /// Their prompt tokens.
    pub input_tokens: u64,
    /// Their output tokens.
    pub output_tokens: u64,
}

impl Group {
    fn see(&mut self, request: &Request) {
        self.requests += 1;
        self.input_tokens += u64::from(request.content.prompt_tokens());
        self.output_tokens += u64::from(request.output_tokens);
    }
}

impl Inspector {
    /// An inspector that does not look at what requests share: the memory for that grows with the
    /// workload.
    pub fn new() -> Inspector {
        Inspector::default()
    }

    /// An inspector that looks at what requests share, in blocks of `block_size` tokens.
    ///
    /// # Panics
    /// If a block has no tokens.
    pub fn with_sharing(block_size: u32) -> Inspector {
        assert!(block_size > 0, "a block has tokens");
        Inspector { sharing: Some(SharingCount::new(block_size)), ..Inspector::default() }
    }

    /// Looks at the next request, which arrives no earlier than the ones before.
    pub fn see(&mut self, request: &Request) {
        self.requests += 1;
        self.arrivals.see(request.arrival);
        let (input, output) = (request.content.prompt_tokens(), request.output_tokens);
        self.input.add(input.into());
        self.output.add(output.into());
        self.total.add(u64::from(input) + u64::from(output));
        if let Some(deadline) = request.deadline {
            self.deadlines.add(deadline.as_nanos());
        }
        self.classes[request.class.index()].see(request);
        let tenant = request.tenant.0 as usize;
        if self.tenants.len() <= tenant {
            self.tenants.resize(tenant + 1, Group::default());
        }
        self.tenants[tenant].see(request);
        self.sessions.see(request);
        if let Some(sharing) = &mut self.sharing {
            sharing.see(request);
        }
    }

    /// What was seen.
    pub fn finish(self) -> Inspection {
        let seen = |(_, group): &(_, Group)| group.requests > 0;
        let mut tenants: Vec<(TenantId, Group)> =
            (0..).map(TenantId).zip(self.tenants).filter(|(_, group)| group.requests > 0).collect();
        let tenant_count = tenants.len() as u64;
        // Stable, so that among equals the tenant that came first is listed first.
        tenants.sort_by_key(|(_, group)| std::cmp::Reverse(group.requests));
        tenants.truncate(TENANTS_LISTED);
        Inspection {
            requests: self.requests,
            arrivals: self.arrivals.finish(),
            input: self.input.spread(),
            output: self.output.spread(),
            total: self.total.spread(),
            deadlines: self.deadlines.spread(),
            classes: SloClass::ALL.into_iter().zip(self.classes).filter(seen).collect(),
            tenants,
            tenant_count,
            sessions: self.sessions.finish(),
            sharing: self.sharing.map(SharingCount::finish),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::{Content, RequestId, Segment, Span, StreamId, Time};

    fn request(number: u64, tenant: u32, class: SloClass) -> Request {
        let stream = StreamId(number);
        Request {
            id: RequestId(number),
            name: None,
            arrival: Time::from_micros(number),
            content: Content::new([Segment { stream, tokens: 10 }], stream),
            output_tokens: 5,
            class,
            tenant: TenantId(tenant),
            session: None,
            round: 0,
            attempt: 0,
            deadline: (tenant == 3).then(|| Span::from_micros(7_000)),
            patience: None,
        }
    }

    #[test]
    fn classes_and_tenants_add_up_and_the_largest_tenants_are_listed() {
        let mut inspector = Inspector::new();
        for number in 0..100 {
            // Tenant t has t + 1 requests, up to tenant 12; tenant 13 has the rest.
            let tenant = (0..13).find(|t| number < (t + 1) * (t + 2) / 2).unwrap_or(13);
            let class = if number % 4 == 0 { SloClass::Batch } else { SloClass::Critical };
            inspector.see(&request(number, u32::try_from(tenant).unwrap(), class));
        }
        let found = inspector.finish();
        assert_eq!((found.requests, found.tenant_count, found.tenants.len()), (100, 14, 10));
        let listed: Vec<(u32, u64)> =
            found.tenants.iter().map(|(tenant, group)| (tenant.0, group.requests)).collect();
        assert_eq!(listed[..3], [(12, 13), (11, 12), (10, 11)]);
        let classes: Vec<(SloClass, u64)> =
            found.classes.iter().map(|(class, group)| (*class, group.requests)).collect();
        assert_eq!(classes, [(SloClass::Critical, 75), (SloClass::Batch, 25)]);
        assert_eq!(found.classes[0].1.input_tokens, 750);
        let deadlines = found.deadlines.expect("tenant 3 has some");
        assert_eq!((deadlines.count, deadlines.min, deadlines.max), (4, 7_000_000, 7_000_000));
        assert_eq!(found.total.expect("there are requests").mean.to_bits(), 15_f64.to_bits());
    }

    #[test]
    fn nothing_seen_is_nothing_found() {
        let found = Inspector::with_sharing(16).finish();
        assert_eq!((found.requests, found.tenant_count), (0, 0));
        assert!(found.arrivals.is_none() && found.input.is_none() && found.sessions.is_none());
        assert!(found.classes.is_empty() && found.tenants.is_empty() && found.deadlines.is_none());
        assert_eq!(found.sharing.expect("it was looked at").hit_share(), None);
    }
}
