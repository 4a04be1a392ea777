//! What the operators of a model take, looked up in the tables of a GPU.

use super::OperatorError;
use super::curve::Grid;
use super::served;
use super::tables::{Op, Table, Tables};
use crate::catalogue::Gpu;
use crate::model::{Experts, Format, ModelShape};
use crate::parallel::Parallel;
use blis_core::math::{float, ln};

/// Between the matrix products of a layer, norms and activation read and write the tokens three
/// times: so long each, and at so much of the bandwidth. The figures are those that NVIDIA uses
/// with these tables.
const BETWEEN_US: f64 = 3.0 * 3.0;
const BETWEEN_BANDWIDTH: f64 = 0.8;

/// What a stage of a pipeline hands to the next: numbers of two bytes for each token and column of
/// the model, the layer's output and what is added to it. So long it takes beside the bytes; the
/// figure is NVIDIA's too.
const SENT: f64 = 2.0;
const SEND_US: f64 = 10.0;

/// The longest prompt in the tables.
const LONGEST: f64 = 16_384.0;

/// A table of something like what a model has, and how many times as much the model has.
#[derive(Debug)]
struct Like {
    table: Table,
    scale: f64,
}

/// The operators of a model on some GPUs.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    model: &'a ModelShape,
    gpu: &'a Gpu,
    tp: u32,
    parallel: Parallel,
    tables: Tables,
    decode: Like,
    prefill: Like,
    experts: Option<(Experts, Table, Format)>,
    all_reduce: Option<Table>,
    gather_scatter: Option<Table>,
    notes: Vec<String>,
}

impl<'a> Parts<'a> {
    /// Chooses the tables of `model` on GPUs that share it so.
    pub(super) fn new(
        model: &'a ModelShape,
        gpu: &'a Gpu,
        parallel: Parallel,
    ) -> Result<Parts<'a>, OperatorError> {
        let tp = parallel.tp;
        let tables =
            Tables::shipped(&gpu.name).ok_or_else(|| OperatorError::Gpu(gpu.name.clone()))?;
        let missing = |what: String| OperatorError::Missing { what, gpu: gpu.name.clone() };
        let mut notes = Vec::new();
        let (decode, prefill) = if model.latent.is_some() { MLA } else { PLAIN };
        let attention = |op, notes: &mut Vec<String>| {
            let what = "attention of this kind".to_owned();
            like(model, tp, &tables, op, notes).ok_or_else(|| missing(what))
        };
        let (decode, prefill) = (attention(decode, &mut notes)?, attention(prefill, &mut notes)?);
        let experts = model.experts.map(|experts| {
            let (table, format) = mixture(model, experts, parallel, &tables, &mut notes)
                .ok_or_else(|| missing("a mixture of experts".to_owned()))?;
            Ok((experts, table, format))
        });
        let together = |op, gpus, name| {
            let found = tables.all(op).find(|table| table.gpus == gpus);
            found.cloned().ok_or_else(|| missing(among(name, op, gpus, &tables)))
        };
        let all_reduce = (tp > 1).then(|| together(Op::AllReduce, tp, "an all-reduce of"));
        let shared = parallel.sharing_experts();
        let gather_scatter = (parallel.dp > 1)
            .then(|| together(Op::GatherScatter, shared, "the exchange of tokens between"));
        let (experts, all_reduce) = (experts.transpose()?, all_reduce.transpose()?);
        let gather_scatter = gather_scatter.transpose()?;
        notes.extend(unmeasured(model.formats.dense, &tables));
        if parallel.dp > 1 {
            let ranks = "the ranks of data parallelism share one queue and one KV cache, and each \
                has as many of the sequences as the others";
            notes.push(ranks.to_owned());
        }
        notes.dedup();
        Ok(Parts {
            model,
            gpu,
            tp,
            parallel,
            tables,
            decode,
            prefill,
            experts,
            all_reduce,
            gather_scatter,
            notes,
        })
    }

    /// What was not measured, in words.
    pub(super) fn notes(self) -> Vec<String> {
        self.notes
    }

    /// The least time that so many bytes and products take, in microseconds.
    fn bound(&self, format: Format, bytes: f64, products: f64) -> f64 {
        let speed = self.gpu.sheet().speed(format);
        let sheet = self.gpu.bf16_tflops * speed;
        let sustained = match (self.gpu.sustained_tflops, speed > 1.0) {
            (Some([bf16, _]), false) => bf16,
            (Some([_, fp8]), true) => fp8 * speed / 2.0,
            (None, _) => sheet,
        };
        let products = 2.0 * products / (sheet.min(sustained) * 1e6);
        products.max(bytes / (self.gpu.bandwidth_tb_s * 1e6))
    }

    /// A matrix product of `tokens` tokens with weights of so many columns and rows.
    fn gemm(&self, format: Format, tokens: f64, columns: u32, rows: u32) -> f64 {
        let (n, k) = (f64::from(columns.max(1)), f64::from(rows.max(1)));
        let bytes = n * k * format.bytes(2.0);
        if let Some(table) = product(format, &self.tables) {
            let bound = self.bound(format, bytes, tokens * n * k);
            return self.tables.at(table, &[tokens, n, k]).max(bound);
        }
        // Weights are read in their format and computed in bf16.
        let table = product(Format::Plain, &self.tables).expect("every GPU has products in bf16");
        let saved = 1.0 - format.bytes(2.0) / 2.0;
        let one = self.tables.at(table, &[1.0, n, k]);
        let bound = self.bound(Format::Plain, bytes, tokens * n * k);
        (self.tables.at(table, &[tokens, n, k]) - saved * one).max(bound)
    }

    /// An MLP of so many columns.
    fn mlp(&self, tokens: f64, width: u32) -> f64 {
        if width == 0 {
            return 0.0;
        }
        let (format, hidden, part) = (self.model.formats.dense, self.model.hidden_size, self.tp);
        let part = width.div_ceil(part);
        self.gemm(format, tokens, 2 * part, hidden) + self.gemm(format, tokens, hidden, part)
    }

    /// The routed experts of a layer.
    fn routed(&self, tokens: u64, experts: Experts, table: &Table, format: Format) -> f64 {
        let bound = |width: u32, hidden: u32, experts: Experts, ep: u32, format: Format| {
            // Each of `ep` GPUs has its share of the experts, and of what they compute.
            let weights = 3.0 * f64::from(width) * f64::from(hidden) / f64::from(ep);
            let met = experts.met(u32::try_from(tokens).unwrap_or(u32::MAX));
            let products = float(tokens) * f64::from(experts.active) * weights;
            self.bound(format, met * weights * format.bytes(2.0), products)
        };
        let of_table = Experts { total: table.total, active: table.active, ..experts };
        let (width, ep) = slice(self.model, self.parallel);
        let own = bound(width, self.model.hidden_size, experts, ep, self.model.formats.experts);
        let of_table = bound(table.width, table.hidden, of_table, table.ep.max(1), format);
        let scale = own / of_table;
        let scale = scale * served::experts(self.gpu, self.model.formats.experts, float(tokens));
        (self.tables.at(table, &[float(tokens)]) * scale).max(own)
    }

    /// All that depends on the tokens of a step.
    pub(super) fn tokens(&self, tokens: u64) -> f64 {
        if tokens == 0 {
            return 0.0;
        }
        let (model, m, tp) = (self.model, float(tokens), self.tp);
        let (format, hidden) = (model.formats.dense, model.hidden_size);
        let queries = model.query_heads / tp * model.head_dim;
        let keys = (model.kv_heads / tp).max(1) * model.head_dim;
        let projections = if model.latent.is_some() {
            0.0
        } else {
            self.gemm(format, m, queries + 2 * keys, hidden) + self.gemm(format, m, hidden, queries)
        };
        let layers = f64::from(model.layers);
        let mlps = match &self.experts {
            None => layers * self.mlp(m, model.intermediate_size),
            Some((experts, table, of)) => {
                let dense = f64::from(experts.dense_layers);
                // With several ranks those of all tokens are counted apart.
                let routed = match self.parallel.dp {
                    1 => self.routed(tokens, *experts, table, *of),
                    _ => 0.0,
                };
                let routed = routed
                    + self.gemm(Format::Plain, m, experts.total, hidden)
                    + self.mlp(m, experts.shared_intermediate_size);
                (layers - dense) * routed + dense * self.mlp(m, experts.dense_intermediate_size)
            }
        };
        let width = if model.experts.is_some() { 0 } else { model.intermediate_size / tp };
        let bytes = m * f64::from(16 * hidden + 6 * width + 8 * queries);
        let between = BETWEEN_US + bytes / (BETWEEN_BANDWIDTH * self.gpu.bandwidth_tb_s * 1e6);
        let reduce = self.all_reduce.as_ref();
        let numbers = m * f64::from(hidden);
        let reduce = reduce.map_or(0.0, |table| self.tables.at(table, &[numbers]))
            * served::all_reduce(self.gpu, numbers);
        let reduces = match &self.experts {
            // After experts, tokens of several ranks are scattered instead.
            Some((experts, ..)) if self.parallel.dp > 1 => {
                1.0 + f64::from(experts.dense_layers) / layers
            }
            _ => 2.0,
        };
        let sent = SENT * 2.0 * numbers / (self.gpu.link_gb_s / 2.0 * 1e3);
        let sends = f64::from(self.parallel.pp - 1) * (SEND_US + sent);
        layers * (projections + between + reduces * reduce) + mlps + sends
    }

    /// With several ranks, what depends on the tokens of all: they are gathered on all GPUs before
    /// the experts, and the results scattered after them.
    pub(super) fn all_tokens(&self, tokens: u64) -> f64 {
        let (Some((experts, table, format)), Some(exchange)) =
            (&self.experts, &self.gather_scatter)
        else {
            return 0.0;
        };
        if tokens == 0 {
            return 0.0;
        }
        let numbers = float(tokens) * f64::from(self.model.hidden_size);
        let layers = f64::from(self.model.layers - experts.dense_layers);
        let routed = self.routed(tokens, *experts, table, *format);
        layers * (routed + self.tables.at(exchange, &[numbers]))
    }

    /// The output layer.
    pub(super) fn output(&self, seqs: u64) -> f64 {
        let columns = self.model.vocabulary.div_ceil(self.tp);
        self.gemm(Format::Plain, float(seqs.max(1)), columns, self.model.hidden_size)
    }

    /// Layers that look at the whole context, and those that look back so far.
    fn layers(&self) -> [(f64, f64); 2] {
        let window = self.model.window;
        let sliding = window.map_or(0, |window| window.layers);
        let back = window.map_or(f64::MAX, |window| f64::from(window.tokens));
        [(f64::from(self.model.layers - sliding), f64::MAX), (f64::from(sliding), back)]
    }

    /// Attention of `seqs` sequences that decode.
    pub(super) fn decode(&self, seqs: u64, context: u64) -> f64 {
        if seqs == 0 {
            return 0.0;
        }
        let share = self.model.kv_share(self.tp) / f64::from(self.model.layers);
        let token = self.model.kv_bytes_per_token() * share;
        let layer = |context: f64| {
            let bytes = float(seqs) * context * token;
            let measured = self.tables.at(&self.decode.table, &[float(seqs), context.max(1.0)]);
            (measured * self.decode.scale).max(self.bound(Format::Plain, bytes, 0.0))
        };
        let layers = self.layers().into_iter().filter(|(layers, _)| *layers > 0.0);
        layers.map(|(layers, back)| layers * layer(float(context).min(back))).sum()
    }

    /// One layer of attention of `seqs` prompts of so many tokens.
    fn prompt(&self, seqs: u64, length: f64) -> f64 {
        let measured = self.tables.at(&self.prefill.table, &[float(seqs), length.max(1.0)]);
        measured * self.prefill.scale * (length / LONGEST).max(1.0)
    }

    /// Attention of prompts by query-key pairs: that of prompts without a past that have as many.
    pub(super) fn pairs_grid(&self) -> Option<Grid> {
        let [(layers, _), _] = self.layers();
        let heads = f64::from(self.model.query_heads / self.tp * self.model.head_dim);
        (layers > 0.0 && self.model.latent.is_none()).then(|| {
            Grid::new([1 << 10, 1 << 34], |seqs, pairs| {
                let products = 2.0 * heads * float(seqs) * float(pairs);
                let length = (2.0 * float(pairs)).sqrt();
                let bound = products * 2.0 / (self.gpu.bf16_tflops * 1e6);
                layers * if seqs == 0 { 0.0 } else { self.prompt(seqs, length).max(bound) }
            })
        })
    }

    /// Attention of prompts by their tokens: in a window, or compressed with its projections.
    pub(super) fn lengths_grid(&self) -> Option<Grid> {
        let [(all, _), (sliding, back)] = self.layers();
        let latent = self.model.latent.is_some();
        let layers = if latent { all } else { sliding };
        (layers > 0.0).then(|| {
            Grid::new([1 << 10, 1 << 18], |seqs, tokens| {
                let n = float(tokens);
                let seen = if latent { n } else { n.min(back) };
                let pairs = seen * (n - seen / 2.0);
                layers * if seqs == 0 { 0.0 } else { self.prompt(seqs, (2.0 * pairs).sqrt()) }
            })
        })
    }

    /// What a query-key pair with cached tokens takes beyond `lengths_grid`, in microseconds.
    pub(super) fn past_pair_us(&self) -> f64 {
        if self.model.latent.is_none() {
            return 0.0;
        }
        let half = LONGEST / 2.0;
        let squares = self.prompt(1, LONGEST) - 2.0 * self.prompt(1, half);
        f64::from(self.model.layers) * squares.max(0.0) / (half * half)
    }
}

const MLA: (Op, Op) = (Op::MlaDecode, Op::MlaPrefill);
const PLAIN: (Op, Op) = (Op::Decode, Op::Prefill);

/// What is missing of an exchange, and of which numbers of GPUs there is one.
fn among(name: &str, op: Op, gpus: u32, tables: &Tables) -> String {
    let mut measured: Vec<u32> = tables.all(op).map(|table| table.gpus).collect();
    measured.sort_unstable();
    let legal = measured.iter().fold("1".to_owned(), |all, one| format!("{all}, {one}"));
    let which = if op == Op::AllReduce { "`tp`" } else { "`tp` times `dp`" };
    format!("{name} {gpus} GPUs ({which} may be {legal})")
}

/// How far two numbers are from each other.
fn apart(a: u32, b: u32) -> f64 {
    ln(f64::from(a.max(1)) / f64::from(b.max(1))).abs()
}

/// The table of the nearest attention, and how many times its work the model has.
fn like(
    model: &ModelShape,
    tp: u32,
    tables: &Tables,
    op: Op,
    notes: &mut Vec<String>,
) -> Option<Like> {
    let heads = model.query_heads / tp;
    let (kv_heads, width) = match model.latent {
        Some(_) => (0, 0),
        None => ((model.kv_heads / tp).max(1), model.head_dim),
    };
    let kv = if model.formats.kv_fp8 { "fp8" } else { "bf16" };
    let format = match model.formats.dense {
        Format::Fp8 | Format::Fp8Block => "fp8-block",
        Format::Nvfp4 => "nvfp4",
        Format::Plain | Format::Int4 | Format::Mxfp4 => "bf16",
    };
    let far = |table: &&Table| {
        let other_format = !table.format.is_empty() && table.format != format;
        let size = apart(heads, table.heads) + 2.0 * apart(kv_heads, table.kv_heads);
        let size = size + 4.0 * apart(width, table.width);
        size + 10.0 * f64::from(u8::from(table.kv != kv)) + f64::from(u8::from(other_format))
    };
    let table = tables.all(op).min_by(|a, b| far(a).total_cmp(&far(b)))?;
    let works = |heads: u32, width: u32| f64::from(heads) * f64::from(width.max(1));
    let scale = match op {
        Op::Decode => works(kv_heads, width) / works(table.kv_heads, table.width),
        Op::Prefill => works(heads, width) / works(table.heads, table.width),
        _ => f64::from(heads) / f64::from(table.heads),
    };
    if far(&table) > 0.0 {
        notes.push(format!(
            "attention of {heads} query and {kv_heads} KV heads of {width} with a KV cache of {kv} \
             is scaled from {} and {} of {} with {}",
            table.heads, table.kv_heads, table.width, table.kv
        ));
    }
    Some(Like { table: table.clone(), scale })
}

/// The table of the nearest mixture of experts, and its format.
fn mixture(
    model: &ModelShape,
    experts: Experts,
    parallel: Parallel,
    tables: &Tables,
    notes: &mut Vec<String>,
) -> Option<(Table, Format)> {
    let wanted = model.formats.experts;
    let hidden = model.hidden_size;
    let (width, ep) = slice(model, parallel);
    let far = |table: &&Table| {
        apart(hidden, table.hidden)
            + apart(width, table.width)
            + apart(experts.active, table.active)
            + apart(experts.total, table.total)
            + apart(ep, table.ep)
    };
    let others = [Format::Fp8, Format::Mxfp4, Format::Int4, Format::Plain];
    let formats = std::iter::once(wanted).chain(others);
    let found = formats.into_iter().find_map(|format| {
        let divided = |table: &&Table| (table.ep > 1) == (ep > 1);
        let of = tables.all(Op::Experts).filter(|table| table.format == name(format));
        let of = of.filter(divided);
        Some((of.min_by(|a, b| far(a).total_cmp(&far(b)))?, format))
    });
    let (table, format) = found?;
    if far(&table) > 0.0 || format != wanted {
        notes.push(format!(
            "{} of {} experts of {hidden} x {width} in {} are scaled from {} of {} of {} x {} in \
             {}",
            experts.active,
            experts.total,
            name(wanted),
            table.active,
            table.total,
            table.hidden,
            table.width,
            name(format)
        ));
    }
    Some((table.clone(), format))
}

/// The width of an expert on a GPU, and over how many GPUs whole experts are divided.
fn slice(model: &ModelShape, parallel: Parallel) -> (u32, u32) {
    let (width, ep) = (model.intermediate_size, parallel.ep());
    if ep > 1 { (width, ep) } else { (width.div_ceil(parallel.sharing_experts()), 1) }
}

/// What a format is called in the tables.
fn name(format: Format) -> &'static str {
    match format {
        Format::Plain => "bf16",
        Format::Fp8 => "fp8",
        Format::Fp8Block => "fp8-block",
        Format::Int4 => "int4",
        Format::Nvfp4 => "nvfp4",
        Format::Mxfp4 => "mxfp4",
    }
}

/// The table of matrix products in a format.
fn product(format: Format, tables: &Tables) -> Option<&Table> {
    let of = |format| tables.all(Op::Gemm).find(move |table| table.format == name(format));
    of(format).or_else(|| if format == Format::Fp8Block { of(Format::Fp8) } else { None })
}

/// What is to be known of a format that has no table of matrix products.
fn unmeasured(format: Format, tables: &Tables) -> Option<String> {
    product(format, tables).is_none().then(|| {
        let name = name(format);
        format!("matrix products in {name} are those in bf16 that read fewer bytes")
    })
}
