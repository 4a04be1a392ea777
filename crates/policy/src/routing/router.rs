//! Routers that were chosen, with the filters, scorers and the picker that some are made of.
//!
//! It must never panic, whatever the texts.

use crate::chosen::Chosen;
use crate::chosen::guest::Guests;
use crate::contract::{Filter, Picker, Router};
use crate::routing::weighted::{self, Parts};
use crate::routing::weights::{Profiles, Scorers};
use crate::routing::{epoch_adaptive, kv_adaptive};
use crate::spec::{Cluster, PolicyError, items};
use crate::view::Needs;
use blis_core::Values;
use std::fmt;

/// The settings beside a router; read by those that are made of scorers, such as `weighted`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartsText<'a> {
    /// Scorers with weights, e.g. `pa:3,qd:2,kv:2`, or with two profiles `pa:3/2,qd:2,kv:2/5`.
    pub scorers: Option<&'a str>,
    /// Filters, e.g. `kv-filter,slo-headroom-filter`.
    pub filters: Option<&'a str>,
    /// The picker.
    pub picker: Option<&'a str>,
    /// The parameter `lru-capacity` of the scorer `prefix-affinity`.
    pub lru_capacity: Option<u64>,
}

/// A router that was chosen.
#[derive(Clone, Debug)]
pub struct Routing {
    /// The router.
    pub router: Chosen<dyn Router>,
    /// What it is made of, if it is made of parts.
    pub parts: Option<RouterParts>,
}

/// What a router is made of.
#[derive(Clone, Debug)]
pub struct RouterParts {
    /// In the order in which they are asked.
    pub filters: Vec<Chosen<dyn Filter>>,
    /// With their weights.
    pub scorers: Scorers,
    /// Who takes one of the best.
    pub picker: Chosen<dyn Picker>,
    made: &'static Composed,
}

impl Routing {
    /// The router that `text` spells with the parameters `more` besides, made of `parts` if it is
    /// made of any; scorers may be `guests`.
    ///
    /// # Errors
    /// If a text is malformed, or names what does not exist; if a setting is given that nothing
    /// reads.
    pub fn new(
        text: &str,
        more: &[(String, String)],
        parts: &PartsText<'_>,
        guests: &Guests,
    ) -> Result<Routing, PolicyError> {
        let router = Chosen::<dyn Router>::new(text, more, guests)?;
        let parts = match COMPOSED.iter().find(|made| made.name == router.name()) {
            Some(made) => Some(RouterParts::new(made, router.values(), parts, guests)?),
            None => unread(router.name(), parts).map_or(Ok(None), Err)?,
        };
        Ok(Routing { router, parts })
    }

    /// What it reads.
    pub fn needs(&self) -> Needs {
        self.parts.as_ref().map_or_else(|| self.router.needs(), RouterParts::needs)
    }

    /// Makes it.
    pub fn build(&self, cluster: &Cluster) -> Box<dyn Router> {
        match &self.parts {
            None => self.router.build(cluster),
            Some(parts) => parts.build(self.router.values(), cluster),
        }
    }
}

/// The full spelling: the router, and its filters, scorers and picker.
impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.router)?;
        let Some(RouterParts { filters, scorers, picker, .. }) = &self.parts else { return Ok(()) };
        f.write_str("(")?;
        for filter in filters {
            write!(f, "{filter}; ")?;
        }
        write!(f, "{scorers}; {picker})")
    }
}

/// That `router` is not made of parts, but `text` has some.
fn unread(router: &str, text: &PartsText<'_>) -> Option<PolicyError> {
    let given = [
        ("scorers", text.scorers.is_some()),
        ("filters", text.filters.is_some()),
        ("picker", text.picker.is_some()),
        ("lru-capacity", text.lru_capacity.is_some()),
    ];
    let (setting, _) = given.into_iter().find(|(_, given)| *given)?;
    let reader = format!("routing policy `{router}`");
    Some(PolicyError::Unread { setting, reader, remedy: "; `weighted` does" })
}

/// How a router is made of filters, scorers with weights, and a picker.
#[derive(Debug)]
struct Composed {
    name: &'static str,
    /// The scorers when none are given.
    scorers: fn(&Values) -> &'static str,
    profiles: Profiles,
    /// What it reads besides its parts.
    needs: Needs,
    /// The scorer that must be among them.
    wants: fn(&Values) -> Option<&str>,
    make: fn(Parts, &Values, &Cluster) -> Box<dyn Router>,
}

/// All of them.
static COMPOSED: [Composed; 3] = [
    Composed {
        name: epoch_adaptive::SPEC.name,
        scorers: epoch_adaptive::default_scorers,
        profiles: Profiles::One,
        needs: epoch_adaptive::OWN_NEEDS,
        wants: |values| Some(values.choice("moves")),
        make: |parts, values, cluster| {
            Box::new(epoch_adaptive::EpochAdaptive::new(parts, values, cluster))
        },
    },
    Composed {
        name: kv_adaptive::SPEC.name,
        scorers: |_| kv_adaptive::DEFAULT_SCORERS,
        profiles: Profiles::Two,
        needs: kv_adaptive::OWN_NEEDS,
        wants: |_| None,
        make: |parts, values, _| Box::new(kv_adaptive::KvAdaptive::new(parts, values)),
    },
    Composed {
        name: weighted::SPEC.name,
        scorers: |_| weighted::DEFAULT_SCORERS,
        profiles: Profiles::One,
        needs: Needs::NONE,
        wants: |_| None,
        make: |parts, _, _| Box::new(parts.weighted()),
    },
];

impl RouterParts {
    fn new(
        made: &'static Composed,
        values: &Values,
        text: &PartsText<'_>,
        guests: &Guests,
    ) -> Result<RouterParts, PolicyError> {
        let list = text.scorers.unwrap_or_else(|| (made.scorers)(values));
        let scorers = Scorers::new(list, made.profiles, text.lru_capacity, guests)?;
        let picker = Chosen::parse(text.picker.unwrap_or(weighted::DEFAULT_PICKER))?;
        let filters = text.filters.into_iter().flat_map(items).map(Chosen::parse);
        let filters = filters.collect::<Result<_, _>>()?;
        if let Some(wanted) = (made.wants)(values)
            && scorers.iter().all(|(scorer, _)| scorer.name() != wanted)
        {
            let problem =
                format!("`{}` moves the weight of `{wanted}`, which is not among them", made.name);
            let example = made.profiles.example();
            return Err(PolicyError::Weights { text: list.to_owned(), problem, example });
        }
        Ok(RouterParts { filters, scorers, picker, made })
    }

    /// What the router of that name is made of if nothing is said.
    pub(crate) fn default_of(name: &str, values: &Values) -> RouterParts {
        let made = COMPOSED.iter().find(|made| made.name == name).expect("it is made of parts");
        let parts = RouterParts::new(made, values, &PartsText::default(), &Guests::NONE);
        parts.expect("the defaults are legal")
    }

    pub(crate) fn needs(&self) -> Needs {
        let own = self.made.needs.or(self.scorers.needs());
        self.filters.iter().fold(own, |needs, filter| needs.or(filter.needs()))
    }

    pub(crate) fn build(&self, values: &Values, cluster: &Cluster) -> Box<dyn Router> {
        let filter = |filter: &Chosen<dyn Filter>| (filter.name(), filter.build(cluster));
        let parts = Parts {
            filters: self.filters.iter().map(filter).collect(),
            scorers: self.scorers.build(cluster),
            picker: self.picker.build(cluster),
        };
        (self.made.make)(parts, values, cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chosen(policy: &str, parts: &PartsText<'_>) -> Routing {
        Routing::new(policy, &[], parts, &Guests::NONE).expect("legal")
    }

    fn refusal(policy: &str, parts: &PartsText<'_>) -> String {
        Routing::new(policy, &[], parts, &Guests::NONE).expect_err("must be refused").to_string()
    }

    fn scorers(text: &str) -> PartsText<'_> {
        PartsText { scorers: Some(text), ..PartsText::default() }
    }

    #[test]
    fn weighted_reads_what_its_scorers_read() {
        let needs = |list| chosen("weighted", &scorers(list)).needs();
        assert_eq!(needs("pa:1"), Needs::NONE);
        assert_eq!(needs("pa:1,kv:1,qd:0"), Needs { kv: true, ..Needs::NONE });
    }

    #[test]
    fn the_full_spelling_of_weighted_names_scorers_and_picker() {
        let spelled = chosen("weighted", &scorers("qd:4,pa:2")).to_string();
        assert_eq!(spelled, "weighted(prefix-affinity:1,queue-depth:2; max-score)");
    }

    #[test]
    fn adaptive_routers_are_spelled_with_their_parameters_and_parts() {
        let parts = PartsText { filters: Some("kv-filter"), ..scorers("pa:3/2,qd:2,kv:2/5") };
        assert_eq!(
            chosen("kv-adaptive[hysteresis=0.2]", &parts).to_string(),
            "kv-adaptive[hysteresis=0.2](kv-filter; \
             kv-utilization:2/5,prefix-affinity:3/2,queue-depth:2/2; max-score)"
        );
        let learned = scorers("pp:1,qd:1");
        assert!(refusal("epoch-adaptive", &learned).contains("`prefix-affinity`"));
        let needs = chosen("epoch-adaptive[moves=precise-prefix]", &learned).needs();
        assert_eq!(needs, Needs { load: true, events: true, answers: true, ..Needs::NONE });
        assert!(refusal("weighted", &scorers("pa:3/2")).contains("`3/2`, not a number"));
    }

    #[test]
    fn lists_tell_the_needs_of_the_default_scorers() {
        let needs = |name: &str| Chosen::<dyn Router>::parse(name).expect("legal").needs();
        let load = Needs { load: true, kv: true, ..Needs::NONE };
        assert_eq!(needs("weighted"), load);
        assert_eq!(needs("kv-adaptive"), load);
        assert_eq!(needs("epoch-adaptive"), Needs { answers: true, ..load });
    }

    #[test]
    fn a_setting_that_nobody_reads_is_refused() {
        assert_eq!(
            refusal("round-robin", &scorers("pa:1")),
            "`scorers` is given, but routing policy `round-robin` does not read it; `weighted` does"
        );
        let picker = PartsText { picker: Some("max-score"), ..PartsText::default() };
        assert!(refusal("random", &picker).contains("`picker` is given"));
        let capacity = PartsText { lru_capacity: Some(5), ..PartsText::default() };
        assert!(refusal("random", &capacity).contains("`lru-capacity` is given"));
        let capacity = PartsText { lru_capacity: Some(5), ..scorers("qd:1") };
        assert!(refusal("weighted", &capacity).contains("add `prefix-affinity`"));
    }

    #[test]
    fn parameters_of_routers_are_checked() {
        let none = PartsText::default();
        assert!(refusal("least-loaded[ties=first]", &none).contains("`lowest-index`"));
        assert!(refusal("weighted[pa=3]", &none).contains("this policy has none"));
        assert!(refusal("wieghted", &none).contains("did you mean `weighted`?"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(kv|pa|weighted|[\\[\\],:=/0-9.e-]|\\PC){0,10}") {
            let read = |policy: &str, parts| Routing::new(policy, &[], &parts, &Guests::NONE);
            let _ = read(&text, PartsText::default());
            for made in &COMPOSED {
                let _ = read(made.name, scorers(&text));
                let _ = read(made.name, PartsText { filters: Some(&text), ..scorers("pa:1") });
                let _ = read(made.name, PartsText { picker: Some(&text), ..scorers("pa:1") });
            }
        }
    }
}
