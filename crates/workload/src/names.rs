//! Names as numbers: tenants and prefix groups are numbered in the order they are first seen,
//! sessions and token streams by what they are called, so that a trace that a run has written
//! reads back as the same numbers; request ids are only remembered well enough to notice a
//! repetition.
//!
//! Used by the client mix and by the trace readers. Nothing here may be iterated in hash order.

use blis_core::random::mix;
use blis_core::{SessionId, StreamId};
use hashbrown::HashTable;

/// Names numbered from 0 in the order they are first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    names: Vec<Box<str>>,
    numbers: HashTable<u32>,
}

impl Names {
    /// The number of `name`, which is given the next one if it is new.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        let hash = hash(name);
        if let Some(number) = self.numbers.find(hash, |n| *self.names[*n as usize] == *name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).expect("there are fewer than 2^32 names");
        self.names.push(name.into());
        let names = &self.names;
        self.numbers.insert_unique(hash, number, |n| self::hash(&names[*n as usize]));
        number
    }

    /// The name with this number, which must have been given.
    pub(crate) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }
}

/// The ids a trace has used. Ids that count up cost nothing; any other costs a 64-bit hash, 9 to 18
/// bytes, so that a fresh id among 10 million is wrongly taken for a repetition with a probability
/// of 3 in a million.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenIds {
    /// The first and last of the numbers that were seen one after the other.
    counted: Option<(u64, u64)>,
    others: HashTable<u64>,
}

impl SeenIds {
    /// Remembers `id`; false if it was there already.
    pub(crate) fn insert(&mut self, id: &str) -> bool {
        match plain_number(id) {
            Some(number) => self.insert_number(number),
            None => self.insert_hash(hash(id)),
        }
    }

    /// Remembers the id that is written as `number`; false if it was there already.
    pub(crate) fn insert_number(&mut self, number: u64) -> bool {
        match self.counted {
            Some((first, last)) if (first..=last).contains(&number) => false,
            Some((first, last)) if last.checked_add(1) == Some(number) => {
                self.counted = Some((first, number));
                // It may have come out of turn before, when it was stored like any other.
                self.others.is_empty() || !self.has_hash(number_hash(number))
            }
            Some(_) => self.insert_hash(number_hash(number)),
            None => {
                self.counted = Some((number, number));
                true
            }
        }
    }

    fn has_hash(&self, hash: u64) -> bool {
        self.others.find(hash, |known| *known == hash).is_some()
    }

    fn insert_hash(&mut self, hash: u64) -> bool {
        let fresh = !self.has_hash(hash);
        if fresh {
            self.others.insert_unique(hash, hash, |known| *known);
        }
        fresh
    }
}

/// The bits of a stream or session number that belong to one client of a mix.
pub(crate) const CLIENT_BITS: u32 = 40;

/// Streams from here on belong to single requests or sessions; sessions from here on have a name
/// that does not give their number.
pub(crate) const PRIVATE: u64 = 1 << 63;

/// Streams from here on belong to requests of a trace that names none.
const OWN: u64 = PRIVATE | PRIVATE >> 1;

/// The stream of that name: a plain number below [`OWN`] is the stream's id itself, so that what a
/// mix has sent reads back as the very same streams; any other name is hashed to 63 bits, so that
/// no table grows with the trace. Among 10 million names, two share a stream with a probability of
/// 5 in a million.
pub(crate) fn stream(name: &str) -> StreamId {
    let number = plain_number(name).filter(|&number| number < OWN);
    StreamId(number.unwrap_or_else(|| hash(name) >> 1))
}

/// The stream of the request with this number when its trace names none. The two top bits keep it
/// from all streams that have a name.
pub(crate) fn own_stream(request: u64) -> StreamId {
    StreamId(OWN | request)
}

/// The session of that name: what [`session_name`] gives reads back as the same session; any other
/// name is hashed.
pub(crate) fn session(name: &str) -> SessionId {
    let number = name.split_once('-').and_then(|(client, within)| {
        let (client, within) = (plain_number(client)?, plain_number(within)?);
        let fits = client < PRIVATE >> CLIENT_BITS && within < 1 << CLIENT_BITS;
        fits.then_some(client << CLIENT_BITS | within)
    });
    SessionId(number.unwrap_or_else(|| PRIVATE | hash(name) >> 1))
}

/// The name of a session of a mix: the client's number and that of the session within it.
pub(crate) fn session_name(session: SessionId) -> String {
    let within = session.0 & ((1 << CLIENT_BITS) - 1);
    format!("{}-{within}", session.0 >> CLIENT_BITS)
}

/// The stream that `family` of a format (a prefix group, a session) has under `key`. It is none of
/// the private ones.
pub(crate) fn family_stream(family: u64, key: u64) -> StreamId {
    StreamId(mix(mix(family, key), family) >> 1)
}

/// A key for random draws and hash tables by name.
pub(crate) fn name_key(name: &str) -> u64 {
    hash(name)
}

/// A key for random draws by number, different from that of any name.
pub(crate) fn number_key(number: u64) -> u64 {
    number_hash(number)
}

/// `text` as a number, if it is how that number is normally written: "17", but not "017" or "+17".
pub(crate) fn plain_number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn number_hash(number: u64) -> u64 {
    mix(0x6E75_6D62_6572, number)
}

fn hash(text: &str) -> u64 {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let start = mix(0x6E61_6D65, text.len() as u64);
    let state = words.iter().fold(start, |state, word| mix(state, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // Mixed once more, because the hash tables use the top bits and `mix` spreads a value in one
    // step only.
    mix(mix(state, u64::from_le_bytes(last)), start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_numbered_in_the_order_of_their_first_use() {
        let mut names = Names::default();
        let numbers: Vec<u32> = ["b", "a", "b", "", "a"].map(|name| names.number(name)).to_vec();
        assert_eq!(numbers, [0, 1, 0, 2, 1]);
        assert_eq!(names.name(1), "a");
    }

    #[test]
    fn a_repeated_id_is_noticed_whatever_the_order() {
        let mut seen = SeenIds::default();
        for id in ["5", "6", "9", "r1", "r2", "4", "05"] {
            assert!(seen.insert(id), "{id} is new");
        }
        for id in ["5", "6", "9", "r1", "r2", "4", "05"] {
            assert!(!seen.insert(id), "{id} is a repetition");
        }
        assert!(seen.insert("7") && seen.insert("8"));
        assert!(!seen.insert("9"), "9 came out of turn before");
        assert!(seen.insert("10") && !seen.insert("8"));
    }

    #[test]
    fn ids_that_count_up_are_not_stored() {
        let mut seen = SeenIds::default();
        assert!((3..10_000).all(|number| seen.insert(&number.to_string())));
        assert_eq!(seen.others.len(), 0);
    }

    #[test]
    fn streams_of_families_differ_and_are_never_private() {
        let streams = (0..50_000).flat_map(|key| [1, 2].map(|family| family_stream(family, key)));
        let streams: BTreeSet<StreamId> = streams.collect();
        assert_eq!(streams.len(), 100_000);
        assert!(streams.iter().all(|stream| stream.0 < PRIVATE));
    }

    #[test]
    fn plain_numbers_are_their_own_stream_and_other_names_differ() {
        assert_eq!(stream("17"), StreamId(17));
        assert_eq!(stream(&(OWN - 1).to_string()), StreamId(OWN - 1));
        let words = (0..100_000).map(|i| format!("r{i}"));
        let odd = ["017", "+17", "", "18446744073709551616", "a\0", "a", "a\0\0"].map(String::from);
        let own = [OWN, OWN + 1, u64::MAX].map(|number| number.to_string());
        let names = words.chain(odd).chain(own);
        let streams: BTreeSet<StreamId> = names.map(|name| stream(&name)).collect();
        assert_eq!(streams.len(), 100_010);
        assert!(streams.iter().all(|stream| stream.0 < PRIVATE), "no word is a private stream");
    }

    #[test]
    fn a_session_of_a_mix_is_the_same_by_its_name_and_no_other_name_gives_one_of_a_mix() {
        for number in [0, 7, 1 << CLIENT_BITS, (3 << CLIENT_BITS) | 5, PRIVATE - 1] {
            assert_eq!(session(&session_name(SessionId(number))), SessionId(number));
        }
        let odd = ["", "5", "a-1", "1-a", "01-1", "1-1-1", "8388608-0", "0-1099511627776"];
        let sessions: BTreeSet<SessionId> = odd.into_iter().map(session).collect();
        assert_eq!(sessions.len(), odd.len());
        assert!(sessions.iter().all(|session| session.0 >= PRIVATE));
    }
}
