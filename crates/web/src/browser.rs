//! What browsers call: the page puts a question into memory, asks, and reads the answer there.

use crate::answer;
use std::sync::{Mutex, PoisonError};

static QUESTION: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[expect(unsafe_code, reason = "the page is trusted to keep to the signature")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// The page's: hears how many requests of a run are over.
    safe fn progress(closed: u64);
}

/// Makes room for a question of so many bytes, and says where.
#[expect(unsafe_code, reason = "the page finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn question(bytes: usize) -> *mut u8 {
    let mut question = QUESTION.lock().unwrap_or_else(PoisonError::into_inner);
    *question = vec![0; bytes];
    question.as_mut_ptr()
}

/// Answers the question, and says how many bytes the answer has.
#[expect(unsafe_code, reason = "the page finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn ask() -> usize {
    let question = QUESTION.lock().unwrap_or_else(PoisonError::into_inner);
    let text = answer(&String::from_utf8_lossy(&question), &mut |closed| progress(closed));
    let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    *answer = text.into_bytes();
    answer.len()
}

/// Where the answer begins.
#[expect(unsafe_code, reason = "the page finds it by this name")]
#[unsafe(no_mangle)]
extern "C" fn answered() -> *const u8 {
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}
