//! A table as the structs of Arrow's C interfaces, without copying a value.
//!
//! Every struct that is handed out owns a share of the table and the lists that it points to, in a
//! box behind `private_data`, and frees them when its `release` is called. A struct may be moved by
//! its reader, who then marks the old place as released; so `release` of a table must let go of
//! those columns only that are still in their places.
#![expect(unsafe_code, reason = "the interface is pointers to C structs")]

use crate::column::{Column, Table, Values};
use crate::layout::{Array, ArrayStream, Schema};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// The flag of a column whose values may be absent.
const NULLABLE: i64 = 2;

/// What a schema owns.
struct SchemaShare {
    /// The name is read from it.
    _table: Arc<Table>,
    children: Vec<*mut Schema>,
}

/// What an array owns.
struct ArrayShare {
    /// The values are read from it.
    _table: Arc<Table>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

/// What a stream owns.
struct StreamShare {
    table: Arc<Table>,
    given: bool,
}

// SAFETY: what it points to is owned by it alone, or shared as `Arc<Table>`, which may be sent.
unsafe impl Send for ArrayStream {}
// SAFETY: as above.
unsafe impl Send for Schema {}

impl ArrayStream {
    /// All rows of `table`, in one batch.
    pub fn of(table: Arc<Table>) -> ArrayStream {
        let share = Box::new(StreamShare { table, given: false });
        ArrayStream {
            get_schema: Some(stream_schema),
            get_next: Some(stream_next),
            get_last_error: Some(stream_error),
            release: Some(release_stream),
            private_data: Box::into_raw(share).cast(),
        }
    }
}

impl Drop for ArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it is not released yet, or `release` would be absent.
            unsafe { release(self) }
        }
    }
}

impl Schema {
    /// The kinds of the columns of `table`.
    pub fn of(table: &Arc<Table>) -> Schema {
        let child = |column: &Column| Box::into_raw(Box::new(Schema::column(table, column)));
        let children = table.columns.iter().map(child).collect();
        Schema::with(table, c"+s".as_ptr(), (c"".as_ptr(), 0), children)
    }

    fn column(table: &Arc<Table>, column: &Column) -> Schema {
        let name = (column.name.as_ptr(), NULLABLE);
        Schema::with(table, column.format().as_ptr(), name, Vec::new())
    }

    fn with(
        table: &Arc<Table>,
        format: *const c_char,
        (name, flags): (*const c_char, i64),
        children: Vec<*mut Schema>,
    ) -> Schema {
        let mut share = Box::new(SchemaShare { _table: Arc::clone(table), children });
        Schema {
            format,
            name,
            flags,
            n_children: length(share.children.len()),
            children: share.children.as_mut_ptr(),
            release: Some(release_schema),
            private_data: Box::into_raw(share).cast(),
            ..Schema::NONE
        }
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it is not released yet, or `release` would be absent.
            unsafe { release(self) }
        }
    }
}

impl Array {
    /// All rows of `table`.
    fn of(table: &Arc<Table>) -> Array {
        let child = |column: &Column| Box::into_raw(Box::new(Array::column(table, column)));
        let children = table.columns.iter().map(child).collect();
        // A row as such is never absent.
        Array::with(table, (table.rows(), 0), vec![null()], children)
    }

    fn column(table: &Arc<Table>, column: &Column) -> Array {
        let present = column.present.as_ref().map_or(null(), |bits| bits.as_ptr().cast());
        let mut buffers: Vec<*const c_void> = vec![present];
        match &column.values {
            Values::Counts(values) => buffers.push(values.as_ptr().cast()),
            Values::Numbers(values) => buffers.push(values.as_ptr().cast()),
            Values::Texts(bytes, ends) => {
                buffers.extend([ends.as_ptr().cast(), bytes.as_ptr().cast()]);
            }
        }
        Array::with(table, (column.len(), column.absent), buffers, Vec::new())
    }

    fn with(
        table: &Arc<Table>,
        (len, absent): (usize, usize),
        buffers: Vec<*const c_void>,
        children: Vec<*mut Array>,
    ) -> Array {
        let mut share = Box::new(ArrayShare { _table: Arc::clone(table), buffers, children });
        Array {
            length: length(len),
            null_count: length(absent),
            n_buffers: length(share.buffers.len()),
            n_children: length(share.children.len()),
            buffers: share.buffers.as_mut_ptr(),
            children: share.children.as_mut_ptr(),
            release: Some(release_array),
            private_data: Box::into_raw(share).cast(),
            ..Array::NONE
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it is not released yet, or `release` would be absent.
            unsafe { release(self) }
        }
    }
}

fn length(count: usize) -> i64 {
    i64::try_from(count).expect("memory ends before")
}

/// Lets go of a schema, and of its columns that are still in their places.
unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: a reader calls it with a schema of ours that is not released, from one thread.
    let schema = unsafe { &mut *schema };
    schema.release = None;
    // SAFETY: `with` made it from this box, and nobody has freed it: `release` was there.
    let share = unsafe { Box::from_raw(schema.private_data.cast::<SchemaShare>()) };
    schema.private_data = null_mut();
    for child in share.children {
        // SAFETY: `of` made it from a box. Its drop releases it, unless it was moved away.
        drop(unsafe { Box::from_raw(child) });
    }
}

/// Lets go of an array, and of its columns that are still in their places.
unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: a reader calls it with an array of ours that is not released, from one thread.
    let array = unsafe { &mut *array };
    array.release = None;
    // SAFETY: `with` made it from this box, and nobody has freed it: `release` was there.
    let share = unsafe { Box::from_raw(array.private_data.cast::<ArrayShare>()) };
    array.private_data = null_mut();
    for child in share.children {
        // SAFETY: `of` made it from a box. Its drop releases it, unless it was moved away.
        drop(unsafe { Box::from_raw(child) });
    }
}

unsafe extern "C" fn release_stream(stream: *mut ArrayStream) {
    // SAFETY: a reader calls it with a stream of ours that is not released, from one thread.
    let stream = unsafe { &mut *stream };
    stream.release = None;
    // SAFETY: `of` made it from this box, and nobody has freed it: `release` was there.
    drop(unsafe { Box::from_raw(stream.private_data.cast::<StreamShare>()) });
    stream.private_data = null_mut();
}

/// What `stream` owns.
///
/// # Safety
/// It must be one of ours that is not released, and no other share of it may be in use.
unsafe fn share<'a>(stream: *mut ArrayStream) -> &'a mut StreamShare {
    // SAFETY: the caller says so.
    let private = unsafe { (*stream).private_data };
    // SAFETY: `of` made it from a box of this type.
    unsafe { &mut *private.cast() }
}

unsafe extern "C" fn stream_schema(stream: *mut ArrayStream, out: *mut Schema) -> c_int {
    // SAFETY: a reader calls it with a stream of ours that is not released, from one thread.
    let share = unsafe { share(stream) };
    // SAFETY: `out` is room for a schema whose content does not matter.
    unsafe { out.write(Schema::of(&share.table)) };
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrayStream, out: *mut Array) -> c_int {
    // SAFETY: a reader calls it with a stream of ours that is not released, from one thread.
    let share = unsafe { share(stream) };
    let next = if share.given { Array::NONE } else { Array::of(&share.table) };
    share.given = true;
    // SAFETY: `out` is room for an array whose content does not matter.
    unsafe { out.write(next) };
    0
}

/// Nothing fails here.
unsafe extern "C" fn stream_error(_: *mut ArrayStream) -> *const c_char {
    null()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Arc<Table> {
        let mut columns = [Column::counts("n"), Column::numbers("x"), Column::texts("t")];
        for row in 0..20_u32 {
            columns[0].count(u64::from(row));
            columns[1].number((row % 3 > 0).then_some(f64::from(row) / 2.0));
            columns[2].text(if row == 7 { "seven" } else { "" });
        }
        Arc::new(Table::new(columns.into()))
    }

    fn next(stream: &mut ArrayStream) -> Array {
        let mut out = Array::NONE;
        let get_next = stream.get_next.expect("a live stream");
        // SAFETY: the stream is live, and `out` is room for an array.
        assert_eq!(unsafe { get_next(stream, &raw mut out) }, 0);
        out
    }

    /// The column at `index`.
    fn child(array: &Array, index: usize) -> &Array {
        // SAFETY: the array is live and has a column there.
        let child = unsafe { *array.children.wrapping_add(index) };
        // SAFETY: as above.
        unsafe { &*child }
    }

    #[test]
    fn a_reader_sees_the_memory_of_the_columns() {
        let table = table();
        let mut stream = ArrayStream::of(Arc::clone(&table));
        let rows = next(&mut stream);
        assert_eq!((rows.length, rows.n_children), (20, 3));
        assert_eq!(child(&rows, 1).null_count, 7);
        let Values::Numbers(values) = &table.columns[1].values else { panic!("numbers") };
        // SAFETY: a column of numbers has two buffers.
        let seen = unsafe { *child(&rows, 1).buffers.wrapping_add(1) };
        assert_eq!(seen, values.as_ptr().cast(), "the same place");
        assert!(next(&mut stream).release.is_none(), "there is one batch");
    }

    #[test]
    fn everything_is_let_go_of_whoever_lets_go_first() {
        let table = table();
        let mut stream = ArrayStream::of(Arc::clone(&table));
        let rows = next(&mut stream);
        // SAFETY: the array is live and has a column there.
        let place = unsafe { *rows.children };
        // A reader moves the first column away and marks its place.
        // SAFETY: the place is a live array, which is read once.
        let moved = unsafe { place.read() };
        // SAFETY: as above; the place stays that of the table.
        unsafe { (*place).release = None };
        let schema = Schema::of(&table);
        assert_eq!(schema.n_children, 3);
        assert!(Arc::strong_count(&table) > 5);
        drop(rows);
        drop(stream);
        drop(schema);
        assert_eq!(Arc::strong_count(&table), 2, "the column that was moved still lives");
        assert_eq!(moved.length, 20);
        drop(moved);
        assert_eq!(Arc::strong_count(&table), 1);
    }
}
