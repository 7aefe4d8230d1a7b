//! Names of hosts as programs of MPI see them, with `SIM_HOST_NAMES` set.

use std::ffi::{c_char, c_int};

use libc::size_t;

use crate::{fabric, fail, real};

fn name() -> Option<Vec<u8>> {
    std::env::var_os("SIM_HOST_NAMES")?;
    fabric::node_of_rank()
}

/// `gethostname` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostname(buffer: *mut c_char, size: size_t) -> c_int {
    // SAFETY: the caller's buffer has room for so many bytes.
    unsafe {
        let Some(name) = name() else {
            return (real::gethostname())(buffer, size);
        };
        if name.len() >= size {
            return fail(libc::ENAMETOOLONG);
        }
        std::ptr::copy_nonoverlapping(name.as_ptr().cast(), buffer, name.len());
        buffer.add(name.len()).write(0);
        0
    }
}

/// `uname` of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uname(about: *mut libc::utsname) -> c_int {
    // SAFETY: the caller keeps the contract of libc's function.
    unsafe {
        let result = (real::uname())(about);
        if let Some(name) = name().filter(|_| result == 0) {
            let place = &mut (*about).nodename;
            let length = name.len().min(place.len() - 1);
            for (to, &byte) in place.iter_mut().zip(&name[..length]) {
                *to = byte as _;
            }
            place[length] = 0;
        }
        result
    }
}
