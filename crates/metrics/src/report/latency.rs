//! The statistics of a latency among the fields of their group, e.g. `ttft_mean_ms`.
//!
//! For `#[serde(flatten, with = "latency::ttft")]`.

use super::Latency;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use std::fmt;

macro_rules! prefixes {
    ($($name:ident),*) => {$(
        pub(super) mod $name {
            use super::{Deserializer, Latency, Prefix, Serializer, write};

            const PREFIX: &str = concat!(stringify!($name), "_");

            pub(in super::super) fn serialize<S: Serializer>(
                latency: &Latency,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                write(PREFIX, latency, to)
            }

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<Latency, D::Error> {
                from.deserialize_map(Prefix(PREFIX))
            }
        }
    )*};
}

prefixes!(ttft, itl, e2e, scheduling_delay);

fn write<S: Serializer>(prefix: &str, latency: &Latency, to: S) -> Result<S::Ok, S::Error> {
    let Latency { samples, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms } = latency;
    let mut fields = to.serialize_map(None)?;
    for (statistic, value) in [
        ("mean_ms", mean_ms),
        ("p50_ms", p50_ms),
        ("p90_ms", p90_ms),
        ("p95_ms", p95_ms),
        ("p99_ms", p99_ms),
        ("max_ms", max_ms),
    ] {
        fields.serialize_entry(&format!("{prefix}{statistic}"), value)?;
    }
    if *samples > 0 {
        fields.serialize_entry(&format!("{prefix}samples"), samples)?;
    }
    fields.end()
}

/// Reads the fields whose names begin so.
struct Prefix(&'static str);

impl<'de> Visitor<'de> for Prefix {
    type Value = Latency;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fields `{}...`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Latency, A::Error> {
        let mut latency = Latency::default();
        while let Some(name) = fields.next_key::<String>()? {
            match name.strip_prefix(self.0) {
                Some("samples") => latency.samples = fields.next_value()?,
                Some("mean_ms") => latency.mean_ms = fields.next_value()?,
                Some("p50_ms") => latency.p50_ms = fields.next_value()?,
                Some("p90_ms") => latency.p90_ms = fields.next_value()?,
                Some("p95_ms") => latency.p95_ms = fields.next_value()?,
                Some("p99_ms") => latency.p99_ms = fields.next_value()?,
                Some("max_ms") => latency.max_ms = fields.next_value()?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(latency)
    }
}
