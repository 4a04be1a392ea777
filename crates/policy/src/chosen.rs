//! A policy that was chosen: which one it is, and the checked values of its parameters.
//!
//! Whoever reads a scenario makes one from a text, or from a name and pairs of parameters. From
//! then on it is a value: it says what it reads, makes the policy for any cluster, and is spelled
//! again only for people.

pub(crate) mod guest;

use crate::spec::{Cluster, Parsed, PolicyError, Spec, nearest, parse};
use crate::view::Needs;
use blis_core::Values;
use guest::{Guest, Guests};
use std::fmt;
use std::sync::Arc;

/// A kind of policy: the contract, and all that fulfil it.
pub trait Policy: 'static {
    /// What errors call it.
    const KIND: &'static str;
    /// Those that ship, by name.
    const ALL: &'static [&'static Spec<Self>];

    /// Those of `guests` that are of this kind.
    fn of(_guests: &Guests) -> &[Arc<Guest<Self>>] {
        &[]
    }
}

/// A policy that was chosen. `P` is the contract it fulfils, e.g. `dyn Order`.
pub struct Chosen<P: ?Sized + 'static> {
    maker: Maker<P>,
    values: Values,
}

enum Maker<P: ?Sized + 'static> {
    House(&'static Spec<P>),
    Guest(Arc<Guest<P>>),
}

impl<P: Policy + ?Sized> Chosen<P> {
    /// The policy of `spec` with the defaults of its parameters.
    pub fn plain(spec: &'static Spec<P>) -> Chosen<P> {
        Chosen { maker: Maker::House(spec), values: Values::defaults(spec.params) }
    }

    /// The policy that `text` spells, `name` or `name[parameter=value,...]`, with the parameters
    /// `more` besides. It may be one of `guests`.
    ///
    /// # Errors
    /// If the text is malformed, the name unknown, or a parameter unknown, repeated or out of
    /// range.
    pub fn new(
        text: &str,
        more: &[(String, String)],
        guests: &Guests,
    ) -> Result<Chosen<P>, PolicyError> {
        let mut parsed = parse(P::KIND, text)?;
        parsed.given.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        Chosen::of(&parsed, guests)
    }

    /// The policy that ships and that `text` spells.
    ///
    /// # Errors
    /// As [`Chosen::new`].
    pub fn parse(text: &str) -> Result<Chosen<P>, PolicyError> {
        Chosen::new(text, &[], &Guests::NONE)
    }

    /// The policy that `parsed` names.
    pub(crate) fn of(parsed: &Parsed<'_>, guests: &Guests) -> Result<Chosen<P>, PolicyError> {
        let known = P::of(guests);
        let maker = match known.iter().find(|guest| guest.name == parsed.name) {
            Some(guest) => Maker::Guest(Arc::clone(guest)),
            None => Maker::House(find(parsed.name, known)?),
        };
        let (name, params) = match &maker {
            Maker::House(spec) => (spec.name, spec.params),
            Maker::Guest(guest) => (guest.name, guest.params),
        };
        let values = Values::parse(params, parsed.given.iter().copied())
            .map_err(|source| PolicyError::Param { kind: P::KIND, name, source })?;
        Ok(Chosen { maker, values })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match &self.maker {
            Maker::House(spec) => spec.name,
            Maker::Guest(guest) => guest.name,
        }
    }

    /// Its parameters.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// What it reads.
    pub fn needs(&self) -> Needs {
        match &self.maker {
            Maker::House(spec) => (spec.needs)(&self.values),
            Maker::Guest(guest) => guest.needs,
        }
    }

    /// Makes it.
    pub fn build(&self, cluster: &Cluster) -> Box<P> {
        match &self.maker {
            Maker::House(spec) => (spec.build)(&self.values, cluster),
            Maker::Guest(guest) => (guest.make)(&self.values, cluster),
        }
    }
}

/// The policy that ships and whose name or alias is `name`; the error tells of `guests` too.
pub(crate) fn find<P: Policy + ?Sized>(
    name: &str,
    guests: &[Arc<Guest<P>>],
) -> Result<&'static Spec<P>, PolicyError> {
    let named = |spec: &&&Spec<P>| spec.name == name || spec.alias == Some(name);
    if let Some(spec) = P::ALL.iter().find(named) {
        return Ok(spec);
    }
    let names = P::ALL.iter().map(|spec| spec.name);
    let aliases = P::ALL.iter().flat_map(|spec| [Some(spec.name), spec.alias]).flatten();
    let guests = guests.iter().map(|guest| guest.name);
    Err(PolicyError::Unknown {
        kind: P::KIND,
        name: name.to_owned(),
        known: names.chain(guests.clone()).collect(),
        nearest: nearest(name, guests.chain(aliases)),
    })
}

impl<P: ?Sized> Clone for Chosen<P> {
    fn clone(&self) -> Chosen<P> {
        let maker = match &self.maker {
            Maker::House(spec) => Maker::House(spec),
            Maker::Guest(guest) => Maker::Guest(Arc::clone(guest)),
        };
        Chosen { maker, values: self.values.clone() }
    }
}

impl<P: ?Sized> fmt::Debug for Chosen<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// The full spelling: the name, and every parameter that differs from its default. Equal spellings
/// decide equally.
impl<P: ?Sized> fmt::Display for Chosen<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.maker {
            Maker::House(spec) => f.write_str(spec.name)?,
            Maker::Guest(guest) => write!(f, "{}@{}", guest.name, guest.identity)?,
        }
        let changed: Vec<String> = self
            .values
            .iter()
            .filter(|(param, value)| **value != param.kind.default_value())
            .map(|(param, value)| format!("{}={value}", param.name))
            .collect();
        if changed.is_empty() { Ok(()) } else { write!(f, "[{}]", changed.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission;
    use crate::contract::{Admission, Scorer};

    fn canonical_of(text: &str) -> Result<String, String> {
        Chosen::<dyn Admission>::parse(text)
            .map(|chosen| chosen.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_canonical_spelling_names_what_differs_from_the_defaults() {
        for (text, canonical) in [
            ("always-admit", "always-admit"),
            (" token-bucket ", "token-bucket"),
            ("token-bucket[capacity=10000]", "token-bucket"),
            ("token-bucket[refill-rate=5, capacity = 1e4]", "token-bucket[refill-rate=5]"),
            (
                "token-bucket[refill-rate=0.5,capacity=7]",
                "token-bucket[capacity=7,refill-rate=0.5]",
            ),
        ] {
            assert_eq!(canonical_of(text).as_deref(), Ok(canonical), "{text}");
        }
    }

    #[test]
    fn malformed_texts_are_refused_with_what_is_wrong() {
        for (text, complaint) in [
            ("", "the name is missing"),
            ("[capacity=1]", "the name is missing"),
            ("token-bucket[capacity=1", "without a `]`"),
            ("token-bucket[capacity=1]x", "without a `]`"),
            ("token-bucket]", "stray `]`"),
            ("token-bucket[]", "`` is not `parameter=value`"),
            ("token-bucket[capacity]", "`capacity` is not `parameter=value`"),
            ("token-bucket[capacity=1,capacity=2]", "given twice"),
            ("token-bucket[capacity=0]", "a number from 1 to"),
            ("token-bucket[rate=1]", "known: `capacity`, `refill-rate`"),
            ("always-admit[x=1]", "this policy has none"),
            ("token-buckt", "did you mean `token-bucket`?"),
        ] {
            let error = canonical_of(text).expect_err(text);
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_known_one() {
        let nearest = |name: &str| match Chosen::<dyn Scorer>::parse(name).err() {
            Some(PolicyError::Unknown { nearest, .. }) => nearest,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(nearest("prefix_affinity"), Some("prefix-affinity"));
        assert_eq!(nearest("queuedepth"), Some("queue-depth"));
        assert_eq!(nearest("kv-utilisation"), Some("kv-utilization"));
        assert_eq!(nearest("zzz"), None);
        assert_eq!(nearest(&"q".repeat(100_000)), None);
    }

    #[test]
    fn a_name_with_pairs_is_the_same_as_the_text_that_spells_them() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let chosen = |text: &str, more: &[(String, String)]| {
            Chosen::<dyn Admission>::new(text, more, &Guests::NONE)
                .map(|chosen| chosen.to_string())
                .map_err(|error| error.to_string())
        };
        let both = [pair("refill-rate", "0.5"), pair("capacity", "7")];
        let expected = "token-bucket[capacity=7,refill-rate=0.5]";
        assert_eq!(chosen("token-bucket", &both).as_deref(), Ok(expected));
        assert_eq!(chosen("token-bucket[capacity=7]", &both[..1]).as_deref(), Ok(expected));
        let twice = chosen("token-bucket[capacity=7]", &both).expect_err("given twice");
        assert_eq!(twice, "admission policy `token-bucket`: `capacity` is given twice");
    }

    #[test]
    fn a_copy_of_a_choice_builds_the_same_policy() {
        let chosen = Chosen::<dyn Admission>::parse("token-bucket[capacity=7]").expect("legal");
        assert_eq!(chosen.clone().to_string(), chosen.to_string());
        assert_eq!((chosen.name(), chosen.needs()), ("token-bucket", Needs::NONE));
        assert!((chosen.values().float("capacity") - 7.0).abs() < 1e-12);
        let plain = Chosen::<dyn Admission>::plain(admission::ALL[0]);
        assert_eq!(plain.to_string(), admission::ALL[0].name);
    }
}
