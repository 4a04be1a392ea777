//! One hunt: the highest rung at which the run of one seed meets the SLOs, by bisection.

use super::axis::Axis;

/// How a hunt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It meets at this rung, and not at the next.
    Between(i64),
    /// It meets even at the hardest rung.
    Unlimited(i64),
    /// It does not even meet at this, the easiest rung that was tried.
    Never(i64),
}

/// A hunt under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hunt {
    /// The highest rung at which it meets.
    meets: Option<i64>,
    /// The lowest rung at which it does not.
    misses: Option<i64>,
    next: i64,
    /// How far to go at a time until there is a rung of each kind; 0: to twice or half the value.
    stride: i64,
    /// How many more rungs are tried until then.
    patience: u32,
}

/// A factor of a million, by doubling.
const PATIENCE: u32 = 20;

impl Hunt {
    /// A hunt that begins at `start` and knows nothing.
    pub(super) fn from(start: i64) -> Hunt {
        Hunt { meets: None, misses: None, next: start, stride: 0, patience: PATIENCE }
    }

    /// A hunt that expects to end at `start`.
    pub(super) fn near(start: i64) -> Hunt {
        Hunt { stride: 1, patience: 2 * PATIENCE, ..Hunt::from(start) }
    }

    /// The rung to try next.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// Whether the run at [`Hunt::next`] meets the SLOs; `Some` if that ends the hunt.
    pub(super) fn tell(&mut self, meets: bool, axis: &Axis) -> Option<End> {
        let at = self.next;
        if meets {
            self.meets = Some(at);
        } else {
            self.misses = Some(at);
        }
        match (self.meets, self.misses) {
            (Some(low), Some(high)) if high - low <= 1 => return Some(End::Between(low)),
            (Some(low), Some(high)) => self.next = low + (high - low) / 2,
            _ => return self.stretch(axis),
        }
        None
    }

    /// Looks further away, while all rungs have been of one kind.
    fn stretch(&mut self, axis: &Axis) -> Option<End> {
        let (at, direction) = (self.next, if self.meets.is_some() { 1 } else { -1 });
        let doubled = axis.doubled(at, direction);
        let near = at + direction * self.stride;
        let far = (near - at).abs() >= (doubled - at).abs();
        self.next = if self.stride == 0 || far { doubled } else { near };
        self.stride *= 2;
        self.patience -= 1;
        if self.next != at && self.patience > 0 {
            return None;
        }
        Some(if self.meets.is_some() { End::Unlimited(at) } else { End::Never(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Vary;
    use super::*;

    /// Where a hunt ends and how many rungs it tries, if runs meet up to `limit`.
    fn hunted(mut hunt: Hunt, axis: &Axis, limit: i64) -> (End, usize) {
        for tried in 1..1_000 {
            if let Some(end) = hunt.tell(hunt.next() <= limit, axis) {
                return (end, tried);
            }
        }
        panic!("a hunt without end: {hunt:?}");
    }

    #[test]
    fn a_hunt_ends_at_the_last_rung_that_meets_wherever_it_starts() {
        let axis = Axis::new(Vary::Rate, 0.02);
        for limit in [-700, -3, 0, 1, 500] {
            for start in [-400, 0, 7, 620] {
                let (end, tried) = hunted(Hunt::from(start), &axis, limit);
                assert_eq!(end, End::Between(limit), "from {start}");
                assert!(tried <= 27, "{tried} rungs from {start} to {limit}");
            }
        }
        let (end, tried) = hunted(Hunt::near(200), &axis, 203);
        assert_eq!((end, tried <= 6), (End::Between(203), true), "{tried}");
    }

    #[test]
    fn what_always_or_never_meets_ends_too() {
        let axis = Axis::new(Vary::Rate, 0.02);
        assert!(matches!(hunted(Hunt::from(0), &axis, i64::MAX).0, End::Unlimited(_)));
        assert!(matches!(hunted(Hunt::near(0), &axis, i64::MIN).0, End::Never(_)));
        let axis = Axis::new(Vary::Instances, 0.02);
        assert_eq!(hunted(Hunt::from(-8), &axis, i64::MAX).0, End::Unlimited(-1));
        assert_eq!(hunted(Hunt::from(-8), &axis, -5).0, End::Between(-5));
        let (end, _) = hunted(Hunt::from(-8), &axis, i64::MIN);
        assert_eq!(end, End::Never(axis.lowest()));
    }
}
