//! Policies from outside this crate, e.g. functions of Python: an explicit list that is handed to
//! whoever builds policies, never a global one.
//!
//! A guest is found by name like any other policy, has parameters and needs like any other, and is
//! asked through the same contracts. What it is made of is its maker's affair. It must never
//! replace a policy that ships.

use crate::contract::{Admission, Order, Router, Scorer};
use crate::routing::scorers;
use crate::spec::{
    Built, Cluster, Parsed, PolicyError, Spec, build_spec, canonical, find, nearest, values_of,
};
use crate::view::Needs;
use crate::{RoutingText, admission, build, order};
use blis_core::{Param, Values};
use std::fmt;
use std::sync::Arc;

/// Makes a policy.
pub type Make<P> = dyn Fn(&Values, &Cluster) -> Box<P> + Send + Sync;

/// A policy from outside. `P` is the contract it fulfils, e.g. `dyn Order`.
pub struct Guest<P: ?Sized> {
    /// Spelling in files and flags: lower case, digits, hyphens.
    pub name: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it reads.
    pub needs: Needs,
    /// What tells it from others of its name, e.g. a hash of its source: a part of its full
    /// spelling, because equal spellings decide equally.
    pub identity: String,
    /// Makes one.
    pub make: Box<Make<P>>,
}

/// Guests of each kind that may have some.
#[derive(Clone, Default)]
pub struct Guests {
    admissions: Vec<Arc<Guest<dyn Admission>>>,
    orders: Vec<Arc<Guest<dyn Order>>>,
    scorers: Vec<Arc<Guest<dyn Scorer>>>,
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admissions = self.admissions.iter().map(|guest| guest.name);
        let orders = self.orders.iter().map(|guest| guest.name);
        let scorers = self.scorers.iter().map(|guest| guest.name);
        f.debug_set().entries(admissions.chain(orders).chain(scorers)).finish()
    }
}

impl Guests {
    /// Adds an admission policy.
    ///
    /// # Errors
    /// If its name is not legal, or taken.
    pub fn add_admission(&mut self, guest: Guest<dyn Admission>) -> Result<(), String> {
        add(&mut self.admissions, admission::ALL, guest)
    }

    /// Adds an order of waiting requests.
    ///
    /// # Errors
    /// If its name is not legal, or taken.
    pub fn add_order(&mut self, guest: Guest<dyn Order>) -> Result<(), String> {
        add(&mut self.orders, order::ALL, guest)
    }

    /// Adds a scorer.
    ///
    /// # Errors
    /// If its name is not legal, or taken.
    pub fn add_scorer(&mut self, guest: Guest<dyn Scorer>) -> Result<(), String> {
        add(&mut self.scorers, scorers::ALL, guest)
    }

    /// The router that `text` spells.
    ///
    /// # Errors
    /// As [`build_router`](crate::build_router).
    pub fn build_router(
        &self,
        text: &RoutingText<'_>,
        cluster: &Cluster,
    ) -> Result<Built<dyn Router>, PolicyError> {
        build::router(text, self, cluster)
    }

    /// The admission policy that `text` spells.
    ///
    /// # Errors
    /// As [`build_admission`](crate::build_admission).
    pub fn build_admission(
        &self,
        text: &str,
        cluster: &Cluster,
    ) -> Result<Built<dyn Admission>, PolicyError> {
        build::gate(text, self, cluster)
    }

    /// The order of waiting requests that `text` spells.
    ///
    /// # Errors
    /// As [`build_order`](crate::build_order).
    pub fn build_order(
        &self,
        text: &str,
        cluster: &Cluster,
    ) -> Result<Built<dyn Order>, PolicyError> {
        const KIND: &str = "order";
        let parsed = crate::spec::parse(KIND, text)?;
        let known = Known { kind: KIND, house: order::ALL, guests: &self.orders };
        known.build(&parsed, cluster).map(|(_, built)| built)
    }

    /// The admission policies that may be named.
    pub(crate) fn admissions(&self) -> Known<'_, dyn Admission> {
        Known { kind: "admission policy", house: admission::ALL, guests: &self.admissions }
    }

    /// The scorers that may be named.
    pub(crate) fn scorers(&self) -> Known<'_, dyn Scorer> {
        Known { kind: crate::weights::KIND, house: scorers::ALL, guests: &self.scorers }
    }
}

/// The policies of one kind: those that ship, and guests.
pub(crate) struct Known<'a, P: ?Sized> {
    kind: &'static str,
    house: &'a [&'a Spec<P>],
    guests: &'a [Arc<Guest<P>>],
}

impl<P: ?Sized> Known<'_, P> {
    /// The policy that `parsed` names, made, and its name.
    pub(crate) fn build(
        &self,
        parsed: &Parsed<'_>,
        cluster: &Cluster,
    ) -> Result<(&'static str, Built<P>), PolicyError> {
        let Some(guest) = self.guests.iter().find(|guest| guest.name == parsed.name) else {
            let spec = find(self.kind, self.house, parsed.name).map_err(|e| self.with_guests(e))?;
            return Ok((spec.name, build_spec(self.kind, spec, &parsed.given, cluster)?));
        };
        let values = values_of(self.kind, guest.name, guest.params, &parsed.given)?;
        let spelled = format!("{}@{}", guest.name, guest.identity);
        let built = Built {
            policy: (guest.make)(&values, cluster),
            needs: guest.needs,
            canonical: canonical(&spelled, &values),
        };
        Ok((guest.name, built))
    }

    /// The name that `name` stands for, if it is one of those that ship.
    pub(crate) fn house_name(&self, name: &str) -> Result<&'static str, PolicyError> {
        find(self.kind, self.house, name).map(|s| s.name).map_err(|e| self.with_guests(e))
    }

    /// Tells of guests as well where somebody unknown was asked for.
    fn with_guests(&self, error: PolicyError) -> PolicyError {
        let PolicyError::Unknown { kind, name, mut known, nearest: house } = error else {
            return error;
        };
        let guests = self.guests.iter().map(|guest| guest.name);
        let nearest = nearest(&name, guests.clone().chain(house));
        known.extend(guests);
        PolicyError::Unknown { kind, name, known, nearest }
    }
}

fn add<P: ?Sized>(
    guests: &mut Vec<Arc<Guest<P>>>,
    house: &[&Spec<P>],
    guest: Guest<P>,
) -> Result<(), String> {
    let name = guest.name;
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(legal) {
        return Err(format!(
            "`{name}` is no name of a policy; legal: lower case letters, digits and hyphens"
        ));
    }
    if house.iter().any(|spec| spec.name == name || spec.alias == Some(name)) {
        return Err(format!("`{name}` is a policy that ships; give it another name"));
    }
    if guests.iter().any(|other| other.name == name) {
        return Err(format!("`{name}` is given twice"));
    }
    guests.push(Arc::new(guest));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::WaitingView;
    use blis_core::Time;

    struct Constant(f64);

    impl Order for Constant {
        fn rank(&self, _: &WaitingView<'_>, _: f64, _: Time) -> f64 {
            self.0
        }
    }

    const PARAMS: &[Param] = &[Param::float("rank", 0.0..=9.0, 1.0, "").help("the rank of all")];

    fn guest(name: &'static str) -> Guest<dyn Order> {
        Guest {
            name,
            params: PARAMS,
            needs: Needs { cached: true, ..Needs::NONE },
            identity: "1a".to_owned(),
            make: Box::new(|values, _| Box::new(Constant(values.float("rank")))),
        }
    }

    fn guests() -> Guests {
        let mut guests = Guests::default();
        guests.add_order(guest("equal")).expect("a free name");
        guests
    }

    #[test]
    fn a_guest_is_spelled_and_checked_like_any_other_and_told_from_its_namesakes() {
        let built = guests().build_order("equal[rank=3]", &Cluster::SMALL).expect("legal");
        assert_eq!(built.canonical, "equal@1a[rank=3]");
        assert!(built.needs.cached);
        let error = guests().build_order("equal[rank=10]", &Cluster::SMALL).unwrap_err();
        assert_eq!(error.to_string(), "order `equal`: `rank` is `10`; legal: a number from 0 to 9");
    }

    #[test]
    fn guests_are_suggested_and_those_that_ship_stay() {
        let error = guests().build_order("equall", &Cluster::SMALL).unwrap_err().to_string();
        assert!(error.contains("did you mean `equal`?"), "{error}");
        assert!(error.contains("`fcfs`"), "{error}");
        assert_eq!(guests().build_order("fcfs", &Cluster::SMALL).unwrap().canonical, "fcfs");
        assert!(crate::build_order("equal", &Cluster::SMALL).is_err(), "nobody invited it here");
    }

    #[test]
    fn names_that_are_taken_or_no_names_are_refused() {
        for (name, complaint) in [
            ("fcfs", "ships"),
            ("equal", "twice"),
            ("Equal", "lower case"),
            ("a[b]", "lower case"),
            ("", "lower case"),
        ] {
            let error = guests().add_order(guest(name)).expect_err(name);
            assert!(error.contains(complaint), "{name}: {error}");
        }
    }
}
