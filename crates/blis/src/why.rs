//! `blis why`: why a request of a run was slow.

use crate::args::WhyArgs;
use crate::failure::Failure;
use crate::flags::{ScenarioFlags, settled};
use crate::output;
use crate::progress::Watch;
use crate::show::Pages;
use blis_lab::why::{Measure, Which, why as ask};
use blis_report::why::document;
use blis_scenario::Trial;
use std::path::{Path, PathBuf};

/// Runs what `args` describe and says why the requests that they mean were slow.
pub(crate) fn why(args: &WhyArgs) -> Result<(), Failure> {
    let (request, scenario) = meant(&args.what, &args.flags)?;
    let draft = args.flags.draft(scenario.as_deref(), args.policy_config.as_deref())?;
    let (plan, chosen) = args.flags.long_enough(settled(&draft)?, scenario.as_deref());
    output::notes(args.shown.quiet, plan.notes.iter().chain(&chosen));
    let pages = Pages::open(&args.shown)?;
    let which = match &request {
        Some(name) => Which::Named(name.clone()),
        None => Which::Slowest(args.number.into()),
    };
    let measure = Measure::from(args.slowest);
    let watch = || Watch::new(plan.expected_requests(), args.shown.quiet);
    let answers = ask(&plan, Trial::new(plan.seed), measure, &which, watch)?;
    if answers.is_empty() {
        let message = match request {
            Some(name) => format!(
                "no request `{name}` finished; `blis run --requests-out FILE` lists them all"
            ),
            None if measure == Measure::Itl => {
                "no request finished with two tokens, so none has a time between tokens".to_owned()
            }
            None => "no request finished, so none was slow".to_owned(),
        };
        return Err(Failure::Input(message));
    }
    pages.put(&document(&answers))
}

/// The request and the scenario file that the arguments name.
fn meant(
    what: &[String],
    flags: &ScenarioFlags,
) -> Result<(Option<String>, Option<PathBuf>), Failure> {
    let path = |text: &String| Some(PathBuf::from(text));
    let is_scenario =
        |text: &str| Path::new(text).extension().is_some_and(|end| end == "yaml" || end == "yml");
    match what {
        [] => Ok((None, None)),
        // A number is a request, and a name if flags say where requests come from, unless there is
        // such a file.
        [one]
            if (one.parse::<u64>().is_ok() || flags.has_workload() && !is_scenario(one))
                && !Path::new(one).exists() =>
        {
            Ok((Some(one.clone()), None))
        }
        [scenario] => Ok((None, path(scenario))),
        [scenario, request] if Path::new(scenario).exists() && !Path::new(request).exists() => {
            Err(Failure::Input(format!(
                "no scenario file `{request}`; the request comes first: `blis why {request} \
                 {scenario}`"
            )))
        }
        [request, scenario] => Ok((Some(request.clone()), path(scenario))),
        [_, _, more, ..] => {
            Err(Failure::Input(format!("found `{more}` behind a request and a scenario")))
        }
    }
}
