//! What happened in a run, as columns: one row a request, a sample or a routing decision.
//!
//! The columns of requests and samples are those of `--requests-out` and `--timeline`. Listeners
//! push values as facts are stated; Python reads them in place afterwards.

use blis_arrow::{ArrayStream, Column, Schema, Table};
use blis_core::{Span, Time};
use blis_metrics::{Fact, Gauges, Listener, Record, Status};
use blis_scenario::Names;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table that any reader of Arrow's `PyCapsule` interface takes, without a copy:
/// `pyarrow.table(t)`, `polars.DataFrame(t)`, `pandas.DataFrame.from_arrow(t)`.
#[pyclass(frozen, module = "blis._core", name = "Table")]
pub(crate) struct PyTable(Arc<Table>);

impl PyTable {
    pub(crate) fn new(table: Table) -> PyTable {
        PyTable(Arc::new(table))
    }

    pub(crate) fn share(&self) -> PyTable {
        PyTable(Arc::clone(&self.0))
    }
}

#[pymethods]
impl PyTable {
    /// The names of its columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.names().map(str::to_owned).collect()
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.0.names().collect();
        format!("Table({} rows; {})", self.0.rows(), names.join(", "))
    }

    /// Its rows, for readers of Arrow's `PyCapsule` interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A reader may ask for another layout, and must live with the one there is.
        let _ = requested_schema;
        PyCapsule::new_with_value(py, ArrayStream::of(Arc::clone(&self.0)), c"arrow_array_stream")
    }

    /// The kinds of its columns, for readers of Arrow's `PyCapsule` interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, Schema::of(&self.0), c"arrow_schema")
    }
}

/// Microseconds.
fn micros(span: Span) -> f64 {
    span.as_micros_f64()
}

/// One row a request that ended.
pub(crate) struct Requests {
    names: Names,
    texts: [Column; 5],
    counts: [Column; 7],
    numbers: [Column; 5],
}

/// The order of the columns: `t`exts, `c`ounts and `n`umbers, as in `--requests-out`.
const REQUEST_COLUMNS: &str = "tnttt cct cccc nnnn c";

impl Requests {
    /// `names` must be given to the run as well.
    pub(crate) fn new(names: Names) -> Requests {
        Requests {
            names,
            texts: ["request_id", "class", "tenant", "session_id", "status"].map(Column::texts),
            counts: [
                "round",
                "instance",
                "input_tokens",
                "output_tokens",
                "cached_tokens",
                "predicted_cached_tokens",
                "preemptions",
            ]
            .map(Column::counts),
            numbers: ["arrival_us", "queue_us", "reload_us", "ttft_us", "e2e_us"]
                .map(Column::numbers),
        }
    }

    pub(crate) fn table(self) -> Table {
        let (mut texts, mut counts, mut numbers) =
            (self.texts.into_iter(), self.counts.into_iter(), self.numbers.into_iter());
        let columns = REQUEST_COLUMNS.chars().filter_map(|kind| match kind {
            't' => texts.next(),
            'c' => counts.next(),
            'n' => numbers.next(),
            _ => None,
        });
        Table::new(columns.collect())
    }

    fn row(&mut self, status: Status, record: &Record<'_>) {
        let [id, class, tenant, session, ended] = &mut self.texts;
        match record.name {
            Some(name) => id.text(name),
            None => id.text(record.request.0.to_string().as_str()),
        }
        class.text(record.class.name());
        tenant.text(self.names.tenant(record.tenant).as_str());
        session.text(record.session.map(|session| self.names.session(session)).as_deref());
        ended.text(status.name());
        let [round, instance, input, output, cached, predicted, preemptions] = &mut self.counts;
        round.count(u64::from(record.round));
        instance.count(record.instance.map(|instance| u64::from(instance.0)));
        input.count(u64::from(record.input_tokens));
        output.count(u64::from(record.output_tokens));
        cached.count(record.cached_tokens.map(u64::from));
        predicted.count(record.expected_cached_tokens.map(u64::from));
        preemptions.count(u64::from(record.preemptions));
        let [arrival, queue, reload, ttft, e2e] = &mut self.numbers;
        arrival.number(micros(record.arrival.since(Time::ZERO)));
        queue.number(micros(record.split.queue));
        reload.number(micros(record.split.reload));
        ttft.number(record.ttft.map(micros));
        e2e.number(record.e2e.map(micros));
    }
}

impl Listener for Requests {
    fn hear(&mut self, _: Time, fact: &Fact<'_>) {
        if let Fact::Closed { status, record } = fact {
            self.row(*status, record);
        }
    }
}

/// One row a sample of an instance.
pub(crate) struct Timeline {
    time: Column,
    instance: Column,
    counts: [Column; 9],
    pending: Column,
    shares: [Column; 2],
}

impl Timeline {
    pub(crate) fn new() -> Timeline {
        Timeline {
            time: Column::numbers("time_us"),
            instance: Column::counts("instance"),
            counts: Gauges::COUNTS.map(Column::counts),
            pending: Column::numbers(Gauges::PENDING),
            shares: Gauges::SHARES.map(Column::numbers),
        }
    }

    pub(crate) fn table(self) -> Table {
        let columns = [self.time, self.instance].into_iter().chain(self.counts);
        Table::new(columns.chain([self.pending]).chain(self.shares).collect())
    }
}

impl Listener for Timeline {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let Fact::Sample { instance, reading } = fact else { return };
        let Gauges { counts, pending_transfer, shares } = Gauges::from(reading);
        self.time.number(micros(at.since(Time::ZERO)));
        self.instance.count(u64::from(instance.0));
        for (column, count) in self.counts.iter_mut().zip(counts) {
            column.count(u64::from(count));
        }
        self.pending.number(micros(pending_transfer));
        for (column, share) in self.shares.iter_mut().zip(shares) {
            column.number(share);
        }
    }
}

/// One row a routing decision.
pub(crate) struct Decisions {
    request: Column,
    at: Column,
    instance: Column,
    because: Column,
    score: Column,
}

impl Decisions {
    pub(crate) fn new() -> Decisions {
        Decisions {
            request: Column::counts("request"),
            at: Column::numbers("at_us"),
            instance: Column::counts("instance"),
            because: Column::texts("because"),
            score: Column::numbers("score"),
        }
    }

    pub(crate) fn table(self) -> Table {
        Table::new(vec![self.request, self.at, self.instance, self.because, self.score])
    }
}

impl Listener for Decisions {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let Fact::Routed { request, instance, because, totals, .. } = *fact else { return };
        self.request.count(request.0);
        self.at.number(micros(at.since(Time::ZERO)));
        self.instance.count(u64::from(instance.0));
        self.because.text(because);
        self.score.number(totals.get(instance.index()).copied());
    }
}
