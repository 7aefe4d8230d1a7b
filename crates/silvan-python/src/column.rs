//! Columns that cross into Python without a copy. A view holds a reference to its column, which never changes.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

enum Values {
    U8(Vec<u8>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

#[pyclass(frozen, module = "silvan._silvan")]
pub struct Column(Values);

macro_rules! column_from {
    ($($variant:ident($number:ty)),*) => {$(
        impl From<Vec<$number>> for Column {
            fn from(values: Vec<$number>) -> Self {
                Self(Values::$variant(values))
            }
        }
    )*};
}

column_from!(U8(u8), I32(i32), U32(u32), U64(u64), F64(f64));

impl Column {
    fn bytes(&self) -> (*const u8, usize) {
        fn of<T>(values: &[T]) -> (*const u8, usize) {
            (values.as_ptr().cast(), size_of_val(values))
        }
        match &self.0 {
            Values::U8(values) => of(values),
            Values::I32(values) => of(values),
            Values::U32(values) => of(values),
            Values::U64(values) => of(values),
            Values::F64(values) => of(values),
        }
    }
}

#[pymethods]
impl Column {
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes().1
    }

    #[getter]
    fn address(&self) -> usize {
        self.bytes().0 as usize
    }

    /// Gives a read-only view of the column's bytes.
    ///
    /// # Safety
    /// Only the interpreter calls this, with a `view` that it owns.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let (start, length) = slf.get().bytes();
        let length = ffi::Py_ssize_t::try_from(length)
            .map_err(|_| PyBufferError::new_err("the column is too long"))?;
        // SAFETY: `view` is not null and belongs to the caller. `start` is valid for `length` bytes
        // as long as the column lives, and the reference of PyBuffer_FillInfo keeps the column
        // alive. The class is frozen and its vector is never changed, so the bytes neither move nor
        // change. The view is read-only, and a request for a writable view fails.
        let status = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                start.cast_mut().cast::<c_void>(),
                length,
                1,
                flags,
            )
        };
        if status == 0 {
            return Ok(());
        }
        // SAFETY: `view` is as above; a failed request must leave no object in it.
        unsafe { (*view).obj = ptr::null_mut() };
        Err(PyErr::fetch(slf.py()))
    }
}
