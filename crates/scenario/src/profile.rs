//! Profile files: a fitted step-time model as YAML, readable by people, with its provenance, the
//! ranges it was fitted to and how sure its coefficients are; and those that ship.
//!
//! `blis calibrate` writes them, `latency.model` reads them.

mod write;

pub use write::text;

use crate::legal::{Coefficient, Finite};
use crate::problem::unknown;
use crate::problems::{Problems, Together, every};
use crate::yaml::{self, Amount, Node, Range as Legal, Whole};
use blis_latency::profile::host::{HOST, Host};
use blis_latency::profile::padding::{Padding, Sizes};
use blis_latency::profile::term::{ALL, TERMS, Term};
use blis_latency::profile::{Gap, Parameters, Profile, Range, VARIABLES};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::path::Path;

/// What the first line of a profile says. The number changes when a term changes its meaning, and
/// not when one is added: a profile that lacks a term does without it.
pub const FORMAT: &str = "blis-profile/4";

/// What the formats before it begin with.
const OLDER: &str = "blis-profile/";

/// A profile and the machine it was fitted on.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileFile {
    /// The machine.
    pub machine: ProfiledMachine,
    /// The model.
    pub profile: Profile,
}

/// The machine that a profile was fitted on, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfiledMachine {
    /// Name of the model.
    pub model: Option<String>,
    /// Name of the GPU.
    pub hardware: Option<String>,
    /// Tensor parallelism.
    pub tp: Option<u32>,
}

/// Profiles that ship, by name. The first of a machine is its usual one.
const SHIPPED: [(&str, &str); 2] = [
    ("h200-vllm-0.26-llama-3.1-8b", include_str!("../profiles/h200-vllm-0.26-llama-3.1-8b.yaml")),
    ("llama-3.1-8b-h200-tp1", include_str!("../profiles/llama-3.1-8b-h200-tp1.yaml")),
];

#[derive(Clone, Copy, Debug)]
struct Spread;

impl Legal for Spread {
    const MIN: f64 = 1.0;
    const MAX: f64 = 1000.0;
    const LEGAL: &'static str = "a number from 1 to 1000";
}

#[derive(Clone, Copy, Debug)]
struct Drift;

impl Legal for Drift {
    const MIN: f64 = 0.0;
    const MAX: f64 = 1.0;
    const LEGAL: &'static str = "a number from 0 to 1";
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    format: String,
    #[serde(default)]
    machine: MachineFields,
    #[serde(default)]
    provenance: Vec<String>,
    padding: PaddingFields,
    usual_spread: Amount<Spread>,
    #[serde(default)]
    split_attention: bool,
    drift: Amount<Drift>,
    terms_us: BTreeMap<String, Amount<Coefficient>>,
    #[serde(default)]
    sizes_us: Vec<SizeFields>,
    gap_us: Option<GapFields>,
    #[serde(default)]
    host_us: BTreeMap<String, Amount<Coefficient>>,
    host_drift: Option<Amount<Drift>>,
    ranges: BTreeMap<String, Vec<Amount<Finite>>>,
    #[serde(default)]
    covariance: Vec<Vec<Amount<Finite>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MachineFields {
    model: Option<String>,
    hardware: Option<String>,
    tp: Option<Whole<1, 1024>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaddingFields {
    decode: SizesFields,
    prefill: SizesFields,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SizesFields {
    sizes: Vec<Whole<1, 1_000_000>>,
    then_multiples_of: Whole<1, 1_000_000>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeFields {
    tokens: Whole<1, 1_000_000>,
    us: Amount<Coefficient>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GapFields {
    step: Amount<Coefficient>,
    decode_seq: Amount<Coefficient>,
    prefill_seq: Amount<Coefficient>,
}

/// The profile in the file `path`.
///
/// # Errors
/// If it cannot be read, or is not a profile.
pub fn read(path: &Path) -> Result<ProfileFile, Problems> {
    from_tree(&yaml::read_file(path)?)
}

/// The profile in `text`, as if it stood in a file called `name`.
///
/// # Errors
/// If it is not a profile.
pub fn from_text(name: &str, text: &str) -> Result<ProfileFile, Problems> {
    from_tree(&yaml::read_text(name, text)?)
}

/// All profiles that ship.
///
/// # Panics
/// If one is malformed; a test reads them.
pub fn all_shipped() -> Vec<ProfileFile> {
    SHIPPED.iter().map(|&(name, text)| from_text(name, text).expect("tested")).collect()
}

/// The names of the profiles that ship.
pub fn names() -> [&'static str; SHIPPED.len()] {
    SHIPPED.map(|(name, _)| name)
}

/// The profile that ships by that name.
///
/// # Panics
/// If it is malformed; a test reads it.
pub fn named(name: &str) -> Option<ProfileFile> {
    let found = SHIPPED.iter().find(|(known, _)| *known == name);
    found.map(|&(name, text)| from_text(name, text).expect("tested"))
}

/// The profile that ships for a machine; `None` of `hardware` and `tp` agrees with all.
///
/// # Panics
/// If a shipped profile is malformed; a test reads them.
pub fn shipped(model: &str, hardware: Option<&str>, tp: Option<u32>) -> Option<ProfileFile> {
    all_shipped().into_iter().find(|file| {
        let machine = &file.machine;
        let same = |gpu: &str| {
            machine.hardware.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(gpu))
        };
        machine.model.as_deref() == Some(model)
            && hardware.is_none_or(same)
            && tp.is_none_or(|tp| machine.tp == Some(tp))
    })
}

fn from_tree(tree: &Node) -> Result<ProfileFile, Problems> {
    if let Some(yaml::Kind::Scalar { text, .. }) = tree.field("format").map(|node| &node.kind)
        && text != FORMAT
    {
        let advice = if text.starts_with(OLDER) {
            "; its terms have changed in this version: fit it again with `blis calibrate`"
        } else {
            ""
        };
        return Err(tree.problem("format", format!("found `{text}`; legal: `{FORMAT}`{advice}")));
    }
    yaml::decode_and(tree, check)
}

fn check(fields: Fields, tree: &Node) -> Result<ProfileFile, Problems> {
    let padding = (
        fields.padding.decode.sizes("padding.decode.sizes", tree),
        fields.padding.prefill.sizes("padding.prefill.sizes", tree),
    )
        .together();
    let (terms_us, host_us, (decode, prefill), ranges) = (
        numbers("terms_us", &fields.terms_us, &ALL, tree),
        numbers("host_us", &fields.host_us, &HOST, tree),
        padding,
        ranges(&fields, tree),
    )
        .together()?;
    beside(&fields, tree)?;
    let host_drift = fields.host_drift.map_or(0.0, |drift| drift.get());
    let gap = fields.gap_us.as_ref();
    let gap = |of: fn(&GapFields) -> &Amount<Coefficient>| gap.map_or(0.0, |gap| of(gap).get());
    let parameters = Parameters {
        padding: Padding { decode, prefill },
        usual_spread: fields.usual_spread.get(),
        split_attention: fields.split_attention,
        terms_us,
        sizes_us: fields.sizes_us.iter().map(|s| (s.tokens.get_u32(), s.us.get())).collect(),
        gap: Gap {
            step_us: gap(|gap| &gap.step),
            decode_seq_us: gap(|gap| &gap.decode_seq),
            prefill_seq_us: gap(|gap| &gap.prefill_seq),
        },
        host: (!fields.host_us.is_empty()).then_some(Host { us: host_us, drift: host_drift }),
        ranges,
        covariance: covariance(&fields, tree)?,
        drift: fields.drift.get(),
        provenance: fields.provenance,
    };
    let profile = Profile::new(parameters).map_err(|error| tree.problem("", error.to_string()))?;
    assert_eq!(fields.format, FORMAT);
    let MachineFields { model, hardware, tp } = fields.machine;
    let machine = ProfiledMachine { model, hardware, tp: tp.map(Whole::get_u32) };
    Ok(ProfileFile { machine, profile })
}

/// Refuses a file without all of what surrounds the steps: one that was cut off, say.
fn beside(fields: &Fields, tree: &Node) -> Result<(), Problems> {
    if fields.gap_us.is_some() && fields.host_us.is_empty() {
        return Ok(());
    }
    let absent = HOST.iter().filter(|term| !fields.host_us.contains_key(term.name));
    let absent = absent.map(|term| ("host_us", term.name));
    let drift = fields.host_drift.is_none().then_some(("", "host_drift"));
    let missing: Vec<_> = match fields.host_us.len() {
        0 => vec![("", "host_us` or `gap_us")],
        _ => absent.chain(drift).collect(),
    };
    every(missing.into_iter().map(|(path, name)| {
        Err::<(), _>(tree.problem(path, format!("missing `{name}`; is this the whole profile?")))
    }))
    .map(drop)
}

/// The values of `terms` that a file gives by name; 0 for the others.
fn numbers<const N: usize>(
    field: &str,
    given: &BTreeMap<String, Amount<Coefficient>>,
    terms: &[Term; N],
    tree: &Node,
) -> Result<[f64; N], Problems> {
    let known = terms.map(|term| term.name);
    let mut values = [0.0; N];
    every(given.iter().map(|(name, value)| {
        let at = known.iter().position(|term| term == name).ok_or_else(|| {
            tree.problem(format!("{field}.{name}"), unknown("term", name, &known))
        })?;
        values[at] = value.get();
        Ok::<_, Problems>(())
    }))?;
    Ok(values)
}

impl ProfiledMachine {
    /// How the machine of a scenario differs from this one; what either does not say agrees.
    pub fn unlike(&self, other: &ProfiledMachine) -> Option<String> {
        let same = |a: &Option<String>, b: &Option<String>| {
            let pair = a.as_deref().zip(b.as_deref());
            pair.is_none_or(|(a, b)| a.eq_ignore_ascii_case(b))
        };
        let agrees = same(&self.model, &other.model)
            && same(&self.hardware, &other.hardware)
            && self.tp.zip(other.tp).is_none_or(|(a, b)| a == b);
        (!agrees).then(|| {
            format!("the latency profile was measured on another machine ({self}, here {other})")
        })
    }
}

impl Display for ProfiledMachine {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let tp = self.tp.map(|tp| format!("tp {tp}"));
        let parts: Vec<&str> =
            [&self.model, &self.hardware, &tp].into_iter().flatten().map(String::as_str).collect();
        f.write_str(&parts.join(", "))
    }
}

impl SizesFields {
    fn sizes(&self, path: &str, tree: &Node) -> Result<Sizes, Problems> {
        let listed: Vec<u32> = self.sizes.iter().map(|size| size.get_u32()).collect();
        if let Some(at) = listed.windows(2).position(|pair| pair[0] >= pair[1]) {
            let message = format!("found `{}`; legal: more than the size before", listed[at + 1]);
            return Err(tree.problem(format!("{path}[{}]", at + 1), message));
        }
        Ok(Sizes { listed, then_multiples_of: self.then_multiples_of.get_u32() })
    }
}

fn ranges(fields: &Fields, tree: &Node) -> Result<[Option<Range>; VARIABLES.len()], Problems> {
    let mut ranges = [None; VARIABLES.len()];
    every(fields.ranges.iter().map(|(name, ends)| {
        let problem = |message: String| tree.problem(format!("ranges.{name}"), message);
        let at = VARIABLES
            .iter()
            .position(|variable| variable == name)
            .ok_or_else(|| problem(unknown("variable", name, &VARIABLES)))?;
        let (min, max) = match ends.as_slice() {
            [min, max] if min.get() <= max.get() => (min.get(), max.get()),
            _ => return Err(problem("legal: the least and the greatest value".to_owned())),
        };
        ranges[at] = Some(Range { min, max });
        Ok(())
    }))?;
    Ok(ranges)
}

/// The whole square, of which a file has the lower triangle: that of its own terms and sizes. Terms
/// that it lacks do not vary.
fn covariance(fields: &Fields, tree: &Node) -> Result<Vec<Vec<f64>>, Problems> {
    tree.whole(&["terms_us", "sizes_us"])?;
    let rows = &fields.covariance;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let has = |at: &usize| fields.terms_us.contains_key(ALL[*at].name);
    let sizes = TERMS..TERMS + fields.sizes_us.len();
    let places: Vec<usize> = (0..TERMS).filter(has).chain(sizes.clone()).collect();
    if rows.len() != places.len() {
        let message = format!(
            "found {} rows; legal: {}, one for each of `terms_us` and then of `sizes_us`, or none",
            rows.len(),
            places.len()
        );
        return Err(tree.problem("covariance", message));
    }
    let mut square = vec![vec![0.0; sizes.end]; sizes.end];
    for (i, row) in rows.iter().enumerate() {
        if row.len() != i + 1 {
            let message = format!("found {} numbers; legal: {} (a triangle)", row.len(), i + 1);
            return Err(tree.problem(format!("covariance[{i}]"), message));
        }
        let variance = row[i].get();
        if variance < 0.0 {
            let message = format!("found `{variance}`; legal: a variance, which is 0 or more");
            return Err(tree.problem(format!("covariance[{i}][{i}]"), message));
        }
        for (j, cell) in row.iter().enumerate() {
            square[places[i]][places[j]] = cell.get();
            square[places[j]][places[i]] = cell.get();
        }
    }
    Ok(square)
}

#[cfg(test)]
mod tests;
