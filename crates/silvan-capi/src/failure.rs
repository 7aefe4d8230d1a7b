use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::types::Status;

#[derive(Debug)]
pub(crate) struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, text }
    }

    pub fn argument(text: impl Into<String>) -> Self {
        Self::new(Status::BadArgument, text)
    }

    /// Makes a failure from the text of a panic.
    pub fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "unknown panic".to_owned());
        Self::new(Status::Internal, format!("internal error: {text}"))
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn keep(text: &str) {
    // A C string ends at its first zero.
    let bytes = text.split('\0').next().unwrap_or_default();
    let text = CString::new(bytes).unwrap_or_default();
    // Without effect in a thread that is ending.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// The text of the last error of this thread, valid until the next error.
pub(crate) fn last_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ptr());
    text.unwrap_or(c"".as_ptr())
}

/// Calls a function for C: an error and a panic become a status and a text.
pub(crate) fn guard(call: impl FnOnce() -> Result<(), Failure>) -> Status {
    // After a panic, a simulation can only be closed.
    let result = catch_unwind(AssertUnwindSafe(call));
    let failure = match result {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::of_panic(panic.as_ref()),
    };
    keep(&failure.text);
    failure.status
}
