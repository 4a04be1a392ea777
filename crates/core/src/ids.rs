//! Dense ids. All are plain indices, so tables over them are `Vec`s.

/// A request: its place in the order of arrival, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An engine instance of the cluster, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u32);

/// A tenant, as numbered by the request source; its name is in [`crate::Source::tenant_name`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u32);

/// A session (conversation), as numbered by the request source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A stream of tokens; equal stream prefixes mean equal tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl InstanceId {
    /// The id as an index into tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
