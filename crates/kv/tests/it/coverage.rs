//! How often each of the interesting cases happened, so that no property holds for want of them.

/// Something that a history must have met before its agreement means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// A claim ends inside a run.
    SplitByClaim,
    /// A commit leaves a published run inside it.
    SplitByCommit,
    /// A block was published already when it was committed.
    MergedBlock,
    /// Such a block was idle.
    MergedIdleBlock,
    /// A claim finds idle blocks.
    IdleHit,
    /// A claim finds blocks in use.
    HeldHit,
    /// A claim begins with blocks in use and ends with idle ones.
    MixedHit,
    /// A commit lengthens the run that the request holds.
    Extension,
    /// A commit begins a new run below another.
    Branch,
    /// An eviction leaves the beginning of a run.
    PartialEviction,
    /// An eviction takes a whole run.
    WholeEviction,
    /// A block of worth becomes idle.
    WorthyBlock,
    /// A run is cut where its worth changes.
    SplitByRelease,
    /// An older block of less worth is passed over, because a resident one continues it.
    PassedOver,
    /// A lookup of a request goes on in the tier.
    CopiedHit,
    /// A lookup of a request finds copies and nothing before them.
    CopiedHitAlone,
    /// A block that only the tier had is computed or reloaded.
    Adoption,
    /// A block is committed whose copy was lost while copies behind it stayed.
    Gap,
    /// A whole departure lands.
    LandedWhole,
    /// A part of a departure lands: the rest was abandoned.
    LandedInPart,
    /// A departure lands of which nothing is left.
    LandedNothing,
    /// A departure lands before one that left earlier.
    Overtaken,
    /// A block is evicted while its copy is on its way.
    Abandoned,
    /// A block is committed again while the copy that was abandoned is still on its way.
    BackBeforeLanding,
    /// A block is evicted whose copy stays.
    EvictedWithCopy,
    /// The tier drops a copy.
    CopyDropped,
    /// The tier drops a copy whose block is resident.
    CopyOfResidentDropped,
    /// A departure is cut down to the tier.
    CutToTier,
    /// A departure of idle blocks stops at its limit.
    CutToLimit,
    /// A block that is on its way is copied at once.
    CopiedOnItsWay,
    /// A copy that is there is made again, and so is the warmest.
    CopiedAgain,
    /// A read starts behind a copy that is there.
    ReadFromInside,
    /// A read ends before a copy that is there.
    ReadUptoInside,
    /// A read finds copies that are recent and others that are not.
    ReadSomeRecent,
}

/// How many cases there are.
const CASES: usize = Case::ReadSomeRecent as usize + 1;

impl Case {
    /// Those that need neither a tier nor worths.
    pub(crate) const PLAIN: [Case; 11] = [
        Case::SplitByClaim,
        Case::SplitByCommit,
        Case::MergedBlock,
        Case::MergedIdleBlock,
        Case::IdleHit,
        Case::HeldHit,
        Case::MixedHit,
        Case::Extension,
        Case::Branch,
        Case::PartialEviction,
        Case::WholeEviction,
    ];

    /// Those that need worths.
    pub(crate) const WORTH: [Case; 2] = [Case::WorthyBlock, Case::PassedOver];

    /// Those that need evictors that cut runs.
    pub(crate) const CUT: [Case; 1] = [Case::SplitByRelease];

    /// Those that need a tier.
    pub(crate) const TIER: [Case; 20] = [
        Case::CopiedHit,
        Case::CopiedHitAlone,
        Case::Adoption,
        Case::Gap,
        Case::LandedWhole,
        Case::LandedInPart,
        Case::LandedNothing,
        Case::Overtaken,
        Case::Abandoned,
        Case::BackBeforeLanding,
        Case::EvictedWithCopy,
        Case::CopyDropped,
        Case::CopyOfResidentDropped,
        Case::CutToTier,
        Case::CutToLimit,
        Case::CopiedOnItsWay,
        Case::CopiedAgain,
        Case::ReadFromInside,
        Case::ReadUptoInside,
        Case::ReadSomeRecent,
    ];
}

/// Counts of cases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coverage([u64; CASES]);

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage([0; CASES])
    }
}

impl Coverage {
    /// A case happened, if `happened`.
    pub(crate) fn note(&mut self, case: Case, happened: bool) {
        self.0[case as usize] += u64::from(happened);
    }

    pub(crate) fn add(&mut self, other: &Coverage) {
        for (sum, times) in self.0.iter_mut().zip(other.0) {
            *sum += times;
        }
    }

    /// Checks that each of `cases` happened at least `least` times.
    pub(crate) fn assert_met(&self, cases: &[Case], least: u64) {
        for &case in cases {
            let times = self.0[case as usize];
            assert!(times >= least, "{case:?} happened {times} times only");
        }
    }
}
