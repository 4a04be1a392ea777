//! The wall clock and the CPU clock. Nothing that is simulated may depend on them.
#![expect(clippy::disallowed_types, reason = "the one module that may read a clock")]

use std::time::Instant;

/// Measures how long a run takes outside the simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    cpu: Option<f64>,
}

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { started: Instant::now(), cpu: cpu_seconds() }
    }

    /// Seconds since the start.
    pub(crate) fn wall_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// CPU seconds of all threads since the start, where the system tells.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        Some(cpu_seconds()? - self.cpu?)
    }
}

/// CPU seconds of this process, threads that ended included.
fn cpu_seconds() -> Option<f64> {
    // Linux counts in hundredths of a second here, whatever the kernel's own tick is.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets, which may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u32>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}
