//! The first CSV traces of BLIS: `arrival_time` (seconds) and the token ids of prompt and output.
//!
//! Token ids are real contents, so equal prompts share. They are not kept: every [`BLOCK`] tokens
//! become a stream that is a hash of all tokens up to there, so that two prompts share exactly the
//! blocks of 16 up to the first difference, as an engine with blocks of 16 or a multiple of that
//! does (with smaller blocks up to 15 tokens fewer). What was generated is never taken for what is
//! prompted later. `model` is not read. Times are those of the file, and never go back.

use super::TraceError;
use super::row::{Clock, Roster, Row, Unit};
use super::table::{Columns, Format, Table, decimal};
use crate::names::{SeenIds, plain_number};
use blis_core::random::mix;
use blis_core::{Content, Segment, StreamId};
use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};
use std::fmt;

/// What a file has.
pub(super) static COLUMNS: Columns = Columns {
    format: "legacy-csv",
    required: "arrival_time,prefill_tokens,decode_tokens",
    optional: "request_id,model",
};

const ARRIVAL_TIME: usize = 0;
const PREFILL_TOKENS: usize = 1;
const DECODE_TOKENS: usize = 2;
const REQUEST_ID: usize = 3;

/// Tokens that are compared as a whole.
const BLOCK: u32 = 16;

/// What the hash of a prompt starts from.
const START: u64 = 0x6C65_6761_6379;

const SECONDS: &str = "a number of seconds, 0 or more";
const IDS: &str = "a list of token ids such as [1,2,3], each from 0 to 4294967295";

/// Reads rows with token ids.
pub(super) struct Legacy {
    clock: Clock,
    ids: SeenIds,
}

impl Legacy {
    pub(super) fn new() -> Legacy {
        Legacy { clock: Clock::from_zero(Unit::Seconds), ids: SeenIds::default() }
    }

    /// Takes the id of the row, if the file has ids.
    fn set_id(&mut self, table: &Table, row: &mut Row) -> Result<(), TraceError> {
        let Some(id) = table.text(REQUEST_ID)? else { return Ok(()) };
        if !self.ids.insert(id) {
            return Err(table.wrong(REQUEST_ID, "an id that no row above has"));
        }
        match plain_number(id) {
            Some(number) => row.number = Some(number),
            None => row.request.name = Some(id.into()),
        }
        Ok(())
    }
}

impl Format for Legacy {
    const COLUMNS: &'static Columns = &COLUMNS;

    fn row(&mut self, table: &Table, roster: &mut Roster) -> Result<Row, TraceError> {
        let mut row = table.request(roster.tenant(None));
        self.set_id(table, &mut row)?;
        let nanos = table.value(ARRIVAL_TIME, SECONDS, |text| decimal(text, 9))?;
        row.request.arrival = table.arrival(ARRIVAL_TIME, &mut self.clock, nanos)?;
        let prompt = table.value(PREFILL_TOKENS, IDS, token_list)?;
        let output = table.value(DECODE_TOKENS, IDS, token_list)?.tokens;
        table.check_sum(PREFILL_TOKENS, prompt.tokens.into(), output)?;
        let own = row.request.content.output_stream();
        row.request.content = Content::new(prompt.finish(), own);
        row.request.output_tokens = output;
        Ok(row)
    }
}

/// A list of token ids, as blocks that are known by what they and all before them contain.
struct Prompt {
    hash: u64,
    tokens: u32,
    blocks: Vec<Segment>,
}

impl Prompt {
    fn push(&mut self, token: u32) {
        self.hash = mix(self.hash, token.into());
        self.tokens += 1;
        if self.tokens.is_multiple_of(BLOCK) {
            self.close(BLOCK);
        }
    }

    fn finish(mut self) -> Vec<Segment> {
        let rest = self.tokens % BLOCK;
        if rest > 0 {
            self.close(rest);
        }
        self.blocks
    }

    /// The last `tokens` tokens are a block. Mixed once more, because `mix` spreads a value in one
    /// step only; halved, because the upper half of the ids are the requests' own streams.
    fn close(&mut self, tokens: u32) {
        let stream = StreamId(mix(mix(self.hash, tokens.into()), START) >> 1);
        self.blocks.push(Segment { stream, tokens });
    }
}

fn token_list(text: &str) -> Option<Prompt> {
    let mut json = serde_json::Deserializer::from_str(text);
    let prompt = json.deserialize_seq(TokenList).ok()?;
    json.end().ok().map(|()| prompt)
}

struct TokenList;

impl<'de> Visitor<'de> for TokenList {
    type Value = Prompt;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(IDS)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Prompt, A::Error> {
        let mut prompt = Prompt { hash: START, tokens: 0, blocks: Vec::new() };
        while let Some(token) = list.next_element()? {
            prompt.push(token);
        }
        Ok(prompt)
    }
}
