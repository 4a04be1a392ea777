//! Writes the pages under `docs/reference`, which are generated from the code and never by hand.

use blis_core::SloClass;
use blis_latency::{Catalogue, Memory, Roofline, StepShape, kv_blocks};
use blis_metrics::metric::{self, Better, Definition, Value};
use blis_scenario::profile::{self, ProfileFile};
use blis_scenario::{presets, scenario, slo};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// A generated page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Where it lies, relative to the root.
    pub place: &'static str,
    /// What makes it.
    pub make: fn() -> String,
}

/// All generated pages.
pub const PAGES: [Page; 5] = [
    Page { place: "docs/reference/policies.md", make: policies },
    Page { place: "docs/reference/export.md", make: blis_export::coverage::reference_markdown },
    Page { place: "docs/reference/workloads.md", make: workloads },
    Page { place: "docs/reference/hardware.md", make: hardware },
    Page { place: "docs/reference/metrics.md", make: metrics },
];

/// The page of all policies and their parameters.
fn policies() -> String {
    blis_policy::registry::reference_markdown()
}

/// The page of the workloads that ship and of the sets of targets.
fn workloads() -> String {
    let mut page = String::from(
        "# Workloads and targets\n\n`blis run --workload NAME` runs one of these workloads; `blis \
         workloads NAME` prints it as a\nspecification to start from. How to write one is in \
         [workloads.md](../workloads.md).\n\n| workload | what it is |\n|---|---|\n",
    );
    for preset in presets::ALL {
        line(&mut page, format_args!("| `{}` | {} |", preset.name, preset.summary));
    }
    page.push_str(
        "\n## Sets of latency targets\n\n`slo: NAME` in a scenario or a specification. Targets are in \
         ms: time to first token, mean inter-token\nlatency, time to the last token; `-`: none. \
         Goodput counts the requests that met all of theirs.\n",
    );
    for set in slo::ALL {
        line(&mut page, format_args!("\n### `{}`\n\n{}. {}\n", set.name, set.summary, set.source));
        line(&mut page, format_args!("| class | TTFT | ITL | E2E |\n|---|---|---|---|"));
        for (class, target) in SloClass::ALL.iter().zip(set.classes) {
            let show = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string());
            let (ttft, itl, e2e) = (show(target.ttft_ms), show(target.itl_ms), show(target.e2e_ms));
            line(&mut page, format_args!("| `{}` | {ttft} | {itl} | {e2e} |", class.name()));
        }
    }
    page
}

/// The page of all metrics.
fn metrics() -> String {
    let mut page = String::from(
        "# Metrics\n\nThe numbers that studies, searches and `blis compare --metrics` know by name. A metric of \
         requests can be asked\nof one class, e.g. `critical.ttft_p99`. `mechanisms.POLICY.MECHANISM` is \
         how often a mechanism acted. The key is\nwhere `--format json` has the number: under `cluster` \
         or a class for those of requests. It works as a name, too. In the\nviews of the ledger the \
         column of a metric of requests is its key, that of another its name. Searches over several\n\
         workloads take the mean that is given.\n",
    );
    let of_requests = |one: &&Definition| matches!(one.value, Value::OfRequests(_));
    let of_cluster = |one: &&Definition| !of_requests(one);
    let searched = [&metric::CAPACITY, &metric::FEWEST_INSTANCES];
    table(&mut page, "Of requests", metric::all().filter(of_requests));
    table(&mut page, "Of the cluster", metric::all().filter(of_cluster).chain(searched));
    page
}

fn table<'a>(page: &mut String, title: &str, metrics: impl Iterator<Item = &'a Definition>) {
    line(page, format_args!("\n## {title}\n"));
    line(page, format_args!("| metric | unit | better | mean over workloads | key | what it is |"));
    line(page, format_args!("|---|---|---|---|---|---|"));
    for one in metrics {
        let better = match one.better {
            Better::Less => "less",
            Better::More => "more",
            Better::Neither => "",
        };
        let mean = one.mean().map_or("", metric::Mean::name);
        let key = if one.key.is_empty() { String::new() } else { format!("`{}`", one.key) };
        let (name, unit, about) = (one.name, one.unit(), one.about);
        line(page, format_args!("| `{name}` | {unit} | {better} | {mean} | {key} | {about} |"));
    }
}

/// The page of models, GPUs, fits and links.
fn hardware() -> String {
    let catalogue = Catalogue::shipped();
    let mut page = String::from(
        "# Models and machines\n\n## Models\n\n| model | layers | KV heads | KV bytes per token | \
         source |\n|---|---|---|---|---|\n",
    );
    for model in &catalogue.models {
        let bytes = model.shape().kv_bytes_per_token();
        let (name, layers, heads) = (&model.name, model.layers, model.kv_heads);
        let row = format_args!("| `{name}` | {layers} | {heads} | {bytes} | {} |", model.source);
        line(&mut page, row);
    }
    page.push_str(
        "\n## GPUs\n\n| GPU | memory, GiB | bf16 TFLOP/s | TB/s | source |\n\
         |---|---|---|---|---|\n",
    );
    for gpu in &catalogue.gpus {
        let (name, memory, flops) = (&gpu.name, gpu.memory_gib, gpu.bf16_tflops);
        let (bandwidth, source) = (gpu.bandwidth_tb_s, &gpu.source);
        let row = format_args!("| `{name}` | {memory} | {flops} | {bandwidth} | {source} |");
        line(&mut page, row);
    }
    page.push_str(
        "\n## Fitted coefficients\n\n| model | GPU | TP | KV blocks | source \
         |\n|---|---|---|---|---|\n",
    );
    for fit in &catalogue.fits {
        let (model, gpu, tp) = (&fit.model, &fit.gpu, fit.tp);
        let (blocks, source) = (fit.total_kv_blocks, &fit.source);
        line(&mut page, format_args!("| `{model}` | `{gpu}` | {tp} | {blocks} | {source} |"));
    }
    page.push_str(
        "\n## Fitted profiles (`latency.model: profile`)\n\nFitted by `blis calibrate` to the steps of a \
         server; how good they are is in\n[fidelity](../validation/fidelity.md). KV blocks of 16 tokens \
         are counted from the GPU's memory, of which\nvLLM uses 90 %.\n\n| model | GPU | TP | KV blocks | \
         source |\n|---|---|---|---|---|\n",
    );
    for file in profile::all_shipped() {
        line(&mut page, format_args!("{}", profile_row(&catalogue, &file)));
    }
    machines(&mut page, &catalogue);
    page.push_str(
        "\n## Links to the CPU tier (`kv_tier.link`)\n\nOf one GPU in one direction; the GPUs of an \
         instance copy side by side.\n\n| link | GB/s | base, us | source \
         |\n|---|---|---|---|\n",
    );
    for (name, gb_per_s, base_us, source) in scenario::tier::links() {
        line(&mut page, format_args!("| `{name}` | {gb_per_s} | {base_us} | {source} |"));
    }
    page
}

/// The row of a profile that ships.
fn profile_row(catalogue: &Catalogue, file: &ProfileFile) -> String {
    let name = |name: &Option<String>| name.clone().expect("shipped profiles name their machine");
    let (model, gpu) = (name(&file.machine.model), name(&file.machine.hardware));
    let tp = file.machine.tp.expect("shipped profiles name their machine");
    let blocks = blocks(catalogue, &model, &gpu, tp);
    let source = file.profile.parameters().provenance.join("; ");
    format!("| `{model}` | `{gpu}` | {tp} | {blocks} | {source} |")
}

/// KV blocks of 16 tokens beside a model, with vLLM's usual share of the memory.
fn blocks(catalogue: &Catalogue, model: &str, gpu: &str, tp: u32) -> u32 {
    let shape = catalogue.model(model).expect("in the catalogue").shape();
    let usable_gib = catalogue.gpu(gpu).expect("in the catalogue").usable_gib;
    let memory = Memory { usable_gib, utilisation: 0.9, tp };
    kv_blocks(&shape, memory, 16).expect("it fits")
}

/// Machines that have no measured steps: `roofline` predicts them from data sheets.
const BY_ROOFLINE: [(&str, &str, u32); 6] = [
    ("qwen/qwen2.5-32b-instruct", "H100", 2),
    ("qwen/qwen3-32b", "H100", 2),
    ("meta-llama/llama-3.1-70b-instruct", "H100", 4),
    ("meta-llama/llama-3.1-70b-instruct", "H200", 2),
    ("mistralai/mixtral-8x7b-instruct-v0.1", "H100", 2),
    ("mistralai/mixtral-8x7b-instruct-v0.1", "B200", 1),
];

/// How far the borrowed efficiencies are known to be off; `crates/latency/tests/it/roofline.rs`
/// computes these figures.
const BORROWED: &str = "
A run on a GPU with borrowed efficiencies says so. How far off they are is known for one of them: against
what is published for LLaMA 7B in FP16 on an A100 of 80 GB
([TensorRT-LLM 0.6.1](https://github.com/NVIDIA/TensorRT-LLM), `docs/source/performance.md`; other kernels
than those that were fitted), tokens per second are -14 % (384 prompts of 128 tokens, 128 generated), +3 % (60
of 128, 2,048 generated) and -17 % (52 of 2,048, 128 generated), TTFT is -20 % (128
tokens, published as 16 ms) and +19 % (2,048 tokens, 133 ms): dense layers reach more of an A100's peak. What
is published there for the L40S is FP8, and for the B200 FP4 and FP8, which a roofline of bf16 does not predict.
";

/// The table of what the roofline says about some machines, and of its efficiencies.
fn machines(page: &mut String, catalogue: &Catalogue) {
    page.push_str(
        "\n## The roofline (`latency.model: roofline`)\n\nAny model of the catalogue, or the path of a \
         `config.json` of the Hugging Face hub (dense or a mixture of\nexperts, grouped queries), on any \
         GPU above. How much of a data sheet is reached, by family:\n\n| family | memory | compute | \
         attention | us per layer | us per sequence | KV heads to saturate | us per all-reduce | where the \
         figures come from |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for family in &catalogue.families {
        let e = family.efficiency();
        line(
            page,
            format_args!(
                "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |",
                family.name,
                e.memory,
                e.compute,
                e.attention,
                e.layer_us,
                e.sequence_us,
                e.heads_to_saturate,
                e.all_reduce_us,
                family.source
            ),
        );
    }
    for gpu in &catalogue.gpus {
        if gpu.family != gpu.efficiency_of {
            let (name, family, from) = (&gpu.name, &gpu.family, &gpu.efficiency_of);
            line(
                page,
                format_args!(
                    "| `{family}` (`{name}`) | | | | | | | | not measured: borrowed from `{from}` |"
                ),
            );
        }
    }
    page.push_str(BORROWED);
    page.push_str(
        "\nWhat it says, without a server around it: a step of 32 sequences that decode with contexts of \
         1,024, and\nthe prefill of a prompt of 2,048.\n\n| model | GPU | TP | KV blocks | decode step, ms \
         | prefill, ms |\n|---|---|---|---|---|---|\n",
    );
    for (model, name, tp) in BY_ROOFLINE {
        let gpu = catalogue.gpu(name).expect("in the catalogue");
        let efficiency = catalogue.efficiency(gpu).expect("every family has one");
        let shape = catalogue.model(model).expect("in the catalogue").shape();
        let roofline = Roofline::new(shape, gpu.sheet(), tp, efficiency).expect("legal");
        let decode = StepShape {
            decode_seqs: 32,
            decode_context: 32 * 1024,
            decode_longest: 1024,
            ..StepShape::default()
        };
        let prefill = StepShape {
            prefill_seqs: 1,
            prefill_tokens: 2048,
            prefill_attention_pairs: 2048 * 2049 / 2,
            ..StepShape::default()
        };
        let ms = |shape: &StepShape| roofline.step_micros(shape) / 1e3;
        let (blocks, decode) = (blocks(catalogue, model, name, tp), ms(&decode));
        let prefill = ms(&prefill);
        line(
            page,
            format_args!("| `{model}` | `{name}` | {tp} | {blocks} | {decode:.1} | {prefill:.1} |"),
        );
    }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a string cannot fail");
}

/// Writes the generated pages under `root` and returns where.
///
/// # Errors
/// If a page cannot be written.
pub fn write(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for Page { place, make } in PAGES {
        let path = root.join(place);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, make())?;
        written.push(path);
    }
    Ok(written)
}
