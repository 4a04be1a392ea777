//! `kv-filter`: no instance whose KV memory is nearly full.
//!
//! **Prefers** instances with room: those whose running requests hold more than a share of the KV
//! blocks are left out.
//!
//! **Reads** `kv_utilization` (as old as the last poll).
//!
//! **Parameters** `max-utilization`: the greatest share of blocks in use that is still considered.
//!
//! **Origin** the KV threshold of llm-d's first scheduler, which left out what was above 0.8.

use crate::prelude::*;

/// How `kv-filter` introduces itself.
pub const SPEC: Spec<dyn Filter> = Spec {
    name: "kv-filter",
    help: "Drops instances whose KV blocks are nearly all in use",
    params: &[Param::float("max-utilization", 0.0..=1.0, 0.8, "")
        .help("Drop instances above this share of blocks in use")],
    needs: |_| Needs { kv: true, ..Needs::NONE },
    ..Spec::built_by(|values, _| Box::new(KvFilter { most: values.float("max-utilization") }))
};

/// A limit on the share of KV blocks in use.
#[derive(Clone, Copy, Debug)]
pub struct KvFilter {
    most: f64,
}

impl Filter for KvFilter {
    fn keep(
        &mut self,
        _: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
        kept: &mut [bool],
    ) {
        cluster.each(kept, |view| view.kv_utilization <= self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, dice, instances, request};

    #[test]
    fn only_instances_above_the_limit_are_left_out() {
        let mut views = instances(&[0, 0, 0]);
        views[1].kv_utilization = 0.8;
        views[2].kv_utilization = 0.81;
        let mut kept = [true; 3];
        let mut filter = KvFilter { most: 0.8 };
        filter.keep(&request(&NOTHING), &cluster(&views), &mut dice(0), &mut kept);
        assert_eq!(kept, [true, true, false]);
    }
}
