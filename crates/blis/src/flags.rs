//! The flags that describe a scenario, for the parser and its help, and the scenario that a command
//! line describes. What the flags mean is said in `blis_scenario::scenario::flags`.

use crate::failure::Failure;
use crate::go;
use crate::interrupt::Interruptible;
use blis_core::math::count;
use blis_report::text::grouped;
use blis_scenario::scenario::Workload;
use blis_scenario::scenario::flags::{FLAGS, Given};
use blis_scenario::{Draft, Plan, Saturations};
use blis_workload::{Mix, Rate};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::path::Path;

/// The scenario flags that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScenarioFlags {
    given: Given,
    /// Whether they say how many requests there are, or where they come from.
    sized: bool,
}

/// A run whose length nobody gives has arrivals for so many seconds, several times what a request
/// takes, and so many requests for each instance, but not more than fit a few seconds of computing.
const STEADY_SECONDS: f64 = 120.0;
const STEADY_REQUESTS: u64 = 500;
const STEADY_TURNS: u64 = 20;
const MOST_REQUESTS: u64 = 200_000;

impl ScenarioFlags {
    /// The scenario in a file, with the policies of a bundle and these flags set into it.
    pub(crate) fn draft(
        &self,
        scenario: Option<&Path>,
        bundle: Option<&Path>,
    ) -> Result<Draft, Failure> {
        self.given.check()?;
        let mut draft = scenario.map(Draft::read).transpose()?.unwrap_or_default();
        if let Some(path) = bundle {
            let mut chosen = Given::default();
            for (flag, value) in go::bundle(path)? {
                chosen.push_named(&flag.replace('-', "_"), value)?;
            }
            chosen.apply(&mut draft)?;
        }
        self.given.apply(&mut draft)?;
        Ok(draft)
    }

    /// The plan of a run that these flags describe, with as many requests as a steady state needs
    /// if neither they nor a scenario file say how many, and what to tell the user then.
    pub(crate) fn long_enough(
        &self,
        plan: Plan,
        scenario: Option<&Path>,
    ) -> (Plan, Option<String>) {
        let Workload::Mix(Mix { rate, .. }) = &plan.workload else { return (plan, None) };
        let (arrivals, of) = match rate {
            Rate::Steady(rate) => {
                (count((rate * STEADY_SECONDS).ceil()), "two minutes of arrivals")
            }
            Rate::Users(users) => (STEADY_TURNS * u64::from(users.count), "20 for each user"),
            Rate::Shaped(_) => return (plan, None),
        };
        let least = u64::from(plan.instances) * STEADY_REQUESTS;
        let enough = arrivals.max(least).min(MOST_REQUESTS);
        let is_short = plan.steady_requests().is_some_and(|written| written < enough);
        if !is_short || self.sized || scenario.is_some() {
            return (plan, None);
        }
        let note = format!(
            "--num-requests is not given; {} were sent, for a steady state: {of} and at least \
             {STEADY_REQUESTS} for each instance",
            grouped(enough)
        );
        (plan.with_requests(enough), Some(note))
    }

    /// Whether they say where requests come from.
    pub(crate) fn has_workload(&self) -> bool {
        self.given.has_workload()
    }

    /// The same flags once for each strategy that is given, with its name; once if there is none.
    pub(crate) fn by_strategy(&self) -> Vec<(Option<String>, ScenarioFlags)> {
        let all = self.given.by_strategy().into_iter();
        all.map(|(strategy, given)| (strategy, ScenarioFlags { given, sized: self.sized }))
            .collect()
    }
}

/// The plan of `draft`; a rate that is a share of saturation is measured, until Ctrl-C.
pub(crate) fn settled(draft: &Draft) -> Result<Plan, Failure> {
    let checked = draft.resolve()?;
    Ok(checked.settle(&Saturations::default(), &mut Interruptible)?)
}

impl Args for ScenarioFlags {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, flag| {
            let arg = Arg::new(flag.name)
                .long(flag.name)
                .value_name(flag.value)
                .help(flag.help)
                .help_heading(flag.heading)
                .action(if flag.is_repeated() { ArgAction::Append } else { ArgAction::Set })
                .allow_hyphen_values(true);
            let alias = (flag.name == "block-size-in-tokens").then_some("block-size");
            command.arg(arg.alias(alias))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        ScenarioFlags::augment_args(command)
    }
}

impl FromArgMatches for ScenarioFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ScenarioFlags, clap::Error> {
        let mut flags = ScenarioFlags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.given = Given::default();
        let sizes = ["num-requests", "workload-spec", "horizon"];
        self.sized = sizes.iter().any(|name| matches.contains_id(name));
        for (index, flag) in FLAGS.iter().enumerate() {
            for text in matches.get_many::<String>(flag.name).unwrap_or_default() {
                self.given.push(index, format!("--{}", flag.name), text.clone());
            }
        }
        Ok(())
    }
}
