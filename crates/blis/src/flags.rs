//! The flags that describe a scenario, for the parser and its help, and the scenario that a command
//! line describes. What the flags mean is said in `blis_scenario::scenario::flags`.

use crate::failure::Failure;
use crate::go;
use crate::interrupt::Interruptible;
use blis_scenario::scenario::flags::{FLAGS, Given};
use blis_scenario::{Draft, Plan, Saturations};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::path::Path;

/// The scenario flags that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScenarioFlags {
    given: Given,
}

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

    /// The same flags once for each strategy that is given, with its name; once if there is none.
    pub(crate) fn by_strategy(&self) -> Vec<(Option<String>, ScenarioFlags)> {
        let all = self.given.by_strategy().into_iter();
        all.map(|(strategy, given)| (strategy, ScenarioFlags { given })).collect()
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
        for (index, flag) in FLAGS.iter().enumerate() {
            for text in matches.get_many::<String>(flag.name).unwrap_or_default() {
                self.given.push(index, format!("--{}", flag.name), text.clone());
            }
        }
        Ok(())
    }
}
