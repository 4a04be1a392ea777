//! The clients of a workload: those written one by one, and the members of its cohorts.
//!
//! The one function for specification files and for the `mix` of a scenario. A cohort of n stands
//! for n clients alike, each with an n-th of its share; `{member}` in the name of its tenant or of
//! its prefix group is each member's number, from 0 on.

use crate::problems::{Findings, Problems, Together};
use crate::workload_spec::client::{ClientContext, ClientSpec, Reader};
use crate::workload_spec::notes::{Note, Notes};
use crate::yaml::{Node, Whole};
use blis_core::math::float;
use blis_workload::Client;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A prefix group's length when no client gives one, as the Go program has it.
const DEFAULT_PREFIX_LENGTH: u32 = 50;

/// Most clients of a workload; `Mix::validate` refuses more, but they should not be made first.
pub(super) const MOST_CLIENTS: usize = 1 << 20;

/// What a member's number replaces in the names of a cohort.
const MEMBER: &str = "{member}";

/// A cohort as written: a client, and how many of it there are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CohortSpec(ClientSpec);

/// The clients and cohorts of a workload as written, and where.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The tree that they were decoded from.
    pub tree: &'a Node,
    /// The path in it that `clients` and `cohorts` stand under, e.g. `workload.mix`; may be empty.
    pub base: &'a str,
    /// `clients:`.
    pub clients: &'a [ClientSpec],
    /// `cohorts:`.
    pub cohorts: &'a [CohortSpec],
}

/// The clients of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Clients {
    /// The clients, each of them legal: those written one by one, then the cohorts' members.
    pub clients: Vec<Client>,
    /// What was asked for without an effect, in sentences with their places.
    pub notes: Vec<String>,
}

/// Reads the clients and cohorts of `section`.
///
/// # Errors
/// If there are none, or one is illegal.
pub fn read_clients(
    section: &Section<'_>,
    context: &ClientContext<'_>,
) -> Result<Clients, Problems> {
    let mut notes = Notes::new(section.tree);
    let clients = add_clients(Vec::new(), section, context, &mut notes)?;
    Ok(Clients { clients, notes: notes.into_texts() })
}

/// `known` and the clients of `section`.
pub(super) fn add_clients(
    known: Vec<Client>,
    section: &Section<'_>,
    context: &ClientContext<'_>,
    notes: &mut Notes<'_>,
) -> Result<Vec<Client>, Problems> {
    let Section { tree, base, clients, cohorts } = *section;
    let dot = if base.is_empty() { "" } else { "." };
    let reader = |field: &str, index: usize| {
        let path = format!("{base}{dot}{field}[{index}]");
        Reader { tree, path, context }
    };
    let (mut crowd, mut found) =
        (Crowd { clients: known, lengths: BTreeMap::new() }, Findings::default());
    for (index, spec) in clients.iter().enumerate() {
        let reader = reader("clients", index);
        if spec.population.is_some() {
            let message = "only a cohort has it; write the client under `cohorts`";
            found.keep::<()>(Err(reader.problem("population", message)));
        }
        if let Some(client) = found.keep(reader.client(spec, notes)) {
            crowd.add(client, spec, &reader, notes);
        }
    }
    for (index, CohortSpec(spec)) in cohorts.iter().enumerate() {
        let reader = reader("cohorts", index);
        let both = (members(spec, &reader, crowd.clients.len()), reader.client(spec, notes));
        let Some((members, cohort)) = found.keep(both.together()) else { continue };
        let share = cohort.share / float(u64::from(members));
        for number in 0..members {
            let named = |text: &str| text.replace(MEMBER, &number.to_string());
            let member = Client {
                name: format!("{}-{number}", cohort.name),
                tenant: named(&cohort.tenant),
                prefix_group: cohort.prefix_group.as_deref().map(named),
                share,
                ..cohort.clone()
            };
            crowd.add(member, spec, &reader, notes);
        }
    }
    let [path, other] = ["clients", "cohorts"].map(|field| format!("{base}{dot}{field}"));
    let clients = found.done(crowd.clients)?;
    tree.whole(&[&other])?;
    if clients.is_empty() {
        return Err(tree.problem(path, "there are no clients; add at least one"));
    }
    Ok(clients)
}

/// How many members a cohort has.
fn members(spec: &ClientSpec, reader: &Reader<'_>, clients: usize) -> Result<u32, Problems> {
    let members = spec.population.map(Whole::get_u32).ok_or_else(|| {
        let message = "missing; write the number of clients in the cohort, e.g. `100`";
        reader.problem("population", message)
    })?;
    let left = MOST_CLIENTS.saturating_sub(clients);
    if usize::try_from(members).is_ok_and(|members| members <= left) {
        return Ok(members);
    }
    let legal = format!("at most {left}: a workload has at most {MOST_CLIENTS} clients");
    Err(reader.problem("population", format!("found `{members}`; legal: {legal}")))
}

/// Clients as they gather.
struct Crowd {
    clients: Vec<Client>,
    /// Of each prefix group, the length that its first client gave.
    lengths: BTreeMap<String, u32>,
}

impl Crowd {
    /// Adds a client, and settles the length of its prefix: one that gives none has that of the
    /// first client of its group.
    fn add(
        &mut self,
        mut client: Client,
        spec: &ClientSpec,
        reader: &Reader<'_>,
        notes: &mut Notes<'_>,
    ) {
        let given = spec.prefix_length.map(Whole::get_u32).filter(|&length| length > 0);
        if let Some(group) = &client.prefix_group {
            let first = match (self.lengths.get(group), given) {
                (Some(&first), _) => first,
                (None, Some(given)) => given,
                (None, None) => {
                    notes.add(Note::DefaultPrefix, &reader.at("prefix_group"));
                    DEFAULT_PREFIX_LENGTH
                }
            };
            self.lengths.entry(group.clone()).or_insert(first);
            client.prefix_tokens = given.unwrap_or(first);
        }
        self.clients.push(client);
    }
}
