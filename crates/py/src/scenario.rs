//! Scenarios as Python hands them over: a file or a text, settings over it, and policies beside it.

use crate::failure;
use crate::policy::{Policy, Tally};
use crate::watch::Signals;
use blis_policy::Guests;
use blis_scenario::scenario::flags::{FLAGS, Given};
use blis_scenario::{Draft, Plan, Problems, Saturations};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A scenario as it was written, not yet checked.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Scenario {
    draft: Draft,
    policies: Vec<Py<Policy>>,
}

/// A checked scenario, and what will be counted of its policies in Python, by name.
pub(crate) struct Ready {
    pub(crate) plan: Plan,
    pub(crate) tallies: Vec<(&'static str, Arc<Tally>)>,
}

impl Scenario {
    fn new(py: Python<'_>, draft: Result<Draft, Problems>) -> PyResult<Scenario> {
        let draft = draft.map_err(|problems| failure::problems(py, &problems))?;
        Ok(Scenario { draft, policies: Vec::new() })
    }

    /// Checks everything.
    pub(crate) fn resolve(&self, py: Python<'_>) -> PyResult<Ready> {
        let mut guests = Guests::default();
        let mut tallies = Vec::new();
        for policy in &self.policies {
            let (policy, tally) = (policy.get(), Arc::new(Tally::default()));
            policy.invite(py, &mut guests, &tally)?;
            tallies.push((policy.name(), tally));
        }
        let draft = self.draft.clone().with_guests(guests);
        let mut signals = Signals::new(Vec::new());
        let plan = py.detach(|| draft.resolve()?.settle(&Saturations::default(), &mut signals));
        if let Some(raised) = signals.raised() {
            return Err(raised);
        }
        let plan = plan.map_err(|failed| failure::run(py, &failed))?;
        refuse_idle(py, &plan, &tallies)?;
        Ok(Ready { plan, tallies })
    }
}

#[pymethods]
impl Scenario {
    /// The scenario in the file `path`.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Scenario> {
        let draft = py.detach(|| Draft::read(&path));
        Scenario::new(py, draft)
    }

    /// The scenario in `text`, YAML or JSON, as if it stood in a file called `name`.
    #[staticmethod]
    fn from_text(py: Python<'_>, name: &str, text: &str) -> PyResult<Scenario> {
        Scenario::new(py, Draft::from_text(name, text))
    }

    /// An empty scenario: all defaults.
    #[staticmethod]
    fn empty() -> Scenario {
        Scenario { draft: Draft::default(), policies: Vec::new() }
    }

    /// The same with these settings, which win.
    #[pyo3(name = "set")]
    fn with_settings(&self, py: Python<'_>, settings: Vec<(String, String)>) -> PyResult<Scenario> {
        let (mut given, mut draft) = (Given::default(), self.draft.clone());
        let fill = || {
            for (name, text) in settings {
                given.push_named(&name, text)?;
            }
            given.apply(&mut draft)?;
            Ok(draft)
        };
        let made = Scenario::new(py, fill())?;
        let policies = self.policies.iter().map(|policy| policy.clone_ref(py)).collect();
        Ok(Scenario { policies, ..made })
    }

    /// The same, in which these policies may be named too.
    #[pyo3(name = "invite")]
    fn with_policies(&self, py: Python<'_>, policies: Vec<Py<Policy>>) -> Scenario {
        let known = self.policies.iter().map(|policy| policy.clone_ref(py));
        Scenario { draft: self.draft.clone(), policies: known.chain(policies).collect() }
    }

    /// Checks everything; the hash of what it means.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.resolve(py)?.plan.hash())
    }

    /// The trial of it with `seed`, or with its own, as a JSON document for `run_trial`.
    #[pyo3(signature = (seed = None))]
    fn trial(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<String> {
        if !self.policies.is_empty() {
            let message = "a trial is a document, and cannot hold policies in Python; write them \
                           in Rust, or call `blis.run`";
            return Err(failure::plain(py, "PolicyError", message));
        }
        let plan = self.resolve(py)?.plan;
        let seed = seed.unwrap_or(plan.seed);
        Ok(blis_lab::trial::document(&plan.document(), &plan.hash(), seed))
    }
}

/// Refuses policies in Python that the scenario does not name.
fn refuse_idle(
    py: Python<'_>,
    plan: &Plan,
    tallies: &[(&'static str, Arc<Tally>)],
) -> PyResult<()> {
    let policies = &plan.policies;
    let spelled = [
        policies.admission.to_string(),
        policies.routing.to_string(),
        policies.order.to_string(),
        policies.priority.to_string(),
    ]
    .join(" ");
    let part = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
    match tallies.iter().find(|(name, _)| spelled.split(part).all(|word| word != *name)) {
        Some((name, _)) => {
            let message = format!("`{name}` is not used; name it in the scenario, or leave it out");
            Err(failure::plain(py, "PolicyError", &message))
        }
        None => Ok(()),
    }
}

/// The settings that a scenario can be given by name: name, what its value is, and help.
#[pyfunction]
pub(crate) fn settings() -> Vec<(String, &'static str, &'static str)> {
    FLAGS.iter().map(|flag| (flag.name.replace('-', "_"), flag.value, flag.help)).collect()
}
