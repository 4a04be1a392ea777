//! What policies in Python see: copies of the views of `blis_policy`, which hide every signal that
//! the policy has not declared.
//!
//! A view is a value of the moment. Whoever keeps one sees the past, and nothing fresher.

use blis_core::{RequestView, SloClass, Span, Time};
use blis_policy::{ClusterView, InstanceView, Needs, WaitingView};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A request, as far as a policy may know it; not how much it will generate.
#[pyclass(frozen, get_all, module = "blis._core")]
pub(crate) struct Request {
    /// Place in the order of arrival.
    id: u64,
    /// When the client sent it, in simulated seconds.
    arrival_s: f64,
    /// Prompt length in tokens.
    input_tokens: u32,
    /// Full KV blocks of the prompt.
    prompt_blocks: u32,
    /// Service class, e.g. `critical`.
    slo_class: &'static str,
    /// Tenant, by number.
    tenant: u64,
    /// Session, by number, if it is a round of one.
    session: Option<u64>,
    /// Round within the session, from 0.
    round: u32,
    /// How often the client has sent it before, because it was rejected.
    attempt: u32,
    /// The client's own deadline for the whole answer, in ms from arrival.
    deadline_ms: Option<f64>,
}

impl Request {
    pub(crate) fn of(view: &RequestView<'_>) -> Request {
        // Destructured without `..`, so that a new field makes this line decide about it.
        let RequestView {
            id,
            arrival,
            input_tokens,
            prompt_blocks,
            class,
            tenant,
            session,
            round,
            attempt,
            deadline,
        } = *view;
        Request {
            id: id.0,
            arrival_s: arrival.as_secs_f64(),
            input_tokens,
            prompt_blocks: prompt_blocks.len(),
            slo_class: class.name(),
            tenant: u64::from(tenant.0),
            session: session.map(|session| session.0),
            round,
            attempt,
            deadline_ms: deadline.map(millis),
        }
    }
}

fn millis(span: Span) -> f64 {
    span.as_micros_f64() / 1e3
}

/// `value` if `declared`, else the complaint that `signal` is not in `needs`.
fn declared<T>(py: Python<'_>, declared: bool, signal: &str, need: &str, value: T) -> PyResult<T> {
    if declared {
        return Ok(value);
    }
    let message = format!("`{signal}` is not declared; add \"{need}\" to `needs` of the policy");
    Err(crate::failure::plain(py, "SignalError", &message))
}

/// What the gateway knows of an instance.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Instance {
    view: InstanceView,
    needs: Needs,
}

#[pymethods]
impl Instance {
    /// Its number, from 0.
    #[getter]
    fn id(&self) -> u32 {
        self.view.id.0
    }

    /// The number of its pool, from 0: the instances of a pool are alike.
    #[getter]
    fn pool(&self) -> usize {
        self.view.pool
    }

    /// Requests that the gateway sent there and that have not ended; always live.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.view.in_flight
    }

    /// Their prompt tokens; always live.
    #[getter]
    fn in_flight_tokens(&self) -> u64 {
        self.view.in_flight_tokens
    }

    /// Prompt tokens that are not expected to be cached, of requests without a first token; always
    /// live.
    #[getter]
    fn unstarted_tokens(&self) -> u64 {
        self.view.unstarted_tokens
    }

    /// Requests waiting in its queue (`load`).
    #[getter]
    fn queue_depth(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.load, "queue_depth", "load", self.view.queue_depth)
    }

    /// Requests in its batch (`load`).
    #[getter]
    fn running(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.load, "running", "load", self.view.running)
    }

    /// Requests sent there that had not joined its queue when it was last polled (`load`).
    #[getter]
    fn unseen(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.load, "unseen", "load", self.view.unseen)
    }

    /// Waiting, running and sent since: each request once (`load`).
    #[getter]
    fn load(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.load, "load", "load", self.view.load())
    }

    /// When queue and batch were looked at, in simulated seconds (`load` or `classes`).
    #[getter]
    fn as_of_s(&self, py: Python<'_>) -> PyResult<f64> {
        let value = self.view.as_of.unwrap_or_default().as_secs_f64();
        declared(py, self.needs.reads_load(), "as_of_s", "load", value)
    }

    /// Requests waiting in its queue by class (`classes`).
    #[getter]
    fn waiting_by_class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        declared(py, self.needs.classes, "waiting_by_class", "classes", ())?;
        let found = PyDict::new(py);
        for class in SloClass::ALL {
            found.set_item(class.name(), self.view.waiting_by_class[class.index()])?;
        }
        Ok(found)
    }

    /// Share of its KV blocks that running requests hold (`kv`).
    #[getter]
    fn kv_utilization(&self, py: Python<'_>) -> PyResult<f64> {
        declared(py, self.needs.kv, "kv_utilization", "kv", self.view.kv_utilization)
    }

    /// KV blocks that no running request holds (`kv`).
    #[getter]
    fn free_blocks(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.kv, "free_blocks", "kv", self.view.free_blocks)
    }

    /// When its memory was looked at, in simulated seconds (`kv`, `hit_rate` or `transfers`).
    #[getter]
    fn kv_as_of_s(&self, py: Python<'_>) -> PyResult<f64> {
        let value = self.view.kv_as_of.unwrap_or_default().as_secs_f64();
        declared(py, self.needs.reads_memory(), "kv_as_of_s", "kv", value)
    }

    /// Share of prompt tokens found in its prefix cache so far (`hit_rate`).
    #[getter]
    fn cache_hit_rate(&self, py: Python<'_>) -> PyResult<f64> {
        declared(py, self.needs.hit_rate, "cache_hit_rate", "hit_rate", self.view.cache_hit_rate)
    }

    /// How long copies from its CPU tier still take, in us (`transfers`).
    #[getter]
    fn pending_transfer_us(&self, py: Python<'_>) -> PyResult<f64> {
        let value = self.view.pending_transfer_us;
        declared(py, self.needs.transfers, "pending_transfer_us", "transfers", value)
    }

    /// Share of the blocks copied out lately that came back soon (`transfers`).
    #[getter]
    fn thrashing_rate(&self, py: Python<'_>) -> PyResult<f64> {
        let value = self.view.thrashing_rate;
        declared(py, self.needs.transfers, "thrashing_rate", "transfers", value)
    }

    /// Leading full blocks of the request's prompt that it has cached, as KV events tell
    /// (`events`).
    #[getter]
    fn cached_blocks(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.events, "cached_blocks", "events", self.view.cached_blocks)
    }

    /// Blocks behind those that its CPU tier has, as KV events tell (`events`).
    #[getter]
    fn cached_cpu_blocks(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.events, "cached_cpu_blocks", "events", self.view.cached_cpu_blocks)
    }

    fn __repr__(&self) -> String {
        format!("Instance(id={})", self.view.id.0)
    }
}

/// What the gateway knows of the cluster when it decides about a request.
#[pyclass(frozen, get_all, module = "blis._core")]
pub(crate) struct Cluster {
    /// The instant of the decision, in simulated seconds.
    now_s: f64,
    /// The instances to choose from, in order of their numbers.
    instances: Py<PyList>,
}

impl Cluster {
    pub(crate) fn of(py: Python<'_>, view: &ClusterView<'_>, needs: Needs) -> PyResult<Cluster> {
        let now = view.now;
        let instance = |view: &InstanceView| {
            let mut view = *view;
            view.as_of.get_or_insert(now);
            view.kv_as_of.get_or_insert(now);
            Py::new(py, Instance { view, needs })
        };
        let instances: Vec<Py<Instance>> =
            view.instances.iter().map(instance).collect::<PyResult<_>>()?;
        Ok(Cluster {
            now_s: view.now.as_secs_f64(),
            instances: PyList::new(py, instances)?.unbind(),
        })
    }
}

/// A request in the queue of an instance.
#[pyclass(frozen, module = "blis._core")]
pub(crate) struct Waiting {
    #[pyo3(get)]
    request: Py<Request>,
    #[pyo3(get)]
    enqueued_s: f64,
    #[pyo3(get)]
    generated: u32,
    #[pyo3(get)]
    expected_hit_blocks: Option<u32>,
    cached_blocks: u32,
    priority: f64,
    now: Time,
    needs: Needs,
    varies: bool,
}

impl Waiting {
    pub(crate) fn of(
        py: Python<'_>,
        view: &WaitingView<'_>,
        (priority, now): (f64, Time),
        needs: Needs,
        varies: bool,
    ) -> PyResult<Waiting> {
        Ok(Waiting {
            request: Py::new(py, Request::of(&view.request))?,
            enqueued_s: view.enqueued.as_secs_f64(),
            generated: view.generated,
            expected_hit_blocks: view.intent.expected_hit_blocks,
            cached_blocks: view.cached_blocks,
            priority,
            now,
            needs,
            varies,
        })
    }
}

#[pymethods]
impl Waiting {
    /// Full blocks of its prompt that are cached here now (`cached`).
    #[getter]
    fn cached_blocks(&self, py: Python<'_>) -> PyResult<u32> {
        declared(py, self.needs.cached, "cached_blocks", "cached", self.cached_blocks)
    }

    /// Its priority; higher is sooner (`priority`).
    #[getter]
    fn priority(&self, py: Python<'_>) -> PyResult<f64> {
        declared(py, self.needs.priority, "priority", "priority", self.priority)
    }

    /// Now, in simulated seconds; only for orders with `varies=True`, others are asked once.
    #[getter]
    fn now_s(&self, py: Python<'_>) -> PyResult<f64> {
        if self.varies {
            return Ok(self.now.as_secs_f64());
        }
        let message = "`now_s` changes while a request waits; give the order `varies=True`";
        Err(crate::failure::plain(py, "SignalError", message))
    }
}
