//! Whatever happens to a trace on its way, reading it ends, with requests or with an error.

use super::trace_support::{all, fixture, open, read};
use blis_core::Time;
use blis_workload::{TraceEdit, TraceFormat, TraceOptions, TraceSource};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::io::{BufReader, Cursor, Read};

/// One thing that happens to a file.
#[derive(Clone, Debug)]
enum Damage {
    /// A byte becomes another.
    Flip(prop::sample::Index, u8),
    /// A bit of a byte is turned.
    Bit(prop::sample::Index, u8),
    /// The end is lost.
    Cut(prop::sample::Index),
    /// A part is lost.
    Lose(prop::sample::Index, usize),
    /// A part of the file, or of another, is put somewhere.
    Splice(prop::sample::Index, prop::sample::Index, usize, usize),
    /// A line is there twice.
    Repeat(prop::sample::Index),
    /// Something that often hurts is put somewhere.
    Insert(prop::sample::Index, usize),
}

const HURTS: [&str; 16] = [
    "\0",
    "\"",
    ",",
    "\n",
    "\r",
    "{",
    "[",
    "-",
    "e",
    ".",
    "\u{FEFF}",
    "NaN",
    "1e308",
    "99999999999999999999",
    "null",
    "18446744073709551615",
];

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        (index(), 0..8_u8).prop_map(|(at, bit)| Damage::Bit(at, bit)),
        index().prop_map(Damage::Cut),
        (index(), 1..40_usize).prop_map(|(at, length)| Damage::Lose(at, length)),
        (index(), index(), 1..80_usize, 0..TraceFormat::ALL.len())
            .prop_map(|(to, from, length, file)| Damage::Splice(to, from, length, file)),
        index().prop_map(Damage::Repeat),
        (index(), 0..HURTS.len()).prop_map(|(at, what)| Damage::Insert(at, what)),
    ]
}

fn apply(text: &mut Vec<u8>, damage: &Damage) {
    if text.is_empty() {
        return;
    }
    match damage {
        Damage::Flip(at, byte) => {
            let at = at.index(text.len());
            text[at] = *byte;
        }
        Damage::Bit(at, bit) => {
            let at = at.index(text.len());
            text[at] ^= 1 << bit;
        }
        Damage::Cut(at) => text.truncate(at.index(text.len())),
        Damage::Lose(at, length) => {
            let at = at.index(text.len());
            text.drain(at..(at + length).min(text.len()));
        }
        Damage::Splice(to, from, length, file) => {
            let other = fixture(TraceFormat::ALL[*file]).as_bytes();
            let from = from.index(other.len());
            let part = other[from..(from + length).min(other.len())].to_vec();
            let to = to.index(text.len());
            text.splice(to..to, part);
        }
        Damage::Repeat(line) => {
            let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let line = line.index(lines.len());
            *text = [&lines[..=line], &lines[line..]].concat().concat();
        }
        Damage::Insert(at, what) => {
            let at = at.index(text.len());
            text.splice(at..at, HURTS[*what].bytes());
        }
    }
}

/// Reads to the end; whether that went well. What is read is in order, and errors stay.
fn survives(text: Vec<u8>, format: Option<TraceFormat>) -> Result<bool, TestCaseError> {
    let limit = text.len();
    let mut source = match open(text, format, TraceEdit::default()) {
        Ok(source) => source,
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            return Ok(false);
        }
    };
    let mut last = Time::ZERO;
    for _ in 0..=limit {
        match source.read_request() {
            Ok(Some(request)) => {
                prop_assert!(request.arrival >= last && request.output_tokens > 0);
                prop_assert!(request.content.prompt_tokens() > 0);
                last = request.arrival;
            }
            Ok(None) => return Ok(true),
            Err(error) => {
                prop_assert_eq!(source.read_request(), Err(error.clone()));
                prop_assert!(error.line >= 1 && error.column >= 1, "{}", error);
                return Ok(false);
            }
        }
    }
    Err(TestCaseError::fail("there are more requests than bytes"))
}

#[test]
fn no_damage_makes_a_reader_panic_or_go_on_for_ever() {
    let config = || Config { cases: 2_000, failure_persistence: None, ..Config::default() };
    for format in TraceFormat::ALL {
        let (read, refused) = (Cell::new(0), Cell::new(0));
        let damages = (prop::collection::vec(damage(), 1..4), any::<bool>());
        TestRunner::new(config())
            .run(&damages, |(damages, told)| {
                let text = fixture(format);
                // Half of the native ones do not say how many lines there are.
                let text = if told { text.trim_start_matches("{\"rows\":4}\n") } else { text };
                let mut text = text.as_bytes().to_vec();
                for damage in &damages {
                    apply(&mut text, damage);
                }
                let count = if survives(text, told.then_some(format))? { &read } else { &refused };
                count.set(count.get() + 1);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{format:?}: {error}"));
        let (read, refused) = (read.get(), refused.get());
        assert_eq!(read + refused, 2_000);
        assert!(read > 5 && refused > 500, "{format:?}: {read} read, {refused} refused");
    }
}

/// JSON lines that are cut off anywhere but at their ends are refused, and so are CSV rows unless
/// they are cut inside their last value.
#[test]
fn a_trace_that_is_cut_off_is_refused_or_gives_whole_rows() {
    let mut refusals = 0;
    for format in TraceFormat::ALL {
        let text = fixture(format);
        let all_rows = read(text).unwrap().len();
        for cut in 0..text.len() {
            let part = &text[..cut];
            let on_boundary = part.ends_with('\n') || text[cut..].starts_with('\n');
            let count = |text: &str, byte| text.bytes().filter(|found| *found == byte).count();
            let row = part.rsplit('\n').next().unwrap_or_default();
            let in_last_value = count(row, b',') >= count(text.lines().next().unwrap(), b',')
                && count(row, b'"').is_multiple_of(2);
            let result = open(part, Some(format), TraceEdit::default())
                .and_then(|mut source| all(&mut source));
            match result {
                Ok(requests) => {
                    let json = matches!(format, TraceFormat::Native | TraceFormat::Mooncake);
                    assert!(on_boundary || (!json && in_last_value), "{format:?} cut at {cut}");
                    assert!(requests.len() <= all_rows);
                    let whole = requests.len() == all_rows;
                    assert!(whole || format != TraceFormat::Native, "its header counts them");
                }
                Err(_) => refusals += 1,
            }
        }
    }
    assert!(refusals > 1_500, "{refusals} cuts were refused");
}

/// Lines without end.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(b'a');
        if let Some(last) = buffer.last_mut() {
            *last = b'\n';
        }
        Ok(buffer.len())
    }
}

#[test]
fn a_quote_that_is_never_closed_does_not_fill_the_memory() {
    let header = "TIMESTAMP,ContextTokens,GeneratedTokens\n\"";
    let endless = Cursor::new(header).chain(BufReader::new(Endless));
    let mut source =
        TraceSource::from_reader(Box::new(endless), "t", &TraceOptions::default()).unwrap();
    assert_eq!(
        source.read_request().expect_err("has no end").to_string(),
        "t:2:1: the row is longer than 67108864 bytes: a value in quotes does not end, or a quote \
         is missing"
    );
}

proptest! {
    #[test]
    fn no_bytes_make_any_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        format in prop::option::of(0..TraceFormat::ALL.len()),
    ) {
        survives(bytes, format.map(|format| TraceFormat::ALL[format]))?;
    }
}
