//! `blis trace`: inspects, converts and generates traces.

mod convert;
mod generate;
mod input;
mod inspect;

use crate::args::{TraceArgs, TraceCommand};
use crate::failure::Failure;

/// Does what `args` ask for.
pub(crate) fn trace(args: &TraceArgs) -> Result<(), Failure> {
    match &args.command {
        TraceCommand::Inspect(args) => inspect::inspect(args),
        TraceCommand::Convert(args) => convert::convert(args),
        TraceCommand::Generate(args) => generate::generate(args),
    }
}
