//! `blis trace convert`: any trace, or a part of it, in the native format.

use crate::args::ConvertArgs;
use crate::failure::Failure;
use crate::record::Sink;
use crate::record::trace::TraceFile;
use crate::target::Target;
use crate::trace::input;
use crate::{interrupt, output};
use blis_report::text::grouped;
use blis_workload::TraceSource;

/// Converts what `args` say.
pub(super) fn convert(args: &ConvertArgs) -> Result<(), Failure> {
    let mut source = input::open(&args.input)?;
    let target = Target::out(&args.out)?;
    let mut file = TraceFile::create(&target)?;
    while let Some(entry) = source.read_entry()? {
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        file.write(&entry.request, entry.after.as_ref(), &source)?;
    }
    let written = file.rows();
    file.finish()?;
    if !args.quiet {
        output::note(&summary(&source, written));
    }
    Ok(())
}

/// What became of the rows, e.g. "azure trace: 9 rows read, 5 written, 3 left out, 1 skipped (1
/// failed)".
fn summary(source: &TraceSource, written: u64) -> String {
    let (read, skipped) = (source.rows_read(), source.skipped());
    let left_out = read.saturating_sub(written + skipped.total());
    let mut items = vec![
        format!("{} trace: {} rows read", source.format().name(), grouped(read)),
        format!("{} written", grouped(written)),
    ];
    if left_out > 0 {
        items.push(format!("{} left out", grouped(left_out)));
    }
    if skipped.total() > 0 {
        items.push(format!("{} skipped ({skipped})", grouped(skipped.total())));
    }
    items.join(", ")
}
