//! A live fabric in memory as a transport: simulated time passes while requests wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use silvan_core::{Bytes, Lid, MonotonicTime, Span, Time};
use silvan_emulator::{ControlAnswer, ManagementPlane, Setup, Start};
use silvan_instances::Fastest;
use silvan_mad::performance::PortCountersExtended;
use silvan_mad::{Class, ClassPortInfo, MAD_LEN, Method, Packet, Status};
use silvan_model::Forest;
use silvan_scenario::Scenario;
use silvan_subnet::transport::{Incoming, Outgoing, Transport, TransportError};

const MAD_AT: usize = 288 - MAD_LEN;
/// Time between two requests.
const STEP: Span = Span::from_us(5);
/// Longest step of simulated time without a check for answers.
const POLL: Span = Span::from_ms(1);
/// Time between two samples of the ground truth.
const SAMPLE: Span = Span::from_ms(20);
/// A pause within a sweep is shorter.
const BETWEEN_SWEEPS: Span = Span::from_ms(100);

pub struct World {
    pub plane: ManagementPlane,
    client: u16,
    now: Time,
    arrived: VecDeque<Incoming>,
    /// Samples of the ground truth, while it is sampled.
    pub samples: Option<Vec<Forest>>,
    next_sample: Time,
    threshold: Bytes,
    /// Incident between the sweeps.
    pub incident: Option<fn(&mut World)>,
    /// Requests other than Get.
    pub sets: usize,
    /// Requests sent and not yet answered, now and at most.
    pub in_flight: (usize, usize),
    /// Send time of each request.
    pub sent_at: Vec<Time>,
    /// Nodes with odd LIDs refuse PortCountersExtended.
    pub lacks_wide_counters: bool,
}

/// The world, shared by the transport and the test.
#[derive(Clone)]
pub struct Live(pub Rc<RefCell<World>>);

impl World {
    pub fn new(scenario: &Scenario) -> Self {
        Self::with(scenario, Start::Configured.into())
    }

    pub fn with(scenario: &Scenario, setup: Setup) -> Self {
        let mut plane =
            ManagementPlane::new(&Fastest, scenario, setup).expect("the fabric can be emulated");
        let mut connect = [0; 80];
        for (at, word) in [(0, 0xdead_beef_u32), (4, 0), (8, 1), (12, 64), (16, 77)] {
            connect[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let Some(ControlAnswer::Connected(client, _)) = plane.control(&connect) else {
            panic!("no client is refused");
        };
        Self {
            plane,
            client,
            now: Time::ZERO,
            arrived: VecDeque::new(),
            samples: None,
            next_sample: Time::ZERO,
            threshold: Bytes::from_bytes(scenario.input_buffer().as_u64() / 2),
            incident: None,
            sets: 0,
            in_flight: (0, 0),
            sent_at: Vec::new(),
            lacks_wide_counters: false,
        }
    }

    pub fn advance(&mut self, span: Span) {
        self.plane.pass(span).expect("the data plane goes on");
        self.now = self.now.saturating_add(span);
        if let Some(samples) = &mut self.samples {
            if self.now >= self.next_sample {
                samples.push(self.plane.forest(self.threshold));
                self.next_sample = self.now.saturating_add(SAMPLE);
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        for (_, message) in self.plane.take_messages() {
            let mut mad = [0; MAD_LEN];
            mad.copy_from_slice(&message[MAD_AT..]);
            if matches!(
                Packet::new(&mad).method(),
                Method::TRAP | Method::TRAP_REPRESS
            ) {
                continue;
            }
            self.in_flight.0 = self.in_flight.0.saturating_sub(1);
            if self.lacks_wide_counters && message[5] % 2 == 1 {
                refuse_wide_counters(&mut mad);
            }
            self.arrived.push_back(Incoming {
                source: Lid::new(u16::from_be_bytes([message[4], message[5]])),
                unanswered: message[16..20] != [0; 4],
                mad,
            });
        }
    }

    /// Sends a datagram, as any tool does.
    pub fn send(&mut self, destination: Lid, mad: &[u8; MAD_LEN]) {
        let mut message = [0; 288];
        message[..2].copy_from_slice(&destination.as_u16().to_be_bytes());
        message[24..32].copy_from_slice(&(MAD_LEN as u64).to_be_bytes());
        message[MAD_AT..].copy_from_slice(mad);
        self.plane.datagram(self.client, &message);
        self.collect();
    }

    pub fn take_answer(&mut self) -> Option<Incoming> {
        self.arrived.pop_front()
    }
}

/// Makes the answer to PortCountersExtended that of a device without it, in ClassPortInfo, too.
fn refuse_wide_counters(mad: &mut [u8; MAD_LEN]) {
    let (class, attribute) = (mad[1], u16::from_be_bytes([mad[16], mad[17]]));
    if u32::from(class) != Class::PERFORMANCE.code() {
        return;
    }
    if attribute == PortCountersExtended::ID {
        mad[4..6].copy_from_slice(&Status::UNSUPPORTED_ATTRIBUTE.as_u16().to_be_bytes());
        mad[64..].fill(0);
    } else if attribute == ClassPortInfo::ID {
        // CapabilityMask and CapabilityMask2.
        mad[66..72].fill(0);
    }
}

impl Transport for Live {
    fn now(&mut self) -> MonotonicTime {
        MonotonicTime::from_ns(self.0.borrow().now.as_ps() / 1000)
    }

    fn unix_time(&mut self) -> u64 {
        0
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        let mut world = self.0.borrow_mut();
        world.sets += usize::from(Packet::new(outgoing.mad).method() != Method::GET);
        world.in_flight.0 += 1;
        world.in_flight.1 = world.in_flight.1.max(world.in_flight.0);
        let now = world.now;
        world.sent_at.push(now);
        world.advance(STEP);
        world.send(outgoing.destination, outgoing.mad);
        Ok(())
    }

    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
        let mut world = self.0.borrow_mut();
        let until = world.now.saturating_add(limit);
        loop {
            if let Some(incoming) = world.take_answer() {
                return Ok(Some(incoming));
            }
            if world.now >= until {
                return Ok(None);
            }
            let step = until.since(world.now).min(POLL);
            world.advance(step);
        }
    }

    fn pause(&mut self, span: Span) {
        let mut world = self.0.borrow_mut();
        let until = world.now.saturating_add(span);
        if span >= BETWEEN_SWEEPS {
            world.samples = Some(Vec::new());
            world.next_sample = world.now;
            if let Some(incident) = world.incident.take() {
                incident(&mut world);
            }
        }
        while world.now < until {
            let step = until.since(world.now).min(POLL);
            world.advance(step);
        }
    }
}
