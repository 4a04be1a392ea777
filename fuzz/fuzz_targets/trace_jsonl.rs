//! Traces in lines of JSON: native and Mooncake, forced or as the text looks.

#![no_main]

use blis_fuzz::read_trace;
use blis_workload::TraceFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for format in [None, Some(TraceFormat::Native), Some(TraceFormat::Mooncake)] {
        read_trace(bytes, format);
    }
});
