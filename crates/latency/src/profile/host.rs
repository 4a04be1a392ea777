//! The host's part of a step: a named number for each thing that the engine's thread does.

use super::padding::Padding;
use crate::shape::{HostTime, StepShape};
use blis_core::Span;

/// How many numbers there are.
pub const HOST_TERMS: usize = 15;

/// What each number is called, its unit and what it stands for. Those of a sequence follow the one
/// of the step.
pub const HOST: [super::term::Term; HOST_TERMS] = {
    use super::term::term;
    [
        term("schedule", "us/step", "a turn of the loop begins, and the step is scheduled"),
        term("schedule_seq", "us/sequence", "and for each sequence"),
        term("schedule_prefill", "us/sequence", "and more for each that catches up"),
        term("prepare", "us/step", "inputs are prepared; then the GPU can begin"),
        term("prepare_seq", "us/sequence", "and for each sequence"),
        term("pieces", "us/step", "with prefill: the graphs between the layers are launched"),
        term("pieces_seq", "us/sequence", "and for each sequence"),
        term("eager", "us/step", "the same without a captured graph of that size"),
        term("sample", "us/step", "sampling is launched"),
        term("sample_seq", "us/sequence", "and for each sequence"),
        term("update", "us/step", "tokens are copied to the host and processed"),
        term("update_seq", "us/sequence", "and for each sequence"),
        term("way_in", "us/request", "from the client to the engine's queue"),
        term("way_out", "us/step", "from the engine to the client"),
        term("way_out_seq", "us/sequence", "and for each sequence"),
    ]
};

/// Where sampling stands among them.
pub(crate) const SAMPLE: usize = 8;

/// What the host takes, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The numbers of `HOST`. A synchronous engine has the same: `docs/validation/fidelity.md`.
    pub us: [f64; HOST_TERMS],
    /// How far whole runs were off, as a share (root mean square): hosts differ.
    pub drift: f64,
}

impl Host {
    /// The same on a host that is slower by `factor` throughout.
    #[must_use]
    pub fn slower(&self, factor: f64) -> Host {
        Host { us: self.us.map(|us| us * factor), ..self.clone() }
    }

    /// The same where all but the ways in and out takes `factor` times as long.
    #[must_use]
    pub fn with_steps(&self, factor: f64) -> Host {
        let mut host = self.slower(factor);
        host.us[12..].copy_from_slice(&self.us[12..]);
        host
    }

    /// The same server with so many times as many layers: their graphs are launched one by one.
    #[must_use]
    pub(crate) fn for_layers(&self, factor: f64) -> Host {
        let mut host = self.clone();
        for at in [5, 7] {
            host.us[at] *= factor;
        }
        host
    }

    /// What a step costs in a server that captured graphs of these sizes.
    pub(crate) fn padded_time(&self, shape: &StepShape, padding: &Padding) -> HostTime {
        let sizes = if shape.only_decodes() { &padding.decode } else { &padding.prefill };
        self.time(shape, sizes.largest().is_none_or(|largest| shape.tokens() <= largest))
    }

    /// The number at `at`, and the next one for each of `seqs` sequences.
    pub(crate) fn cost(&self, at: usize, seqs: u32) -> f64 {
        self.us[at] + self.us[at + 1] * f64::from(seqs)
    }

    /// The way in.
    pub(crate) fn ingress(&self) -> Span {
        Span::from_micros_f64(self.us[12])
    }

    /// The way out of the tokens of `seqs` sequences.
    pub(crate) fn output(&self, seqs: u32) -> Span {
        Span::from_micros_f64(self.cost(13, seqs))
    }

    /// What a step costs; `captured` says whether a graph of its size was captured.
    pub fn time(&self, shape: &StepShape, captured: bool) -> HostTime {
        let seqs = shape.prefill_seqs + shape.decode_seqs;
        let schedule = self.cost(0, seqs) + self.us[2] * f64::from(shape.prefill_seqs);
        let pieces = match (shape.only_decodes(), captured) {
            (true, true) => 0.0,
            (false, true) => self.cost(5, seqs),
            // Hosts prepare a sequence for the layers as they do with graphs, whatever they launch.
            (_, false) => self.us[7] + self.us[6] * f64::from(seqs),
        };
        HostTime {
            schedule: Span::from_micros_f64(schedule),
            prepare: Span::from_micros_f64(self.cost(3, seqs)),
            launch: Span::from_micros_f64(pieces + self.cost(SAMPLE, seqs)),
            update: Span::from_micros_f64(self.cost(10, seqs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let us = [
            100.0, 10.0, 150.0, 1300.0, 5.0, 9000.0, 3.0, 19_000.0, 1000.0, 2.0, 200.0, 8.0,
            1250.0, 900.0, 26.0,
        ];
        Host { us, drift: 0.05 }
    }

    fn micros(time: HostTime) -> [u64; 4] {
        [time.schedule, time.prepare, time.launch, time.update].map(|span| span.as_nanos() / 1000)
    }

    #[test]
    fn a_faster_host_leaves_the_ways_in_and_out_alone() {
        let half = host().with_steps(0.5);
        assert!((half.us[0] - 50.0).abs() < 1e-9 && (half.us[11] - 4.0).abs() < 1e-9);
        assert_eq!(half.us[12..], host().us[12..]);
    }

    #[test]
    fn only_steps_with_prefill_launch_pieces_and_large_ones_launch_eagerly() {
        let decode = StepShape { decode_seqs: 10, ..StepShape::default() };
        let mixed = StepShape { prefill_seqs: 2, prefill_tokens: 600, ..decode };
        assert_eq!(micros(host().time(&decode, true)), [200, 1350, 1020, 280]);
        assert_eq!(micros(host().time(&mixed, true)), [520, 1360, 10_060, 296]);
        assert_eq!(micros(host().time(&mixed, false)), [520, 1360, 20_060, 296]);
    }
}
