//! `blis policies`: every policy with its parameters, from the registry.

use crate::args::{Layout, PoliciesArgs};
use crate::failure::Failure;
use crate::output;
use crate::show;
use blis_policy::{kinds, reference_markdown};
use blis_report::lists::policies;

/// Lists what `args` ask for.
pub(crate) fn list(args: &PoliciesArgs) -> Result<(), Failure> {
    let mut chosen = kinds();
    if let Some(name) = &args.kind {
        let known: Vec<&str> = chosen.iter().map(|kind| kind.name).collect();
        if !known.contains(&name.as_str()) {
            let hint = blis_scenario::problem::hint(name, known.iter().copied());
            let known = blis_scenario::problem::quoted(&known);
            return Err(Failure::Input(format!("unknown kind `{name}`{hint}; known: {known}")));
        }
        chosen.retain(|kind| kind.name == name);
    }
    match (args.format, &args.kind) {
        (Layout::Markdown, None) => output::print(&reference_markdown()),
        (layout, _) => show::print(&policies(&chosen), layout),
    }
}
