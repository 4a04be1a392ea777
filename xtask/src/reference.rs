//! Writes the pages under `docs/reference`, which are generated from the code and never by hand.

use blis_core::SloClass;
use blis_latency::{Catalogue, Efficiency, Memory, Parallel, Roofline, StepShape, kv_blocks};
use blis_metrics::metric::{self, Better, Definition, Value};
use blis_scenario::profile::{self, ProfileFile};
use blis_scenario::{presets, scenario, slo};
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
    Page { place: "docs/reference/policies.md", make: blis_policy::reference_markdown },
    Page { place: "docs/reference/export.md", make: blis_export::coverage::reference_markdown },
    Page { place: "docs/reference/workloads.md", make: workloads },
    Page { place: "docs/reference/hardware.md", make: hardware },
    Page { place: "docs/reference/metrics.md", make: metrics },
];

/// The page of the workloads that ship and of the sets of targets.
fn workloads() -> String {
    let show = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string());
    let set = |set: &slo::SloSet| {
        let head = format!("\n### `{}`\n\n{}. {}\n\n", set.name, set.summary, set.source);
        let targets = rows(SloClass::ALL.iter().zip(set.classes), |(class, target)| {
            let (ttft, itl, e2e) = (show(target.ttft_ms), show(target.itl_ms), show(target.e2e_ms));
            format!("`{}` | {ttft} | {itl} | {e2e}", class.name())
        });
        head + "| class | TTFT | ITL | E2E |\n|---|---|---|---|\n" + &targets
    };
    let workloads = rows(presets::ALL, |it| format!("`{}` | {}", it.name, it.summary));
    let sets = slo::ALL.iter().map(set).collect();
    fill(include_str!("reference/workloads.txt"), &[("workloads", workloads), ("slos", sets)])
}

/// The page of all metrics.
fn metrics() -> String {
    let of_requests = |one: &&Definition| matches!(one.value, Value::OfRequests(_));
    let of_cluster = |one: &&Definition| !of_requests(one);
    let searched = [&metric::CAPACITY, &metric::FEWEST_INSTANCES];
    let requests = rows(metric::all().filter(of_requests), metric_row);
    let cluster = rows(metric::all().filter(of_cluster).chain(searched), metric_row);
    fill(include_str!("reference/metrics.txt"), &[("requests", requests), ("cluster", cluster)])
}

fn metric_row(one: &Definition) -> String {
    let better = match one.better {
        Better::Less => "less",
        Better::More => "more",
        Better::Neither => "",
    };
    let mean = one.mean().map_or("", metric::Mean::name);
    let key = if one.key.is_empty() { String::new() } else { format!("`{}`", one.key) };
    let (name, unit, about) = (one.name, one.unit(), one.about);
    format!("`{name}` | {unit} | {better} | {mean} | {key} | {about}")
}

/// The page of models, GPUs, fits and links.
fn hardware() -> String {
    let catalogue = Catalogue::shipped();
    let models = rows(&catalogue.models, |it| {
        let shape = it.shape();
        let (bytes, weights) = (shape.kv_bytes_per_token(), shape.weight_bytes() / 1e9);
        let (layers, heads) = (shape.layers, shape.kv_heads);
        format!("`{}` | {layers} | {heads} | {bytes} | {weights:.1} | {}", it.name, it.source)
    });
    let gpus = rows(&catalogue.gpus, |it| {
        let (memory, flops, bandwidth) = (it.memory_gib, it.bf16_tflops, it.bandwidth_tb_s);
        format!("`{}` | {memory} | {flops} | {bandwidth} | {}", it.name, it.source)
    });
    let fits = rows(&catalogue.fits, |it| {
        let (gpu, tp, blocks) = (&it.gpu, it.tp, it.total_kv_blocks);
        format!("`{}` | `{gpu}` | {tp} | {blocks} | {}", it.model, it.source)
    });
    let links = rows(scenario::tier::links(), |(name, gb_per_s, base_us, source)| {
        format!("`{name}` | {gb_per_s} | {base_us} | {source}")
    });
    let tables = [
        ("models", models),
        ("gpus", gpus),
        ("fits", fits),
        ("profiles", rows(profile::all_shipped(), |file| profile_row(catalogue, &file))),
        ("families", families(catalogue)),
        (
            "operators",
            rows(blis_latency::operators::gpus(), |gpu| {
                format!("`{gpu}` | {}", blis_latency::operators::versions(gpu))
            }),
        ),
        ("machines", rows(BY_ROOFLINE, |it| roofline_row(catalogue, it))),
        ("links", links),
    ];
    fill(include_str!("reference/hardware.txt"), &tables)
}

/// The row of a profile that ships.
fn profile_row(catalogue: &Catalogue, file: &ProfileFile) -> String {
    let name = |name: &Option<String>| name.clone().expect("shipped profiles name their machine");
    let (model, gpu) = (name(&file.machine.model), name(&file.machine.hardware));
    let tp = file.machine.tp.expect("shipped profiles name their machine");
    let blocks = blocks(catalogue, &model, &gpu, tp);
    let source = file.profile.parameters().provenance.join("; ");
    format!("`{model}` | `{gpu}` | {tp} | {blocks} | {source}")
}

/// KV blocks of 16 tokens beside a model, with vLLM's usual share of the memory.
fn blocks(catalogue: &Catalogue, model: &str, gpu: &str, tp: u32) -> u32 {
    let shape = catalogue.model(model).expect("in the catalogue").shape();
    let usable_gib = catalogue.gpu(gpu).expect("in the catalogue").usable_gib;
    let memory = Memory { usable_gib, utilisation: 0.9, parallel: Parallel::tensor(tp) };
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

/// How much of a data sheet is reached. How far the borrowed efficiencies are known to be off is
/// computed by `crates/latency/tests/it/roofline.rs`.
fn families(catalogue: &Catalogue) -> String {
    let measured = rows(&catalogue.families, |family| {
        let e = family.efficiency();
        let Efficiency { memory, compute, attention, layer_us, sequence_us, .. } = e;
        let (heads, reduce, name) = (e.heads_to_saturate, e.all_reduce_us, &family.name);
        let shares = format!("{memory} | {compute} | {attention}");
        format!(
            "`{name}` | {shares} | {layer_us} | {sequence_us} | {heads} | {reduce} | {}",
            family.source
        )
    });
    let borrowed = catalogue.gpus.iter().filter(|gpu| gpu.family != gpu.efficiency_of);
    measured
        + &rows(borrowed, |gpu| {
            let (name, family, from) = (&gpu.name, &gpu.family, &gpu.efficiency_of);
            format!("`{family}` (`{name}`) | | | | | | | | not measured: borrowed from `{from}`")
        })
}

/// What the roofline says about a machine.
fn roofline_row(catalogue: &Catalogue, (model, name, tp): (&str, &str, u32)) -> String {
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
    let [decode, prefill] = [decode, prefill].map(|step| roofline.step_micros(&step) / 1e3);
    let blocks = blocks(catalogue, model, name, tp);
    format!("`{model}` | `{name}` | {tp} | {blocks} | {decode:.1} | {prefill:.1}")
}

/// The rows of a table.
fn rows<T>(items: impl IntoIterator<Item = T>, row: impl Fn(T) -> String) -> String {
    items.into_iter().map(|item| ["| ", &row(item), " |\n"].concat()).collect()
}

/// The page with its tables where their names stand in braces.
fn fill(page: &str, tables: &[(&str, String)]) -> String {
    tables
        .iter()
        .fold(page.to_owned(), |page, (name, table)| page.replace(&format!("{{{name}}}\n"), table))
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
