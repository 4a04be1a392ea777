//! The tables of measured operators that ship, one file for each GPU; `measure/operator_tables.py`
//! writes them and says what is in them.

use blis_core::math::{exp, ln};
use serde::Deserialize;

/// Files by the name of the GPU. A web page does without them.
#[cfg(not(target_arch = "wasm32"))]
const FILES: [(&str, &[u8]); 8] = [
    ("A100-80", include_bytes!("../../operators/A100-80.bin")),
    ("H100", include_bytes!("../../operators/H100.bin")),
    ("H200", include_bytes!("../../operators/H200.bin")),
    ("L40S", include_bytes!("../../operators/L40S.bin")),
    ("B200", include_bytes!("../../operators/B200.bin")),
    ("B300", include_bytes!("../../operators/B300.bin")),
    ("GB200", include_bytes!("../../operators/GB200.bin")),
    ("RTX-PRO-6000", include_bytes!("../../operators/RTX-PRO-6000.bin")),
];
#[cfg(target_arch = "wasm32")]
const FILES: [(&str, &[u8]); 0] = [];

/// The GPUs whose operators were measured.
pub fn gpus() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The sum over the tables of a GPU: equal exactly if they are.
pub fn checksum(gpu: &str) -> Option<u64> {
    let (_, file) = FILES.iter().find(|(name, _)| name.eq_ignore_ascii_case(gpu))?;
    Some(file[..8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// Which versions of vLLM the tables of a GPU were measured with, in words.
pub fn versions(gpu: &str) -> String {
    let versions = Tables::shipped(gpu).map(|tables| tables.head.vllm).unwrap_or_default();
    let of = |(part, version): (&String, &Option<String>)| {
        format!("{part}: {}", version.as_deref().unwrap_or("none"))
    };
    versions.iter().map(of).collect::<Vec<String>>().join(", ")
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Op {
    /// By tokens, columns and rows of the weights.
    Gemm,
    /// Attention by sequences and context.
    Decode,
    /// Attention by sequences and length.
    Prefill,
    /// The same with projections and compressed keys and values.
    MlaDecode,
    MlaPrefill,
    /// By tokens.
    Experts,
    /// By numbers of two bytes.
    AllReduce,
    /// An all-gather and a reduce-scatter of as many numbers.
    GatherScatter,
}

/// One table; a number that does not apply is 0.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Table {
    pub op: Option<Op>,
    /// Format of the weights; none for attention.
    #[serde(rename = "type")]
    pub format: String,
    pub kv: String,
    pub heads: u32,
    pub kv_heads: u32,
    pub width: u32,
    pub hidden: u32,
    pub active: u32,
    pub total: u32,
    pub gpus: u32,
    /// GPUs that whole experts are divided over.
    pub ep: u32,
    axes: Vec<usize>,
    at: usize,
}

#[derive(Debug, Deserialize)]
struct Head {
    vllm: std::collections::BTreeMap<String, Option<String>>,
    axes: Vec<Vec<u32>>,
    tables: Vec<Table>,
}

/// All tables of a GPU.
#[derive(Debug)]
pub(super) struct Tables {
    head: Head,
    values: &'static [u8],
}

/// How the value of a 16-bit code is found.
const SCALE: f64 = 2500.0;
const SHIFT: f64 = 2.0;

impl Tables {
    /// The tables of a GPU; `None` if there are none.
    ///
    /// # Panics
    /// If a shipped file is malformed; a test reads them all.
    pub(super) fn shipped(gpu: &str) -> Option<Tables> {
        let (_, file) = FILES.iter().find(|(name, _)| name.eq_ignore_ascii_case(gpu))?;
        let length = file[8..12].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let (head, values) = file[12..].split_at(length);
        let head = serde_json::from_slice(head).expect("shipped tables are tested");
        Some(Tables { head, values })
    }

    /// The tables of an operator.
    pub(super) fn all(&self, op: Op) -> impl Iterator<Item = &Table> {
        self.head.tables.iter().filter(move |table| table.op == Some(op))
    }

    /// Microseconds at a point, by a straight line in logarithms along each axis. Before the first
    /// place of an axis it is what it is there; beyond the last it grows in proportion.
    pub(super) fn at(&self, table: &Table, point: &[f64]) -> f64 {
        let (mut corners, mut factor) = (vec![(table.at, 1.0)], 1.0);
        let mut stride: usize = table.axes.iter().map(|&axis| self.head.axes[axis].len()).product();
        for (&axis, &x) in table.axes.iter().zip(point) {
            let axis = &self.head.axes[axis];
            stride /= axis.len();
            let last = f64::from(axis[axis.len() - 1]);
            factor *= (x / last).max(1.0);
            let x = x.clamp(f64::from(axis[0]), last);
            let next = axis.partition_point(|&place| f64::from(place) <= x).min(axis.len() - 1);
            let before = next.saturating_sub(1);
            let [from, to] = [before, next].map(|at| ln(f64::from(axis[at])));
            let way =
                if next > before { ((ln(x) - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
            corners = corners
                .iter()
                .flat_map(|&(at, weight)| {
                    let ends = [(before, 1.0 - way), (next, way)];
                    ends.map(|(place, share)| (at + place * stride, weight * share))
                })
                .collect();
        }
        let logs = corners.iter().map(|&(at, weight)| weight * self.log(at));
        factor * exp(logs.sum())
    }

    fn log(&self, at: usize) -> f64 {
        let code = u16::from_le_bytes([self.values[2 * at], self.values[2 * at + 1]]);
        f64::from(code) / SCALE - SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_what_the_script_wrote() {
        for (name, file) in FILES {
            let sum = file[8..].iter().fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
            });
            assert_eq!(sum.to_le_bytes(), file[..8], "{name}");
            let tables = Tables::shipped(name).expect("shipped");
            let lengths = |table: &Table| -> usize {
                table.axes.iter().map(|&axis| tables.head.axes[axis].len()).product()
            };
            let last = tables.head.tables.last().expect("some");
            assert_eq!(2 * (last.at + lengths(last)), tables.values.len(), "{name}");
        }
    }

    #[test]
    fn a_measured_point_is_found_again_and_others_lie_between_their_neighbours() {
        let tables = Tables::shipped("h200").expect("in any case");
        let table = tables.all(Op::Gemm).find(|table| table.format == "bf16").expect("measured");
        let at = |m: f64, n: f64, k: f64| tables.at(table, &[m, n, k]);
        // 2,048 x 4,096 x 4,096 products at 989 TFLOP/s take 70 us.
        let point = at(2048.0, 4096.0, 4096.0);
        assert!((70.0..100.0).contains(&point), "{point}");
        let between = at(2500.0, 4096.0, 4096.0);
        assert!(point < between && between < at(3072.0, 4096.0, 4096.0));
        assert!((at(2048.0, 131_072.0, 4096.0) / at(2048.0, 65_536.0, 4096.0) - 2.0).abs() < 1e-9);
    }
}
