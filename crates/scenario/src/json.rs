//! JSON objects: written field by field, and read back by the same description.
//!
//! Reports write objects through [`Fields`]. What is also read back (rows of finished trials) is
//! described once, as a function over a `Shape` that goes through all fields: the names are the
//! same both ways. Numbers are finite or absent, never NaN, never a made-up zero.

use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// Fields of a JSON object in the order they are added.
#[derive(Clone, Debug, Default)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Adds a count.
    pub fn count(&mut self, name: &str, value: u64) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Adds a number, if there is one.
    pub fn number(&mut self, name: &str, value: Option<f64>) {
        if let Some(number) = value.and_then(Number::from_f64) {
            self.0.insert(name.to_owned(), Value::Number(number));
        }
    }

    /// Adds text.
    pub fn text(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), Value::String(value.into()));
    }

    /// Adds anything.
    pub fn value(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The object.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A value as indented text with a final newline.
///
/// # Panics
/// Never: plain values can be written as JSON.
pub fn text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value);
    let mut text = text.expect("plain values can be written as JSON");
    text.push('\n');
    text
}

/// Goes through the fields of an object, in one of two ways: writes each value under its name, or
/// replaces it by what stands under its name. A field that is not there leaves the value as it is,
/// and fields that nobody asks for are not looked at.
pub(crate) trait Shape: Sized {
    /// A count.
    fn count_at(&mut self, name: &str, value: &mut u64);
    /// A number that may be absent.
    fn number_at(&mut self, name: &str, value: &mut Option<f64>);
    /// Text.
    fn text_at(&mut self, name: &str, value: &mut String);
    /// Plain values: counts, numbers or texts.
    fn plain_at<T: Plain>(&mut self, name: &str, values: &mut Vec<T>);
    /// An object within the object.
    fn group_at(&mut self, name: &str, pass: impl FnOnce(&mut Self));
    /// A list of objects.
    fn list_at<T: Default>(
        &mut self,
        name: &str,
        items: &mut Vec<T>,
        pass: impl Fn(&mut Self, &mut T),
    );
    /// Objects by name.
    fn named_at<T: Default>(
        &mut self,
        name: &str,
        items: &mut Vec<(String, T)>,
        pass: impl Fn(&mut Self, &mut T),
    );
    /// Counts by name.
    fn counts_at(&mut self, name: &str, counts: &mut BTreeMap<String, u64>);
    /// Whether a field is to be gone through: when writing if it is `wanted`, when reading if it is
    /// there.
    fn has(&self, name: &str, wanted: bool) -> bool;
}

/// A value of a list.
pub(crate) trait Plain: Clone + Into<Value> {
    /// What is legal, in words.
    const LEGAL: &'static str;
    /// The value, if it is one.
    fn from_value(value: &Value) -> Option<Self>;
}

impl Plain for u64 {
    const LEGAL: &'static str = "a whole number";
    fn from_value(value: &Value) -> Option<u64> {
        value.as_u64()
    }
}

impl Plain for f64 {
    const LEGAL: &'static str = "a number";
    fn from_value(value: &Value) -> Option<f64> {
        value.as_f64()
    }
}

impl Plain for String {
    const LEGAL: &'static str = "text";
    fn from_value(value: &Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }
}

impl Shape for Fields {
    fn count_at(&mut self, name: &str, value: &mut u64) {
        self.count(name, *value);
    }

    fn number_at(&mut self, name: &str, value: &mut Option<f64>) {
        self.number(name, *value);
    }

    fn text_at(&mut self, name: &str, value: &mut String) {
        self.text(name, value.clone());
    }

    fn plain_at<T: Plain>(&mut self, name: &str, values: &mut Vec<T>) {
        self.value(name, values.clone());
    }

    fn group_at(&mut self, name: &str, pass: impl FnOnce(&mut Fields)) {
        let mut fields = Fields::default();
        pass(&mut fields);
        self.value(name, fields.into_value());
    }

    fn list_at<T: Default>(
        &mut self,
        name: &str,
        items: &mut Vec<T>,
        pass: impl Fn(&mut Fields, &mut T),
    ) {
        let object = |item: &mut T| {
            let mut fields = Fields::default();
            pass(&mut fields, item);
            fields.into_value()
        };
        self.value(name, items.iter_mut().map(object).collect::<Vec<Value>>());
    }

    fn named_at<T: Default>(
        &mut self,
        name: &str,
        items: &mut Vec<(String, T)>,
        pass: impl Fn(&mut Fields, &mut T),
    ) {
        self.group_at(name, |fields| {
            for (name, item) in items {
                fields.group_at(name, |fields| pass(fields, item));
            }
        });
    }

    fn counts_at(&mut self, name: &str, counts: &mut BTreeMap<String, u64>) {
        self.group_at(name, |fields| {
            for (name, count) in counts {
                fields.count_at(name, count);
            }
        });
    }

    fn has(&self, _: &str, wanted: bool) -> bool {
        wanted
    }
}

/// Reads an object. What is wrong first is kept; nothing after it is believed.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    fields: &'a Map<String, Value>,
    wrong: Option<String>,
}

impl<'a> Reader<'a> {
    /// Reads `fields` through `pass`.
    pub(crate) fn read(
        fields: &'a Map<String, Value>,
        pass: impl FnOnce(&mut Reader<'a>),
    ) -> Result<(), String> {
        let mut reader = Reader { fields, wrong: None };
        pass(&mut reader);
        reader.wrong.map_or(Ok(()), Err)
    }

    fn plain<T: Plain>(&mut self, name: &str, value: &Value) -> Option<T> {
        let read = T::from_value(value);
        if read.is_none() {
            self.refuse(name, value, T::LEGAL);
        }
        read
    }

    fn refuse(&mut self, name: &str, value: &Value, legal: &str) {
        self.wrong.get_or_insert_with(|| format!("`{name}`: found `{value}`; legal: {legal}"));
    }

    fn within(&mut self, name: &str, value: &'a Value, pass: impl FnOnce(&mut Reader<'a>)) {
        let Value::Object(fields) = value else {
            return self.refuse(name, value, "an object");
        };
        if let Err(wrong) = Reader::read(fields, pass) {
            self.wrong.get_or_insert(format!("in `{name}`, {wrong}"));
        }
    }
}

impl Shape for Reader<'_> {
    fn count_at(&mut self, name: &str, value: &mut u64) {
        if let Some(found) = self.fields.get(name) {
            *value = self.plain(name, found).unwrap_or_default();
        }
    }

    fn number_at(&mut self, name: &str, value: &mut Option<f64>) {
        if let Some(found) = self.fields.get(name) {
            *value = self.plain(name, found);
        }
    }

    fn text_at(&mut self, name: &str, value: &mut String) {
        if let Some(found) = self.fields.get(name) {
            *value = self.plain(name, found).unwrap_or_default();
        }
    }

    fn plain_at<T: Plain>(&mut self, name: &str, values: &mut Vec<T>) {
        match self.fields.get(name) {
            None => {}
            Some(Value::Array(found)) => {
                *values = found.iter().filter_map(|value| self.plain(name, value)).collect();
            }
            Some(other) => self.refuse(name, other, "a list"),
        }
    }

    fn group_at(&mut self, name: &str, pass: impl FnOnce(&mut Self)) {
        if let Some(found) = self.fields.get(name) {
            self.within(name, found, pass);
        }
    }

    fn list_at<T: Default>(
        &mut self,
        name: &str,
        items: &mut Vec<T>,
        pass: impl Fn(&mut Self, &mut T),
    ) {
        match self.fields.get(name) {
            None => {}
            Some(Value::Array(found)) => {
                items.clear();
                for value in found {
                    let mut item = T::default();
                    self.within(name, value, |reader| pass(reader, &mut item));
                    items.push(item);
                }
            }
            Some(other) => self.refuse(name, other, "a list"),
        }
    }

    fn named_at<T: Default>(
        &mut self,
        name: &str,
        items: &mut Vec<(String, T)>,
        pass: impl Fn(&mut Self, &mut T),
    ) {
        match self.fields.get(name) {
            None => {}
            Some(Value::Object(found)) => {
                items.clear();
                for (name, value) in found {
                    let mut item = T::default();
                    self.within(name, value, |reader| pass(reader, &mut item));
                    items.push((name.clone(), item));
                }
            }
            Some(other) => self.refuse(name, other, "an object"),
        }
    }

    fn counts_at(&mut self, name: &str, counts: &mut BTreeMap<String, u64>) {
        match self.fields.get(name) {
            None => {}
            Some(Value::Object(found)) => {
                counts.clear();
                for (name, value) in found {
                    match value.as_u64() {
                        Some(count) => drop(counts.insert(name.clone(), count)),
                        None => self.refuse(name, value, "a whole number"),
                    }
                }
            }
            Some(other) => self.refuse(name, other, "an object"),
        }
    }

    fn has(&self, name: &str, _: bool) -> bool {
        self.fields.contains_key(name)
    }
}

/// A number, text or truth value that two objects do not share.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where it stands, e.g. `classes.critical.ttft_p99_ms`.
    pub path: String,
    /// What the first has there.
    pub first: Option<Value>,
    /// What the second has there.
    pub second: Option<Value>,
}

/// Where `first` and `second` differ, in the order of the first.
pub fn differences(first: &Value, second: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(first), Some(second), &mut found);
    found
}

fn compare(path: &str, first: Option<&Value>, second: Option<&Value>, found: &mut Vec<Difference>) {
    if first == second {
        return;
    }
    match (first, second) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let added = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(added) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&path, a.get(name), b.get(name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                compare(&format!("{path}[{index}]"), a.get(index), b.get(index), found);
            }
        }
        _ => found.push(Difference {
            path: path.to_owned(),
            first: first.cloned(),
            second: second.cloned(),
        }),
    }
}
