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

/// Columns by their kinds and names: `t`exts, `c`ounts and `n`umbers.
fn columns(list: &str) -> Vec<Column> {
    let column = |word: &str| match word.split_at(2) {
        ("t:", name) => Column::texts(name),
        ("c:", name) => Column::counts(name),
        (_, name) => Column::numbers(name),
    };
    list.split_whitespace().map(column).collect()
}

/// One row a request that ended.
pub(crate) struct Requests {
    names: Names,
    columns: Vec<Column>,
}

/// The columns, as in `--requests-out`.
const REQUESTS: &str = "t:request_id n:arrival_us t:class t:tenant t:session_id c:round c:instance \
                        t:status c:input_tokens c:output_tokens c:cached_tokens \
                        c:predicted_cached_tokens n:gateway_us n:queue_us n:reload_us n:prefill_us \
                        n:recompute_us n:output_us n:ttft_us n:e2e_us c:preemptions";

impl Requests {
    /// `names` must be given to the run as well.
    pub(crate) fn new(names: Names) -> Requests {
        Requests { names, columns: columns(REQUESTS) }
    }

    pub(crate) fn table(self) -> Table {
        Table::new(self.columns)
    }

    fn row(&mut self, status: Status, record: &Record<'_>) {
        let mut columns = self.columns.iter_mut();
        let mut next = || columns.next().expect("a column for each value");
        match record.name {
            Some(name) => next().text(name),
            None => next().text(record.request.0.to_string().as_str()),
        }
        next().number(micros(record.arrival.since(Time::ZERO)));
        next().text(record.class.name());
        next().text(self.names.tenant(record.tenant).as_str());
        next().text(record.session.map(|session| self.names.session(session)).as_deref());
        next().count(u64::from(record.round));
        next().count(record.instance.map(|instance| u64::from(instance.0)));
        next().text(status.name());
        next().count(u64::from(record.input_tokens));
        next().count(u64::from(record.output_tokens));
        next().count(record.cached_tokens.map(u64::from));
        next().count(record.expected_cached_tokens.map(u64::from));
        for (_, span) in record.split.parts() {
            next().number(micros(span));
        }
        next().number(record.ttft.map(micros));
        next().number(record.e2e.map(micros));
        next().count(u64::from(record.preemptions));
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
pub(crate) struct Timeline(Vec<Column>);

impl Timeline {
    pub(crate) fn new() -> Timeline {
        let mut all = columns("n:time_us c:instance");
        all.extend(Gauges::COUNTS.map(Column::counts));
        all.extend([Gauges::PENDING].into_iter().chain(Gauges::SHARES).map(Column::numbers));
        Timeline(all)
    }

    pub(crate) fn table(self) -> Table {
        Table::new(self.0)
    }
}

impl Listener for Timeline {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let Fact::Sample { instance, reading } = fact else { return };
        let Gauges { counts, pending_transfer, shares } = Gauges::from(reading);
        let mut columns = self.0.iter_mut();
        let mut next = || columns.next().expect("a column for each value");
        next().number(micros(at.since(Time::ZERO)));
        next().count(u64::from(instance.0));
        for count in counts {
            next().count(u64::from(count));
        }
        next().number(micros(pending_transfer));
        for share in shares {
            next().number(share);
        }
    }
}

/// One row a routing decision.
pub(crate) struct Decisions(Vec<Column>);

impl Decisions {
    pub(crate) fn new() -> Decisions {
        Decisions(columns("c:request n:at_us c:instance t:because n:score"))
    }

    pub(crate) fn table(self) -> Table {
        Table::new(self.0)
    }
}

impl Listener for Decisions {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let Fact::Routed { request, instance, because, totals, .. } = *fact else { return };
        let [requests, times, instances, reasons, scores] = &mut self.0[..] else { return };
        requests.count(request.0);
        times.number(micros(at.since(Time::ZERO)));
        instances.count(u64::from(instance.0));
        reasons.text(because);
        scores.number(totals.get(instance.index()).copied());
    }
}
