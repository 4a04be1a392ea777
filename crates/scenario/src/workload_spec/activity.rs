//! When a client is there: windows, the hours of a day, a spike, a drain.
//!
//! What they mean is written in `blis_workload::activity`; how that differs from the Go program, in
//! decision 8.

use crate::legal::{LONGEST_US, PeakToTrough};
use crate::problems::{Problems, every};
use crate::workload_spec::client::{ClientSpec, Reader};
use crate::workload_spec::notes::{Note, Notes};
use crate::yaml::{Amount, Whole};
use blis_core::{Span, Time};
use blis_workload::{Activity, ActivityPart};
use schemars::JsonSchema;
use serde::Deserialize;

/// `lifecycle:` as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LifecycleSpec {
    windows: Vec<WindowSpec>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WindowSpec {
    start_us: Option<Whole<0, LONGEST_US>>,
    end_us: Whole<0, { u64::MAX }>,
}

/// `diurnal:` as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiurnalSpec {
    peak_hour: Option<Whole<0, 23>>,
    peak_to_trough_ratio: Amount<PeakToTrough>,
}

/// `spike:` as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpikeSpec {
    start_time_us: Option<Whole<0, LONGEST_US>>,
    duration_us: Whole<1, { u64::MAX }>,
}

/// `drain:` as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DrainSpec {
    start_time_us: Option<Whole<0, LONGEST_US>>,
    ramp_duration_us: Whole<1, LONGEST_US>,
}

/// A window; one that ends beyond ten years, which nothing reaches, is cut there.
fn window(start_us: u64, end_us: u64) -> ActivityPart {
    let until = Time::from_micros(end_us.min(LONGEST_US + 1));
    ActivityPart::Window { from: Time::from_micros(start_us), until }
}

impl Reader<'_> {
    pub(super) fn activity(
        &self,
        spec: &ClientSpec,
        notes: &mut Notes<'_>,
    ) -> Result<Activity, Problems> {
        let mut parts = Vec::new();
        if let Some(lifecycle) = spec.lifecycle.given() {
            if lifecycle.windows.is_empty() {
                let message = "there is no window, so the client would never be active; add one, \
                    or remove `lifecycle`";
                return Err(self.problem("lifecycle.windows", message));
            }
            let one = |(index, WindowSpec { start_us, end_us }): (usize, &WindowSpec)| {
                let field = format!("lifecycle.windows[{index}]");
                self.whole(&[&field])?;
                let (start, end) = (start_us.map_or(0, Whole::get), end_us.get());
                if start >= end {
                    let message = format!("found `{end}`; legal: later than `start_us`, {start}");
                    return Err(self.problem(&format!("{field}.end_us"), message));
                }
                Ok(window(start, end))
            };
            parts.extend(every(lifecycle.windows.iter().enumerate().map(one))?);
        }
        if let Some(diurnal) = spec.diurnal.given() {
            parts.push(ActivityPart::Diurnal {
                peak_hour: diurnal.peak_hour.map_or(0, Whole::get_u32),
                peak_to_trough: diurnal.peak_to_trough_ratio.get(),
            });
        }
        if let Some(spike) = spec.spike.given() {
            let start = spike.start_time_us.map_or(0, Whole::get);
            parts.push(window(start, start.saturating_add(spike.duration_us.get())));
        }
        if let Some(drain) = spec.drain.given() {
            let from = Time::from_micros(drain.start_time_us.map_or(0, Whole::get));
            let over = Span::from_micros(drain.ramp_duration_us.get());
            parts.push(ActivityPart::Drain { from, over });
            if spec.diurnal.given().is_some() {
                notes.add(Note::EndlessDrain, &self.at("drain"));
            }
        }
        Ok(Activity { parts })
    }
}
