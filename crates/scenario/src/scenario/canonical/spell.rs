//! How values are spelled in canonical texts, and so in the hashes of scenarios. Types are taken
//! apart field by field, so that none can be forgotten.

use blis_core::{Span, Time};
use blis_kv::LinkSpeed;
use blis_latency::{Efficiency, Experts, Format, Formats, GpuSheet, Latent, ModelShape, Window};
use blis_sim::{Freshness, KvTier, Preemption, Prefill, Reload};
use blis_workload::{
    Activity, ActivityPart, Arrival, Context, Empirical, Input, Length, Media, OnRejection, Pacing,
    Rate, RatePoint, Sample, Sessions, Think, TraceEdit, Users, Weibull,
};

/// A value that canonical texts hold.
pub(crate) trait Spell {
    /// Its spelling: equal exactly if the values are.
    fn spell(&self) -> String;
}

/// `Name { field: value, ... }`.
pub(crate) fn group(name: &str, fields: &[(&str, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{name} {{ {} }}", fields.join(", "))
}

macro_rules! plain {
    ($($type:ty),*) => { $(
        impl Spell for $type {
            fn spell(&self) -> String {
                self.to_string()
            }
        }
    )* };
}

// Numbers have the fewest digits that read back as the same number.
plain!(u32, u64, f64, bool, Span, Time);

impl Spell for str {
    fn spell(&self) -> String {
        serde_json::Value::from(self).to_string()
    }
}

impl Spell for String {
    fn spell(&self) -> String {
        self.as_str().spell()
    }
}

impl<T: Spell> Spell for Option<T> {
    fn spell(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), Spell::spell)
    }
}

impl<T: Spell> Spell for [T] {
    fn spell(&self) -> String {
        let items: Vec<String> = self.iter().map(Spell::spell).collect();
        format!("[{}]", items.join(", "))
    }
}

impl<T: Spell> Spell for Vec<T> {
    fn spell(&self) -> String {
        self.as_slice().spell()
    }
}

impl<A: Spell, B: Spell> Spell for (A, B) {
    fn spell(&self) -> String {
        format!("({}, {})", self.0.spell(), self.1.spell())
    }
}

impl Spell for Weibull {
    fn spell(&self) -> String {
        let (shape, scale) = self.shape_and_scale();
        group("Weibull", &[("shape", shape.spell()), ("scale", scale.spell())])
    }
}

impl Spell for Empirical {
    fn spell(&self) -> String {
        group("Empirical", &[("bins", self.bins().spell())])
    }
}

macro_rules! structs {
    ($($type:ident { $($field:ident),* })*) => { $(
        impl Spell for $type {
            fn spell(&self) -> String {
                let $type { $($field),* } = self;
                group(stringify!($type), &[$((stringify!($field), $field.spell())),*])
            }
        }
    )* };
}

structs! {
    KvTier { blocks, out, back, reload, thrashing_window }
    LinkSpeed { base, blocks_per_us }
    TraceEdit { speedup, from, until, sample, limit }
    Sample { share, seed }
    RatePoint { at, per_sec }
    Users { count, think, ramp }
    Input { text, media }
    Media { kind, count, tokens }
    Activity { parts }
    Sessions { rounds, think, context, pacing, single }
    Formats { dense, experts, kv_fp8 }
    Latent { kv_rank, rope_dim, query_rank, nope_dim, value_dim }
    Window { tokens, layers }
    Efficiency {
        memory, compute, attention, layer_us, sequence_us, heads_to_saturate, all_reduce_us
    }
}

/// What a model has beyond a plain one is spelled where it has it: plain models are spelled as they
/// were before there were others.
macro_rules! with_more {
    ($($type:ident { $($field:ident),* } more { $($more:ident: $plain:expr),* })*) => { $(
        impl Spell for $type {
            fn spell(&self) -> String {
                let $type { $($field,)* $($more),* } = self;
                let mut fields = vec![$((stringify!($field), $field.spell())),*];
                $(if *$more != $plain {
                    fields.push((stringify!($more), $more.spell()));
                })*
                group(stringify!($type), &fields)
            }
        }
    )* };
}

with_more! {
    ModelShape {
        layers, hidden_size, query_heads, kv_heads, head_dim, intermediate_size, vocabulary,
        bytes_per_parameter, experts, tied_embeddings, max_model_len
    } more { formats: Formats::default(), latent: None, window: None }
    GpuSheet { bf16_tflops, bandwidth_tb_s, link_gb_s } more { fp8: true, fp4: false }
    Experts { total, active, shared_intermediate_size }
    more { dense_layers: 0, dense_intermediate_size: 0 }
}

/// `Variant`, `Variant(value)` or `Variant { field: value, ... }`.
macro_rules! enums {
    ($($type:ident {
        $($variant:ident $(($value:ident))? $({ $($field:ident),* })?;)*
    })*) => { $(
        impl Spell for $type {
            fn spell(&self) -> String {
                match self {
                    $($type::$variant $(($value))? $({ $($field),* })? => {
                        let text = stringify!($variant).to_owned();
                        $(let text = format!("{text}({})", $value.spell());)?
                        $(let text = group(&text, &[$((stringify!($field), $field.spell())),*]);)?
                        text
                    })*
                }
            }
        }
    )* };
}

enums! {
    Format { Plain; Fp8; Fp8Block; Int4; Nvfp4; Mxfp4; }
    Prefill { Mixed; Separate; Whole; }
    Preemption { Recompute; Swap; }
    Reload { Blocking; Async; }
    Freshness { Immediate; Periodic { interval }; }
    Rate { Steady(rate); Shaped(points); Users(users); }
    Arrival { Poisson; Constant; Gamma { cv }; Weibull(gaps); }
    Length {
        Constant(tokens);
        Gaussian { mean, std_dev, min, max };
        Exponential { mean, min, max };
        Lognormal { mu, sigma, min, max };
        ParetoLognormal { alpha, xm, mu, sigma, mix_weight };
        Empirical(bins);
        Geometric { mean };
    }
    ActivityPart {
        Window { from, until };
        Diurnal { peak_hour, peak_to_trough };
        Drain { from, over };
    }
    Think { Constant(time); Exponential(mean); }
    Context { Accumulate; Fresh; }
    Pacing { Open; Closed(on_rejection); }
    OnRejection { End; Retry { after, at_most }; }
}
