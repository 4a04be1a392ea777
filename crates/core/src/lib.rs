//! Words that every crate of BLIS shares.
//!
//! Time and spans, ids, requests and their content, policy parameters, random streams and portable
//! math. This crate must never do I/O, read a clock, print, or know about serialisation, policies
//! or engines.

pub mod content;
pub mod ids;
pub mod math;
pub mod param;
pub mod random;
pub mod request;
pub mod runs;
pub mod time;

pub use content::{Blocks, Content, Segment};
pub use ids::{InstanceId, RequestId, SessionId, StreamId, TenantId};
pub use param::{Param, ParamKind, Value, Values, When};
pub use random::Dice;
pub use request::{Ending, Request, RequestView, SloClass, Source};
pub use time::{Span, Time};
