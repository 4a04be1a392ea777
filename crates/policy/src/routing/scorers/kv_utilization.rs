//! `kv-utilization`: how much KV memory an instance has left.
//!
//! **Prefers** a small share of KV blocks held by running requests: 1 - utilization.
//!
//! **Reads** `kv_utilization` (as old as the last poll).
//!
//! **Parameters** none.
//!
//! **Origin** llm-d's KV-cache-utilization scorer. Idle cached blocks count as free, so a warm
//! instance is not punished for its cache.

use crate::prelude::*;
use crate::routing::scorers::plain::{Absolute, Score};

/// How `kv-utilization` introduces itself.
pub const SPEC: Spec<dyn Scorer> = Spec {
    name: "kv-utilization",
    alias: Some("kv"),
    help: "Prefers instances with a small share of KV blocks in use",
    needs: |_| Needs { kv: true, ..Needs::NONE },
    ..Spec::built_by(|_, _| Absolute::<KvUtilization>::boxed())
};

/// 1 - utilization of the KV blocks.
#[derive(Clone, Copy, Debug)]
pub struct KvUtilization;

impl Score for KvUtilization {
    fn score(view: &InstanceView) -> f64 {
        (1.0 - view.kv_utilization).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::{NOTHING, cluster, instances, request};

    #[test]
    fn the_score_is_the_share_of_blocks_that_are_not_in_use() {
        let mut views = instances(&[0, 0, 0]);
        views[1].kv_utilization = 0.25;
        views[2].kv_utilization = 1.0;
        let mut scores = vec![f64::NAN; 3];
        Absolute::<KvUtilization>::boxed().score(&request(&NOTHING), &cluster(&views), &mut scores);
        assert_eq!(scores, [1.0, 0.75, 0.0]);
    }
}
