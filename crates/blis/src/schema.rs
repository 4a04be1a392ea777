//! `blis schema`: JSON Schemas of the files that people write.

use crate::args::{FileKind, SchemaArgs};
use crate::failure::Failure;
use crate::output;
use blis_lab::{optimize, study};
use blis_scenario::{json, json_schema};

/// Prints the one that `args` name.
pub(crate) fn schema(args: &SchemaArgs) -> Result<(), Failure> {
    output::print(&text(args.kind))
}

/// The schema of files of that kind.
pub(crate) fn text(kind: FileKind) -> String {
    let schema = match kind {
        FileKind::Scenario => json_schema::scenario(),
        FileKind::Workload => json_schema::workload(),
        FileKind::Strategy => json_schema::strategy(),
        FileKind::Study => study::json_schema(),
        FileKind::Search => optimize::json_schema(),
    };
    json::text(&schema)
}
