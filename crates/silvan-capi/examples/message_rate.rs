//! Prints the rate of small messages through the C interface; each arrival sends the next message.
//!
//! `cargo run --release -p silvan-capi --example message_rate -- [MESSAGES] [HOSTS] [BYTES]`

#![allow(unsafe_code, reason = "a driver calls C functions")]
#![allow(clippy::print_stdout, reason = "it is for reading")]

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::time::Instant;

use silvan::{Message, Simulation, Statistics, Status};

const ON_THEIR_WAY: u32 = 2;

struct Driver {
    hosts: u32,
    bytes: u64,
    left: u64,
}

fn check(status: Status) {
    // SAFETY: the text is valid until the next error.
    let text = unsafe { CStr::from_ptr(silvan::silvan_last_error()) };
    assert!(status == Status::Ok, "{}", text.to_string_lossy());
}

fn send(simulation: *mut Simulation, driver: *mut Driver, from: u32, tag: u64) {
    // SAFETY: the driver outlives the run, and callbacks come one after the other.
    let (hosts, bytes) = unsafe { ((*driver).hosts, (*driver).bytes) };
    let to = (from + 1 + (tag % u64::from(hosts - 1)) as u32) % hosts;
    let next = silvan::silvan_send(
        simulation,
        from,
        to,
        bytes,
        tag + 1,
        Some(arrived),
        driver.cast(),
    );
    check(next);
}

unsafe extern "C-unwind" fn arrived(
    simulation: *mut Simulation,
    message: *const Message,
    user: *mut c_void,
) {
    let driver: *mut Driver = user.cast();
    // SAFETY: as in `send`; the message is valid during the call.
    let (message, left) = unsafe { (*message, &mut (*driver).left) };
    if *left > 0 {
        *left -= 1;
        send(simulation, driver, message.from, message.tag);
    }
}

fn main() {
    let argument = |place: usize, default: u64| -> u64 {
        let text = std::env::args().nth(place);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let (messages, hosts, bytes) = (argument(1, 4_000_000), argument(2, 16), argument(3, 64));
    let text = format!("[fabric]\ngenerator = \"single-switch\"\nhosts = {hosts}\n");
    let text = CString::new(text).expect("no zero inside");
    let mut simulation = null_mut();
    // SAFETY: the strings end with a zero, and there is room for the pointer.
    let opened = unsafe {
        silvan::silvan_open_text(
            text.as_ptr(),
            c"rate".as_ptr(),
            std::ptr::null(),
            0,
            &raw mut simulation,
        )
    };
    check(opened);
    let hosts = hosts as u32;
    let mut driver = Driver {
        hosts,
        bytes,
        left: messages.saturating_sub(u64::from(ON_THEIR_WAY * hosts)),
    };
    for host in 0..hosts {
        for tag in 0..ON_THEIR_WAY {
            send(simulation, &raw mut driver, host, u64::from(tag));
        }
    }
    let begun = Instant::now();
    check(silvan::silvan_run_until_idle(simulation));
    let took = begun.elapsed().as_secs_f64();
    let mut totals = Statistics::default();
    // SAFETY: there is room for the totals.
    check(unsafe { silvan::silvan_read_statistics(simulation, &raw mut totals) });
    let arrived = totals.messages_arrived;
    println!(
        "{arrived} messages of {bytes} bytes between {hosts} hosts of a switch: {took:.2} s, {:.2} M messages/s",
        arrived as f64 / took / 1e6
    );
    check(silvan::silvan_close(simulation));
}
