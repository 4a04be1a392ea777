//! Policies from outside this crate, e.g. functions of Python: an explicit list that is handed to
//! whoever builds policies, never a global one.
//!
//! A guest is found by name like any other policy, has parameters and needs like any other, and is
//! asked through the same contracts. What it is made of is its maker's affair. It must never
//! replace a policy that ships.

use super::Policy;
use crate::contract::{Admission, Order, Scorer};
use crate::spec::Cluster;
use crate::view::Needs;
use blis_core::{Param, Values};
use std::fmt;
use std::sync::Arc;

/// Makes a policy.
type Make<P> = dyn Fn(&Values, &Cluster) -> Box<P> + Send + Sync;

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
    pub(crate) admissions: Vec<Arc<Guest<dyn Admission>>>,
    pub(crate) orders: Vec<Arc<Guest<dyn Order>>>,
    pub(crate) scorers: Vec<Arc<Guest<dyn Scorer>>>,
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
    /// Nobody.
    pub const NONE: Guests =
        Guests { admissions: Vec::new(), orders: Vec::new(), scorers: Vec::new() };

    /// Adds an admission policy.
    ///
    /// # Errors
    /// If its name is not legal, or taken.
    pub fn add_admission(&mut self, guest: Guest<dyn Admission>) -> Result<(), String> {
        add(&mut self.admissions, guest)
    }

    /// Adds an order of waiting requests.
    ///
    /// # Errors
    /// If its name is not legal, or taken.
    pub fn add_order(&mut self, guest: Guest<dyn Order>) -> Result<(), String> {
        add(&mut self.orders, guest)
    }

    /// Adds a scorer.
    ///
    /// # Errors
    /// If its name is not legal, or taken.
    pub fn add_scorer(&mut self, guest: Guest<dyn Scorer>) -> Result<(), String> {
        add(&mut self.scorers, guest)
    }
}

fn add<P: Policy + ?Sized>(guests: &mut Vec<Arc<Guest<P>>>, guest: Guest<P>) -> Result<(), String> {
    let name = guest.name;
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(legal) {
        return Err(format!(
            "`{name}` is no name of a policy; legal: lower case letters, digits and hyphens"
        ));
    }
    if P::ALL.iter().any(|spec| spec.name == name || spec.alias == Some(name)) {
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
    use crate::chosen::Chosen;
    use crate::spec::PolicyError;
    use crate::view::WaitingView;
    use crate::view::examples::waiting;
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

    fn order(text: &str, guests: &Guests) -> Result<Chosen<dyn Order>, PolicyError> {
        Chosen::new(text, &[], guests)
    }

    #[test]
    fn a_guest_is_spelled_and_checked_like_any_other_and_told_from_its_namesakes() {
        let built = order("equal[rank=3]", &guests()).expect("legal");
        assert_eq!(built.to_string(), "equal@1a[rank=3]");
        assert!(built.needs().cached);
        assert_eq!(
            built.build(&Cluster::SMALL).rank(&waiting(1), 0.0, Time::ZERO).to_bits(),
            3.0_f64.to_bits()
        );
        let error = order("equal[rank=10]", &guests()).unwrap_err();
        assert_eq!(error.to_string(), "order `equal`: `rank` is `10`; legal: a number from 0 to 9");
    }

    #[test]
    fn guests_are_suggested_and_those_that_ship_stay() {
        let error = order("equall", &guests()).unwrap_err().to_string();
        assert!(error.contains("did you mean `equal`?"), "{error}");
        assert!(error.contains("`fcfs`"), "{error}");
        assert_eq!(order("fcfs", &guests()).unwrap().to_string(), "fcfs");
        assert!(order("equal", &Guests::NONE).is_err(), "nobody invited it here");
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
