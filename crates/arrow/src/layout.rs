//! The three structs of Arrow's C data and C stream interfaces, field by field as the
//! specification fixes them for good.

use std::ffi::{c_char, c_int, c_void};

/// A kind of values: `struct ArrowSchema`.
#[repr(C)]
#[derive(Debug)]
pub struct Schema {
    /// What the values are, in Arrow's spelling.
    pub format: *const c_char,
    /// The column's name.
    pub name: *const c_char,
    /// Further words; none here.
    pub metadata: *const c_char,
    /// 2: values may be absent.
    pub flags: i64,
    /// How many columns it has.
    pub n_children: i64,
    /// Its columns.
    pub children: *mut *mut Schema,
    /// Of values by number; none here.
    pub dictionary: *mut Schema,
    /// Lets go of it; absent once that is done, or somebody else will.
    pub release: Option<unsafe extern "C" fn(*mut Schema)>,
    /// What its maker keeps.
    pub private_data: *mut c_void,
}

/// Values: `struct ArrowArray`.
#[repr(C)]
#[derive(Debug)]
pub struct Array {
    /// How many values.
    pub length: i64,
    /// How many of them are absent.
    pub null_count: i64,
    /// How many to skip.
    pub offset: i64,
    /// How many pieces of memory.
    pub n_buffers: i64,
    /// How many columns.
    pub n_children: i64,
    /// The pieces of memory.
    pub buffers: *mut *const c_void,
    /// The columns.
    pub children: *mut *mut Array,
    /// Of values by number; none here.
    pub dictionary: *mut Array,
    /// Lets go of it; absent once that is done, or somebody else will.
    pub release: Option<unsafe extern "C" fn(*mut Array)>,
    /// What its maker keeps.
    pub private_data: *mut c_void,
}

/// Batches of rows, one after the other: `struct ArrowArrayStream`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrayStream {
    /// Fills in the kind of all batches.
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrayStream, *mut Schema) -> c_int>,
    /// Fills in the next batch; one that is let go of already: there are no more.
    pub get_next: Option<unsafe extern "C" fn(*mut ArrayStream, *mut Array) -> c_int>,
    /// What the last error was.
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrayStream) -> *const c_char>,
    /// Lets go of it; absent once that is done, or somebody else will.
    pub release: Option<unsafe extern "C" fn(*mut ArrayStream)>,
    /// What its maker keeps.
    pub private_data: *mut c_void,
}

impl Array {
    /// One that is let go of.
    pub const NONE: Array = Array {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: std::ptr::null_mut(),
        children: std::ptr::null_mut(),
        dictionary: std::ptr::null_mut(),
        release: None,
        private_data: std::ptr::null_mut(),
    };
}

impl Schema {
    /// One that is let go of.
    pub const NONE: Schema = Schema {
        format: std::ptr::null(),
        name: std::ptr::null(),
        metadata: std::ptr::null(),
        flags: 0,
        n_children: 0,
        children: std::ptr::null_mut(),
        dictionary: std::ptr::null_mut(),
        release: None,
        private_data: std::ptr::null_mut(),
    };
}
