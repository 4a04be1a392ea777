//! Columns in Arrow's memory layout: values one behind the other, and a bit for each that says
//! whether it is there.

use std::ffi::{CStr, CString};

/// Columns of one length, with names.
#[derive(Debug, Default)]
pub struct Table {
    pub(crate) columns: Vec<Column>,
}

impl Table {
    /// A table of these columns.
    ///
    /// # Panics
    /// If they are not of one length.
    pub fn new(columns: Vec<Column>) -> Table {
        let rows = columns.first().map_or(0, Column::len);
        assert!(columns.iter().all(|column| column.len() == rows), "columns of one length");
        Table { columns }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// The names of its columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.to_str().unwrap_or_default())
    }
}

/// A column: its name, its values, and which of them are there.
#[derive(Debug)]
pub struct Column {
    pub(crate) name: CString,
    pub(crate) values: Values,
    /// A bit a value, lowest first; kept only once a value is absent.
    pub(crate) present: Option<Vec<u8>>,
    pub(crate) absent: usize,
}

/// Values of one kind.
#[derive(Debug)]
pub(crate) enum Values {
    Counts(Vec<u64>),
    Numbers(Vec<f64>),
    /// Bytes of all texts, and where each begins and the last ends.
    Texts(Vec<u8>, Vec<i64>),
}

impl Column {
    fn new(name: &str, values: Values) -> Column {
        let name = CString::new(name).expect("names of columns are ours, and have no zero byte");
        Column { name, values, present: None, absent: 0 }
    }

    /// A column of whole numbers.
    ///
    /// # Panics
    /// If there is a zero byte in the name.
    pub fn counts(name: &str) -> Column {
        Column::new(name, Values::Counts(Vec::new()))
    }

    /// A column of numbers.
    ///
    /// # Panics
    /// If there is a zero byte in the name.
    pub fn numbers(name: &str) -> Column {
        Column::new(name, Values::Numbers(Vec::new()))
    }

    /// A column of texts.
    ///
    /// # Panics
    /// If there is a zero byte in the name.
    pub fn texts(name: &str) -> Column {
        Column::new(name, Values::Texts(Vec::new(), vec![0]))
    }

    /// Adds a whole number, or none.
    ///
    /// # Panics
    /// If it is a column of something else.
    pub fn count(&mut self, value: impl Into<Option<u64>>) {
        let value = value.into();
        let Values::Counts(values) = &mut self.values else { panic!("a column of counts") };
        values.push(value.unwrap_or(0));
        self.mark(value.is_some());
    }

    /// Adds a number, or none.
    ///
    /// # Panics
    /// If it is a column of something else.
    pub fn number(&mut self, value: impl Into<Option<f64>>) {
        let value = value.into();
        let Values::Numbers(values) = &mut self.values else { panic!("a column of numbers") };
        values.push(value.unwrap_or(0.0));
        self.mark(value.is_some());
    }

    /// Adds a text, or none.
    ///
    /// # Panics
    /// If it is a column of something else.
    pub fn text<'a>(&mut self, value: impl Into<Option<&'a str>>) {
        let value = value.into();
        let Values::Texts(bytes, ends) = &mut self.values else { panic!("a column of texts") };
        bytes.extend_from_slice(value.unwrap_or_default().as_bytes());
        ends.push(i64::try_from(bytes.len()).expect("memory ends before"));
        self.mark(value.is_some());
    }

    /// How many values it has, absent ones included.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Counts(values) => values.len(),
            Values::Numbers(values) => values.len(),
            Values::Texts(_, ends) => ends.len() - 1,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes whether the value that was just added is there.
    fn mark(&mut self, there: bool) {
        let at = self.len() - 1;
        self.absent += usize::from(!there);
        if self.present.is_none() {
            if there {
                return;
            }
            // All before it are there.
            self.present = Some(vec![0xff; at.div_ceil(8)]);
        }
        let present = self.present.as_mut().expect("it was made");
        if present.len() <= at / 8 {
            present.push(0);
        }
        let bit = 1 << (at % 8);
        present[at / 8] = if there { present[at / 8] | bit } else { present[at / 8] & !bit };
    }

    /// How Arrow spells the kind of its values.
    pub(crate) fn format(&self) -> &'static CStr {
        match &self.values {
            Values::Counts(_) => c"L",
            Values::Numbers(_) => c"g",
            Values::Texts(..) => c"U",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_says_which_values_are_there_only_if_some_are_not() {
        let mut column = Column::counts("n");
        (0..9).for_each(|n| column.count(n));
        assert_eq!((column.absent, &column.present), (0, &None));
        column.count(None);
        column.count(7);
        assert_eq!((column.absent, column.len()), (1, 11));
        let bits = column.present.expect("one is absent");
        let there: Vec<bool> = (0..11).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect();
        assert_eq!(there.iter().filter(|there| !**there).count(), 1);
        assert!(!there[9]);
    }

    #[test]
    fn a_column_whose_first_values_are_absent_says_so() {
        let mut column = Column::texts("t");
        column.text(None);
        column.text("a");
        assert_eq!(column.present, Some(vec![0b10]));
        let Values::Texts(bytes, ends) = column.values else { panic!("texts") };
        assert_eq!((bytes, ends), (b"a".to_vec(), vec![0, 0, 1]));
    }
}
