//! The CPU tier on the command line.

use crate::bad_input::refused;

#[test]
fn settings_of_a_tier_that_is_not_there() {
    let absent = "there is no CPU tier that reads it; give `cpu_blocks` (or `--kv-cpu-blocks`), or \
                  remove it";
    for flag in ["--kv-reload async", "--kv-link h200-pcie", "--kv-transfer-bandwidth 10"] {
        let name = flag.split(' ').next().expect("a flag");
        refused(flag, &format!("{name}: {absent}"));
    }
    refused(
        "--preemption-mode swap",
        "--preemption-mode: there is no CPU tier to swap to; give `kv_tier.cpu_blocks` (or \
         `--kv-cpu-blocks`), or `recompute`",
    );
    refused(
        "--kv-cpu-blocks 9 --kv-link h20-pcie",
        "--kv-link: unknown link `h20-pcie`, did you mean `h200-pcie`?; known: `h200-pcie`, \
         `h200-pcie-per-block`, `h200-pcie-per-layer`, `h100-pcie`, `a100-pcie`, `gb200-c2c`; or \
         give `bandwidth_blocks_per_us`",
    );
    refused(
        "--kv-cpu-blocks 9 --kv-offload thresold",
        "--kv-offload: unknown offload policy `thresold`, did you mean `threshold`?; known: \
         `on-evict`, `threshold`, `write-through`",
    );
    refused(
        "--kv-cpu-blocks 9 --kv-offload-threshold 2",
        "--kv-offload-threshold: offload policy `threshold`: `threshold` is `2`; legal: a \
         number from 0 to 1",
    );
    refused(
        "--total-kv-blocks 100 --gpu-memory-utilization 0.9",
        "--gpu-memory-utilization: `total_kv_blocks` is given as well; keep one of the two",
    );
}
