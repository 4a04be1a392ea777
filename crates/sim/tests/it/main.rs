//! The simulator against hand-made cases, itself, and theory.

mod belady;
mod evictors;
mod exhaustive;
mod gates;
mod gateways;
mod golden;
mod golden_async;
mod golden_connector;
mod golden_tier;
mod harness;
mod oracles;
mod patience;
mod pipeline;
mod pools;
mod relations;
mod signals;
mod speculation;
mod timeline;
mod victims;
mod worlds;
