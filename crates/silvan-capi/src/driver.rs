//! The driver as the simulation sees it: C functions with their user pointers.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::rc::Rc;

use silvan_core::{HostId, Span, Time};
use silvan_workload::programs::{Driver, Request, SendQueue};

use crate::types::{Message, OnArrival, OnTimer, Simulation};

#[derive(Clone, Copy, Debug)]
enum Pending {
    Message {
        message: Message,
        call: OnArrival,
        user: *mut c_void,
    },
    Timer {
        call: OnTimer,
        user: *mut c_void,
    },
    /// Room for another one; the next room behind it.
    Free {
        next: u32,
    },
}

const NONE: u32 = u32::MAX;

/// Pending callbacks, by token. Rooms are reused.
#[derive(Debug)]
struct Slab {
    rooms: Vec<Pending>,
    free: u32,
}

impl Slab {
    /// Keeps something; `None` if 2^32 things are pending.
    fn add(&mut self, pending: Pending) -> Option<u32> {
        let token = self.free;
        if token == NONE {
            let token = u32::try_from(self.rooms.len()).ok();
            let token = token.filter(|token| *token != NONE)?;
            self.rooms.push(pending);
            return Some(token);
        }
        let room = &mut self.rooms[token as usize];
        if let Pending::Free { next } = *room {
            self.free = next;
        }
        *room = pending;
        Some(token)
    }

    fn remove(&mut self, token: u32) -> Pending {
        let room = &mut self.rooms[token as usize];
        let next = self.free;
        self.free = token;
        std::mem::replace(room, Pending::Free { next })
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub messages_sent: u64,
    pub messages_arrived: u64,
    pub bytes_sent: u64,
    pub bytes_arrived: u64,
    pub timers_pending: u64,
}

/// State shared by the functions of the interface and the running simulation. It is separate from the simulation,
/// because callbacks make requests while it runs.
#[derive(Debug)]
pub(crate) struct Shared {
    simulation: *mut Simulation,
    pending: RefCell<Slab>,
    requests: RefCell<Vec<Request>>,
    counts: Cell<Counts>,
    /// The current instant.
    pub now: Cell<Time>,
}

impl Shared {
    pub fn new(simulation: *mut Simulation) -> Self {
        Self {
            simulation,
            pending: RefCell::new(Slab {
                rooms: Vec::new(),
                free: NONE,
            }),
            requests: RefCell::default(),
            counts: Cell::default(),
            now: Cell::new(Time::ZERO),
        }
    }

    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Requests a message; returns whether there is room for it.
    pub fn send(&self, message: Message, call: OnArrival, user: *mut c_void) -> bool {
        let message = Message {
            sent_ps: self.now.get().as_ps(),
            ..message
        };
        let pending = Pending::Message {
            message,
            call,
            user,
        };
        let Some(token) = self.pending.borrow_mut().add(pending) else {
            return false;
        };
        self.count(|counts| {
            counts.messages_sent += 1;
            counts.bytes_sent += message.bytes;
        });
        self.request(Request::Send {
            from: HostId::new(message.from as usize),
            to: HostId::new(message.to as usize),
            bytes: message.bytes,
            sl: None,
            queue: SendQueue::default(),
            token,
        });
        true
    }

    /// Requests a timer; returns whether there is room for it.
    pub fn start_timer(&self, delay: Span, call: OnTimer, user: *mut c_void) -> bool {
        let pending = Pending::Timer { call, user };
        let Some(token) = self.pending.borrow_mut().add(pending) else {
            return false;
        };
        self.count(|counts| counts.timers_pending += 1);
        self.request(Request::Timer { delay, token });
        true
    }

    pub fn request(&self, request: Request) {
        self.requests.borrow_mut().push(request);
    }

    /// Moves out what has been requested.
    pub fn take_requests(&self, requests: &mut Vec<Request>) {
        requests.append(&mut self.requests.borrow_mut());
    }

    /// Removes requests to stop.
    pub fn drop_stop(&self) {
        let mut requests = self.requests.borrow_mut();
        requests.retain(|request| *request != Request::Stop);
    }
}

#[derive(Debug)]
pub(crate) struct Callbacks(pub Rc<Shared>);

// SAFETY: a simulation with a driver stays on the thread that calls its functions. Only programs without a driver are
// simulated on several.
unsafe impl Send for Callbacks {}

impl Driver for Callbacks {
    fn notify(&mut self, token: u32, now: Time, requests: &mut Vec<Request>) {
        let shared = &self.0;
        shared.now.set(now);
        let pending = shared.pending.borrow_mut().remove(token);
        match pending {
            Pending::Message {
                mut message,
                call,
                user,
            } => {
                message.arrived_ps = now.as_ps();
                shared.count(|counts| {
                    counts.messages_arrived += 1;
                    counts.bytes_arrived += message.bytes;
                });
                if let Some(call) = call {
                    // SAFETY: the driver gave a function of this type, and what its user pointer is for is between the
                    // two. Nothing of the simulation is borrowed that the functions of the interface use meanwhile.
                    unsafe { call(shared.simulation, &raw const message, user) };
                }
            }
            Pending::Timer { call, user } => {
                shared.count(|counts| counts.timers_pending -= 1);
                if let Some(call) = call {
                    // SAFETY: as above.
                    unsafe { call(shared.simulation, user) };
                }
            }
            Pending::Free { .. } => {}
        }
        shared.take_requests(requests);
    }
}
