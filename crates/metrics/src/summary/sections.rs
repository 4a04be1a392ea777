//! The sections of the report: by class, tenant, instance and pool, and of memory and routing.

use super::large::By;
use super::tally::{Tally, TierTally};
use super::{CLASSES, Latencies, Pool, Summary, decomposition, jain, per};
use crate::report::{
    InstanceSection, KvSection, Latency, PoolSection, RoutingSection, Section, SplitStats,
};
use crate::sample::Groups;
use blis_core::math::float;
use blis_core::{InstanceId, SloClass, Span, TenantId};

impl Summary {
    pub(super) fn class_sections(
        &self,
        cluster: &Section,
        elapsed: Span,
    ) -> Vec<(SloClass, Section)> {
        let mut seen = SloClass::ALL.to_vec();
        seen.retain(|class| self.classes[class.index()].counts.offered > 0);
        if let [only] = seen[..] {
            return vec![(only, cluster.clone())];
        }
        let latencies = self.latencies(CLASSES, By::Class);
        let numbers = |class: SloClass| {
            let i = class.index();
            let itl = self.per_token(self.gaps.column(i).latency(), &self.classes[i]);
            (class, self.classes[i].section(&latencies[i], itl, elapsed))
        };
        seen.into_iter().map(numbers).collect()
    }

    pub(super) fn class_splits(
        &self,
        rows: &Groups,
        sections: &[(SloClass, Section)],
        cluster: Option<SplitStats>,
    ) -> Vec<(SloClass, SplitStats)> {
        let split = |class: SloClass| {
            let members = rows.members(class.index());
            let everybody = members.len() == self.rows.len();
            let of_class =
                if everybody { cluster } else { decomposition::split_of(&self.rows, members) };
            let section = sections.iter().find(|(other, _)| *other == class);
            Some((class, self.whole_split(of_class, Some(class), &section?.1.ttft)?))
        };
        SloClass::ALL.into_iter().filter_map(split).collect()
    }

    pub(super) fn tenant_sections(
        &self,
        cluster: &Latencies,
        elapsed: Span,
    ) -> Vec<(TenantId, Section)> {
        let itl = |tally: &Tally| Latency { mean_ms: tally.itl_mean_ms(), ..Latency::default() };
        if let [tally] = &self.tenants[..] {
            // The only tenant's latencies are the cluster's; there is nothing to group.
            return vec![(TenantId(0), tally.section(cluster, itl(tally), elapsed))];
        }
        let latencies = self.latencies(self.tenants.len(), By::Tenant);
        let ids = (0..).map(TenantId);
        ids.zip(&self.tenants)
            .enumerate()
            .filter(|(_, (_, tally))| tally.counts.offered > 0)
            .map(|(i, (tenant, tally))| (tenant, tally.section(&latencies[i], itl(tally), elapsed)))
            .collect()
    }

    pub(super) fn instance_sections(&self, elapsed: Span, whole: Span) -> Vec<InstanceSection> {
        let latencies = self.latencies(self.instances.len(), By::Instance);
        let itl = self.gaps.latency_by_tag(self.instances.len(), |tag| tag);
        let ids = (0..).map(InstanceId);
        ids.zip(&self.instances)
            .enumerate()
            .map(|(i, (instance, all))| {
                let itl = self.per_token(itl[i], &all.requests);
                let requests = all.requests.section(&latencies[i], itl, elapsed);
                all.steps.section(instance, requests, whole)
            })
            .collect()
    }

    pub(super) fn pool_sections(
        &self,
        instances: &[InstanceSection],
        elapsed: Span,
    ) -> Vec<PoolSection> {
        if self.pools.is_empty() {
            return Vec::new();
        }
        let latencies = self.latencies(self.pools.len(), By::Pool);
        let itl = self.gaps.latency_by_tag(self.pools.len(), |instance| self.home(instance));
        let numbers = |(i, pool): (usize, &Pool)| {
            let members = &instances[pool.members.clone()];
            let busy = members.iter().filter_map(|one| one.utilization).sum();
            PoolSection {
                name: pool.name.clone(),
                instances: members.len(),
                requests: {
                    let itl = self.per_token(itl[i], &pool.requests);
                    pool.requests.section(&latencies[i], itl, elapsed)
                },
                steps: members.iter().map(|one| one.steps).sum(),
                utilization: per(busy, float(members.len() as u64)),
            }
        };
        self.pools.iter().enumerate().map(numbers).collect()
    }

    /// Inter-token latencies of a group, of which the mean is by token if tokens were handed out
    /// several at once: percentiles are those between hand-outs.
    pub(super) fn per_token(&self, itl: Latency, group: &Tally) -> Latency {
        let mean = group.itl_mean_ms().filter(|_| self.drafts);
        Latency { mean_ms: mean.or(itl.mean_ms), ..itl }
    }

    /// The pool of an instance.
    pub(super) fn home(&self, instance: usize) -> usize {
        self.pools.iter().position(|pool| pool.members.contains(&instance)).unwrap_or_default()
    }

    /// The latencies of each of `groups` groups of requests.
    pub(super) fn latencies(&self, groups: usize, by: By) -> Vec<Latencies> {
        if let Some(large) = &self.large {
            return self.counted_latencies(large, groups, by);
        }
        let rows = &self.rows;
        let rows = match by {
            By::Cluster => return vec![Latencies::of(rows.iter(), &self.delays)],
            By::Class => Groups::of(rows, groups, |row| row.class.index()),
            By::Tenant => Groups::of(rows, groups, |row| row.tenant as usize),
            By::Instance => Groups::of(rows, groups, |row| row.instance as usize),
            By::Pool => Groups::of(rows, groups, |row| self.home(row.instance as usize)),
        };
        let members = |group| rows.members(group).map(|index| &self.rows[index]);
        (0..groups).map(|group| Latencies::of(members(group), &self.delays)).collect()
    }

    pub(super) fn kv_section(&self) -> KvSection {
        let evicted = self.instances.iter().map(|instance| instance.steps.evicted_blocks).sum();
        let busy = self.instances.iter().map(|instance| instance.steps.busy()).sum();
        let mut tier = TierTally::default();
        self.instances.iter().for_each(|instance| tier.add(&instance.steps.tier));
        self.cache.section(evicted, tier.section(busy))
    }

    pub(super) fn routing_section(&self) -> RoutingSection {
        let sent: Vec<u64> = self.instances.iter().map(|instance| instance.sent).collect();
        let total = float(sent.iter().sum());
        let most = float(sent.iter().copied().max().unwrap_or(0));
        RoutingSection {
            max_over_mean: per(most * float(sent.len() as u64), total),
            jain_balance: jain(sent.iter().map(|&n| float(n))),
            sent,
        }
    }

    pub(super) fn fairness(&self) -> Option<f64> {
        let seen = self.tenants.iter().filter(|tally| tally.counts.offered > 0);
        let mut shares: Vec<f64> =
            seen.map(|t| float(t.counts.completed) / float(t.counts.offered)).collect();
        if shares.is_empty() {
            return None;
        }
        // In an order of their own, so that the sum is the same however tenants are numbered.
        shares.sort_by(f64::total_cmp);
        // Nobody served anything: everybody was treated alike.
        Some(jain(shares.into_iter()).unwrap_or(1.0))
    }
}
