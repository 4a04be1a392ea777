//! Policies in Python: functions that the engine asks through the same contracts as any other.
//!
//! A contract has no way to fail, and a run must not go on with made-up answers. So the first
//! exception, or the first answer that breaks the contract, is kept; from then on the function is
//! not asked any more, and the run is stopped at the next look of its observer. What the calls cost
//! is counted beside.
#![expect(clippy::disallowed_types, reason = "what calls cost is told with the result")]

use crate::views::{Cluster, Request, Waiting};
use blis_core::{Dice, Param, ParamKind, RequestView, Time, Value, Values};
use blis_policy::{
    Admission, ClusterView, Guest, Guests, Needs, Order, Scorer, Verdict, WaitingView,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The most words that an admission policy may reject with: they are kept for good.
const MOST_REASONS: usize = 64;

/// A policy as it was declared in Python.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Policy {
    kind: Kind,
    #[pyo3(get)]
    name: &'static str,
    params: &'static [Param],
    needs: Needs,
    varies: bool,
    identity: String,
    function: Py<PyAny>,
}

/// Which contract it fulfils.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Admission,
    Order,
    Scorer,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Admission => "admission policy",
            Kind::Order => "order",
            Kind::Scorer => "scorer",
        }
    }
}

#[pymethods]
impl Policy {
    /// Declares a policy. What it is called and takes is kept for good.
    #[new]
    #[pyo3(signature = (kind, name, needs, params, identity, varies, function))]
    fn new(
        kind: &str,
        name: &str,
        needs: Vec<String>,
        params: &Bound<'_, PyDict>,
        identity: String,
        varies: bool,
        function: Py<PyAny>,
    ) -> PyResult<Policy> {
        let kind = match kind {
            "admission" => Kind::Admission,
            "order" => Kind::Order,
            "scorer" => Kind::Scorer,
            _ => return Err(PyValueError::new_err(format!("unknown kind `{kind}`"))),
        };
        let needs = needs_of(kind, &needs).map_err(PyValueError::new_err)?;
        let params = params.iter().map(|(name, spec)| param(&name, &spec));
        let params: Vec<Param> = params.collect::<PyResult<_>>()?;
        let (name, params) = (leaked(name), Box::leak(params.into_boxed_slice()));
        let policy = Policy { kind, name, params, needs, varies, identity, function };
        // A name that no scenario could use is told where it is given.
        let tally = Arc::new(Tally::default());
        Python::attach(|py| policy.invite(py, &mut Guests::default(), &tally))?;
        Ok(policy)
    }
}

impl Policy {
    /// Adds it to `guests`; its calls are counted in `tally`.
    pub(crate) fn invite(
        &self,
        py: Python<'_>,
        guests: &mut Guests,
        tally: &Arc<Tally>,
    ) -> PyResult<()> {
        let Policy { kind, name, params, needs, varies, .. } = *self;
        let (function, tally) = (self.function.clone_ref(py), Arc::clone(tally));
        let caller = move |values: &Values| {
            let kwargs = Python::attach(|py| keywords(py, values).map(Bound::unbind));
            let kwargs = kwargs.map_err(|error| tally.fail(error)).ok();
            let function = Python::attach(|py| function.clone_ref(py));
            Caller { kind, name, needs, function, kwargs, tally: Arc::clone(&tally) }
        };
        let identity = self.identity.clone();
        let added = match kind {
            Kind::Scorer => guests.add_scorer(Guest {
                name,
                params,
                needs,
                identity,
                make: Box::new(move |values, _| Box::new(PyScorer(caller(values)))),
            }),
            Kind::Order => guests.add_order(Guest {
                name,
                params,
                needs,
                identity,
                make: Box::new(move |values, _| Box::new(PyOrder(caller(values), varies))),
            }),
            Kind::Admission => guests.add_admission(Guest {
                name,
                params,
                needs,
                identity,
                make: Box::new(move |values, _| {
                    Box::new(PyAdmission(caller(values), BTreeMap::new()))
                }),
            }),
        };
        added.map_err(|message| crate::failure::plain(py, "PolicyError", &message))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

/// `text`, kept for good: policies are told apart by words that live as long as the program.
fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// What `names` declare, for a policy of this kind.
fn needs_of(kind: Kind, names: &[String]) -> Result<Needs, String> {
    let gateway = ["load", "classes", "kv", "hit_rate", "transfers", "events"];
    let legal: &[&str] = if kind == Kind::Order { &["cached", "priority"] } else { &gateway };
    let mut needs = Needs::NONE;
    for name in names {
        if !legal.contains(&name.as_str()) {
            let kind = kind.name();
            let legal = legal.join("`, `");
            return Err(format!("`{name}` is nothing that an {kind} can need; legal: `{legal}`"));
        }
        match name.as_str() {
            "load" => needs.load = true,
            "classes" => needs.classes = true,
            "kv" => needs.kv = true,
            "hit_rate" => needs.hit_rate = true,
            "transfers" => needs.transfers = true,
            "events" => needs.events = true,
            "cached" => needs.cached = true,
            _ => needs.priority = true,
        }
    }
    Ok(needs)
}

/// A parameter: `(min, max, default)`, a flag, or a list of words, the first of which is the
/// default.
fn param(name: &Bound<'_, PyAny>, spec: &Bound<'_, PyAny>) -> PyResult<Param> {
    let name: String = name.extract()?;
    let kind = if let Ok(flag) = spec.cast::<PyBool>() {
        ParamKind::Flag { default: flag.is_true() }
    } else if let Ok((min, max, default)) = spec.extract::<(u64, u64, u64)>() {
        ParamKind::Int { min, max, default }
    } else if let Ok((min, max, default)) = spec.extract::<(f64, f64, f64)>() {
        ParamKind::Float { min, max, default }
    } else if let Ok(words) = spec.extract::<Vec<String>>() {
        let words: Vec<&'static str> = words.iter().map(|word| leaked(word)).collect();
        ParamKind::Choice { options: Box::leak(words.into_boxed_slice()) }
    } else {
        return Err(PyTypeError::new_err(format!(
            "parameter `{name}` is declared as {spec}; legal: (min, max, default), True or False, \
             or a list of words"
        )));
    };
    let legal = match kind {
        ParamKind::Float { min, max, default } => (min..=max).contains(&default),
        ParamKind::Int { min, max, default } => (min..=max).contains(&default),
        ParamKind::Choice { options } => !options.is_empty(),
        _ => true,
    };
    if !legal {
        let message = format!("parameter `{name}`: the default is not within {}", kind.legal());
        return Err(PyValueError::new_err(message));
    }
    // Scenarios spell words with hyphens, Python with underscores.
    Ok(Param { name: leaked(&name.replace('_', "-")), kind, unit: "", help: "", when: None })
}

/// The values of parameters as keyword arguments.
fn keywords<'py>(py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyDict>> {
    let kwargs = PyDict::new(py);
    for (param, value) in values.iter() {
        let name = param.name.replace('-', "_");
        match value {
            Value::Float(x) => kwargs.set_item(name, x)?,
            Value::Int(n) => kwargs.set_item(name, n)?,
            Value::Flag(b) => kwargs.set_item(name, b)?,
            Value::Word(word) => kwargs.set_item(name, word)?,
        }
    }
    Ok(kwargs)
}

/// What the calls of one policy cost in one run, and what stopped it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    calls: AtomicU64,
    nanos: AtomicU64,
    failed: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Tally {
    /// Calls, and seconds in them.
    pub(crate) fn cost(&self) -> (u64, f64) {
        let nanos = self.nanos.load(Ordering::Relaxed);
        let seconds = core::time::Duration::from_nanos(nanos).as_secs_f64();
        (self.calls.load(Ordering::Relaxed), seconds)
    }

    /// Whether something stopped it.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// What stopped it.
    pub(crate) fn take_error(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn fail(&self, error: PyErr) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// A function with its parameters, in one run.
struct Caller {
    kind: Kind,
    name: &'static str,
    needs: Needs,
    function: Py<PyAny>,
    kwargs: Option<Py<PyDict>>,
    tally: Arc<Tally>,
}

impl Caller {
    /// Asks the function: `args` makes its arguments, `read` reads its answer. `None` if it has
    /// failed, now or before.
    fn ask<T>(
        &self,
        args: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.tally.failed() {
            return None;
        }
        let started = Instant::now();
        let answer = Python::attach(|py| {
            let kwargs = self.kwargs.as_ref().map(|kwargs| kwargs.bind(py));
            read(&self.function.bind(py).call(args(py)?, kwargs)?)
        });
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.tally.calls.fetch_add(1, Ordering::Relaxed);
        self.tally.nanos.fetch_add(nanos, Ordering::Relaxed);
        answer.map_err(|error| self.tally.fail(error)).ok()
    }

    /// The exception of an answer that breaks the contract.
    fn broken(&self, py: Python<'_>, what: &str) -> PyErr {
        let message = format!("{} `{}` {what}", self.kind.name(), self.name);
        crate::failure::plain(py, "PolicyError", &message)
    }
}

/// A scorer in Python.
struct PyScorer(Caller);

impl Scorer for PyScorer {
    fn score(&mut self, request: &RequestView<'_>, cluster: &ClusterView<'_>, scores: &mut [f64]) {
        let caller = &self.0;
        let needs = caller.needs;
        let given = caller.ask(
            |py| (Request::of(request), Cluster::of(py, cluster, needs)?).into_pyobject(py),
            |answer| {
                let given: Vec<f64> = answer.extract().map_err(|_| {
                    caller.broken(answer.py(), "must give a list of numbers, one an instance")
                })?;
                if given.len() != cluster.instances.len() {
                    let (found, right) = (given.len(), cluster.instances.len());
                    let what = format!("gave {found} scores for {right} instances");
                    return Err(caller.broken(answer.py(), &what));
                }
                let bad = given.iter().zip(cluster.instances);
                let bad = bad.clone().find(|(score, _)| !(0.0..=1.0).contains(*score));
                if let Some((score, instance)) = bad {
                    let id = instance.id.0;
                    let what = format!("gave instance {id} {score}; legal: a number from 0 to 1");
                    return Err(caller.broken(answer.py(), &what));
                }
                Ok(given)
            },
        );
        match given {
            Some(given) => scores.copy_from_slice(&given),
            None => scores.fill(0.0),
        }
    }
}

/// An order in Python, and whether its answers change while a request waits.
struct PyOrder(Caller, bool);

impl Order for PyOrder {
    fn rank(&self, waiting: &WaitingView<'_>, priority: f64, now: Time) -> f64 {
        let (caller, varies) = (&self.0, self.1);
        let needs = caller.needs;
        let rank = caller.ask(
            |py| (Waiting::of(py, waiting, (priority, now), needs, varies)?,).into_pyobject(py),
            |answer| {
                let rank: f64 = answer
                    .extract()
                    .map_err(|_| caller.broken(answer.py(), "must give a number"))?;
                if !rank.is_finite() {
                    let what = format!("gave {rank}; legal: a finite number");
                    return Err(caller.broken(answer.py(), &what));
                }
                Ok(rank)
            },
        );
        rank.unwrap_or(0.0)
    }

    fn varies(&self) -> bool {
        self.1
    }
}

/// An admission policy in Python, and the words that it has rejected with.
struct PyAdmission(Caller, BTreeMap<String, &'static str>);

impl Admission for PyAdmission {
    fn admit(
        &mut self,
        request: &RequestView<'_>,
        cluster: &ClusterView<'_>,
        _: &mut Dice,
    ) -> Verdict {
        let PyAdmission(caller, reasons) = self;
        let needs = caller.needs;
        let verdict = caller.ask(
            |py| (Request::of(request), Cluster::of(py, cluster, needs)?).into_pyobject(py),
            |answer| {
                if let Ok(admitted) = answer.cast::<PyBool>() {
                    let admitted = admitted.is_true();
                    return Ok(if admitted {
                        Verdict::Admit
                    } else {
                        Verdict::Reject(caller.name)
                    });
                }
                let reason: String = answer.extract().map_err(|_| {
                    caller.broken(answer.py(), "must give True, or False or a word to reject")
                })?;
                if let Some(known) = reasons.get(&reason) {
                    return Ok(Verdict::Reject(known));
                }
                if reasons.len() >= MOST_REASONS {
                    let what = format!("rejects with more than {MOST_REASONS} different words");
                    return Err(caller.broken(answer.py(), &what));
                }
                let word = leaked(&reason);
                reasons.insert(reason, word);
                Ok(Verdict::Reject(word))
            },
        );
        verdict.unwrap_or(Verdict::Admit)
    }
}
