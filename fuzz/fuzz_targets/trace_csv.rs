//! Traces in CSV: the format that the text looks like, and the one that its first byte forces.

#![no_main]

use blis_fuzz::read_trace;
use blis_workload::TraceFormat;
use libfuzzer_sys::fuzz_target;

const FORMATS: [TraceFormat; 5] = [
    TraceFormat::Azure,
    TraceFormat::BurstGpt,
    TraceFormat::TraceV2,
    TraceFormat::Legacy,
    TraceFormat::H200,
];

fuzz_target!(|bytes: &[u8]| {
    read_trace(bytes, None);
    if let Some((first, rest)) = bytes.split_first() {
        read_trace(rest, Some(FORMATS[usize::from(*first) % FORMATS.len()]));
    }
});
