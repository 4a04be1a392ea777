//! `blis strategies`: the strategies that ship, and the text of one.

use crate::args::{Layout, StrategiesArgs};
use crate::failure::Failure;
use crate::output;
use crate::show;
use blis_report::lists;
use blis_scenario::json;
use blis_scenario::strategy::{self, Shipped, Strategy};

/// Lists them, or prints the one that `args` name.
pub(crate) fn list(args: &StrategiesArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        let all: Vec<Strategy> =
            strategy::ALL.iter().map(Shipped::read).collect::<Result<_, _>>()?;
        return show::print(&lists::strategies(&all), args.format);
    };
    // The error is that of a scenario that names it.
    Strategy::find(name)?;
    let shipped = strategy::ALL.iter().find(|shipped| shipped.name == name);
    let shipped = shipped.ok_or_else(|| Failure::Input(format!("`{name}` is your own file")))?;
    match args.format {
        Layout::Json => output::print(&json::text(&lists::strategy(&shipped.read()?))),
        _ => output::print(shipped.text),
    }
}
