//! The server: one thread handles input, and advances the data plane by some tens of us if it is behind, without locks.

mod clock;
mod exchange;
mod files;
mod notices;
mod sessions;
pub(crate) mod sockets;
mod verbs;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::net::{SendFlags, SocketAddrAny};
use silvan_core::Time;
use silvan_model::Engines;
use silvan_scenario::Scenario;
use silvan_workload::programs::{Driver, Request};

use crate::clients::{Clients, ControlAction};
use crate::command::CounterRates;
use crate::error::EmulatorError;
use crate::faults::{FaultSchedule, Timetable};
use crate::pace::Pace;
use crate::subnet::{Setup, Start, Subnet};
use crate::verbs::{Exchange, Fates};
use crate::view::FoundTrees;
use crate::wire::{CONTROL_LEN, Message};
use clock::Clock;
use files::{Fabric, Files};
pub use notices::Notices;
use rustix::io::Errno;
use sessions::{ControlSessions, Counter};
use sockets::{Address, AllowedUsers, Channel, Received, Sent, receive};
use verbs::RdmaPrograms;

const LONGEST_SLEEP: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_millis(1);
const QUIET_TICK: Duration = Duration::from_millis(10);
const SHORT_TICK: Duration = Duration::from_micros(20);
const PORT_CHECK: Duration = Duration::from_millis(5);
const HOUSEKEEPING: Duration = Duration::from_millis(500);
const TURN: usize = 64;

const ATTEMPTS: usize = 64;

const CONTROL: u64 = 0;
const LISTENER: u64 = 1;
const CHANNEL: u64 = 1 << 32;
const SESSION: u64 = 2 << 32;
const FILE: u64 = 3 << 32;
const STREAM: u64 = 4 << 32;
const FILES: u64 = 2;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address of the server for tools.
    pub address: Address,
    /// Users who may attach tools.
    pub users: AllowedUsers,
    /// Users who may control the fabric.
    pub controllers: AllowedUsers,
    /// Notices of the server: refused users, and clients that it has disconnected.
    pub notices: Notices,
    /// Simulated seconds per second.
    pub time_scale: f64,
    /// The node that programs are attached to which name none.
    pub host: Option<String>,
    /// State of the subnet before the first request.
    pub setup: Setup,
    /// True if simulated time is paused at first.
    pub paused: bool,
    /// True if simulated time stands still while RDMA programs work, and their clocks show it.
    pub follows_programs: bool,
    /// Scheduled faults.
    pub faults: Option<FaultSchedule>,
}

impl Options {
    /// Served under this name to the user of this process, set up, in real time.
    pub fn new(address: Address) -> Self {
        let own = AllowedUsers::Ids(vec![rustix::process::getuid().as_raw()]);
        Self {
            address,
            users: own.clone(),
            controllers: own,
            notices: Notices::default(),
            time_scale: 1.0,
            host: None,
            setup: Start::Configured.into(),
            paused: false,
            follows_programs: false,
            faults: None,
        }
    }
}

/// An emulated fabric with its sockets open.
#[derive(Debug)]
pub struct Server {
    options: Options,
    control: OwnedFd,
    epoll: OwnedFd,
    channels: BTreeMap<u16, Channel>,
    sessions: ControlSessions,
    files: Files,
    clients: Clients,
    rdma: Option<RdmaPrograms>,
    clock: Option<Clock>,
    exchange: Exchange,
    sending: Vec<(u16, Message)>,
    pace: Pace,
    rates: CounterRates,
    trees: FoundTrees,
    faults: Timetable,
    started: Instant,
    events: u64,
}

impl Server {
    /// Builds a scenario's fabric and opens the sockets, or leaves nothing open; tools wait until [`run`](Self::run).
    pub fn bind(
        engines: &dyn Engines,
        scenario: &Scenario,
        options: Options,
    ) -> Result<Self, EmulatorError> {
        Self::open(engines, scenario, options, None)
    }

    /// [Binds](Self::bind) a server with a driver next to the load; a [stop](Request::Stop) ends a step.
    pub fn bind_driven(
        engines: &dyn Engines,
        scenario: &Scenario,
        options: Options,
        driver: Box<dyn Driver>,
    ) -> Result<Self, EmulatorError> {
        Self::open(engines, scenario, options, Some(driver))
    }

    fn open(
        engines: &dyn Engines,
        scenario: &Scenario,
        options: Options,
        driver: Option<Box<dyn Driver>>,
    ) -> Result<Self, EmulatorError> {
        let scale = options.time_scale;
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(EmulatorError::TimeScale(scale));
        }
        let control = options.address.open("ctl", 0)?;
        let sessions = ControlSessions::open(&options.address)?;
        let files = Files::open(&options.address)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(EmulatorError::socket("waiting for sockets"))?;
        let fixed = [
            (&control, CONTROL),
            (&sessions.listener, LISTENER),
            (&files.listener, FILES),
        ];
        for (socket, token) in fixed {
            watch(&epoll, socket, token)?;
        }
        let (driver, rdma) = match driver {
            Some(driver) => (driver, None),
            None => {
                let fates = Fates::default();
                let shared = epoll
                    .try_clone()
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
                    .map_err(EmulatorError::socket("waiting for sockets"))?;
                let programs = RdmaPrograms::new(shared, STREAM, fates.clone());
                (Box::new(fates) as Box<dyn Driver>, Some(programs))
            }
        };
        let subnet = Subnet::new(engines, scenario, options.setup, Some(driver))?;
        let faults = Timetable::new(scenario.faults(), options.faults.as_ref(), &subnet.fabric)
            .map_err(EmulatorError::Faults)?;
        let mut clients = Clients::new(subnet, options.host.as_deref())?;
        if let Address::Udp(port) = options.address {
            clients.limit_numbers(u16::MAX - port);
        }
        let now = Instant::now();
        let simulated = clients.subnet.now();
        let mut pace = Pace::new(options.time_scale, now, simulated);
        pace.set_paused(options.paused, now, simulated);
        let clock = match options.follows_programs {
            true => Some(Clock::new(simulated)),
            false => None,
        };
        let clock = clock
            .transpose()
            .map_err(EmulatorError::socket("making the programs' clock"))?;
        Ok(Self {
            options,
            control,
            epoll,
            channels: BTreeMap::new(),
            sessions,
            files,
            clients,
            rdma,
            clock,
            exchange: Exchange::default(),
            sending: Vec::new(),
            pace,
            rates: CounterRates::default(),
            trees: FoundTrees::default(),
            faults,
            started: now,
            events: 0,
        })
    }

    /// Takes the driver's requests; an [`EmulatorError`] for a timer beyond the clock leaves all undone.
    pub fn request(&mut self, requests: &mut Vec<Request>) -> Result<(), EmulatorError> {
        self.clients.subnet.plane.request(requests)
    }

    /// Serves until `stop`, a request to quit, or an [`EmulatorError`] of data plane or sockets.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), EmulatorError> {
        let simulated = self.clients.subnet.now();
        self.pace.start(Instant::now(), simulated);
        let mut housekeeping = Instant::now();
        let mut ports_checked = housekeeping;
        let mut quit = false;
        let mut ready = Vec::with_capacity(256);
        while !stop.load(Ordering::Relaxed) && !quit {
            let sleep = self.step()?;
            self.clients.come_due();
            self.deliver()?;
            self.wait(&mut ready, sleep)?;
            for event in ready.drain(..) {
                self.serve(event, &mut quit)?;
            }
            let now = Instant::now();
            if let Some(rdma) = &mut self.rdma {
                if now.duration_since(ports_checked) >= PORT_CHECK {
                    ports_checked = now;
                    rdma.check_ports(&mut self.clients.subnet)?;
                }
            }
            if now.duration_since(housekeeping) >= HOUSEKEEPING {
                housekeeping = now;
                self.rates.sample(&self.clients);
                self.clients.flush_traps();
                self.clients.expire();
                if let Some(rdma) = &mut self.rdma {
                    rdma.reject_old_requests();
                }
                self.deliver()?;
                self.drop_gone()?;
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Duration, EmulatorError> {
        let now = Instant::now();
        self.clients.subnet.uptime = now.duration_since(self.started);
        let simulated = self.clients.subnet.now();
        if self.faults.next().is_some_and(|time| time <= simulated) {
            for change in self.faults.apply(&mut self.clients, self.pace.scale()) {
                self.options.notices.changed(change);
            }
        }
        if self.clock.is_some() {
            if let Some(sleep) = self.follow_programs(now, simulated)? {
                return Ok(sleep);
            }
        }
        let is_waited_for = match &self.rdma {
            Some(rdma) if rdma.copies_slowly() => return Ok(TICK),
            Some(rdma) => rdma.waits(),
            None => false,
        };
        let Some(until) = self.pace.next_step(now, simulated, is_waited_for) else {
            if is_waited_for && !self.pace.is_paused() {
                return Ok(SHORT_TICK);
            }
            if self.pace.is_paused() {
                return Ok(LONGEST_SLEEP);
            }
            let events = self.clients.subnet.plane.engine.events();
            let quiet = std::mem::replace(&mut self.events, events) == events;
            return Ok(if quiet { QUIET_TICK } else { TICK });
        };
        let mut until = self.faults.next().map_or(until, |time| until.min(time));
        if let Some(rdma) = &self.rdma {
            until = until.min(rdma.latest_step(simulated));
            if until == simulated && rdma.is_copying() {
                return Ok(SHORT_TICK);
            }
        }
        self.clients.subnet.step(until)?;
        if let Some(rdma) = &mut self.rdma {
            rdma.collect_fates(&mut self.clients.subnet)?;
        }
        // A driver may have stopped the step.
        let reached = self.clients.subnet.now();
        self.pace.stepped(reached.since(simulated), now.elapsed());
        Ok(Duration::ZERO)
    }

    fn wait(&self, ready: &mut Vec<epoll::Event>, sleep: Duration) -> Result<(), EmulatorError> {
        let mut timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(sleep.subsec_nanos()),
        };
        // Before Linux 5.11, epoll sleeps for whole milliseconds.
        if !sleep.is_zero() && sleep < TICK {
            let mut one = [PollFd::new(&self.epoll, PollFlags::IN)];
            let _ = rustix::event::poll(&mut one, Some(&timeout));
            timeout.tv_nsec = 0;
        }
        let buffer = rustix::buffer::spare_capacity(ready);
        match epoll::wait(&self.epoll, buffer, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(EmulatorError::socket("waiting for sockets")(error)),
        }
    }

    fn serve(&mut self, event: epoll::Event, quit: &mut bool) -> Result<(), EmulatorError> {
        let token = event.data.u64();
        let number = token as u32;
        match token & !u64::from(u32::MAX) {
            0 if token == CONTROL => self.serve_control(),
            0 if token == FILES => self.accept_files()?,
            0 => {
                let Options {
                    controllers,
                    notices,
                    ..
                } = &self.options;
                for session in self.sessions.accept(controllers, notices) {
                    let Some(socket) = self.sessions.socket(session) else {
                        continue;
                    };
                    if watch(&self.epoll, socket, SESSION | u64::from(session)).is_err() {
                        self.sessions.close(session);
                    }
                }
            }
            CHANNEL => self.serve_channel(number as u16, event.flags)?,
            FILE => {
                let shown = self.clock.as_ref().map_or(Time::ZERO, Clock::latest);
                let mut fabric = Fabric {
                    clients: &mut self.clients,
                    rdma: self.rdma.as_mut(),
                    clock: self.clock.as_ref(),
                    shown,
                };
                let next = self.files.serve(number, event.flags, &mut fabric)?;
                self.watch_file(number, next);
            }
            STREAM => {
                if let Some(rdma) = &mut self.rdma {
                    let subnet = &mut self.clients.subnet;
                    rdma.serve(number.into(), event.flags, subnet)?;
                }
            }
            _ => self.serve_session(number, quit),
        }
        self.deliver()
    }

    fn accept_files(&mut self) -> Result<(), EmulatorError> {
        let Options { users, notices, .. } = &self.options;
        for file in self.files.accept(users, notices) {
            let Some(socket) = self.files.socket(file) else {
                continue;
            };
            if watch(&self.epoll, socket, FILE | u64::from(file)).is_err() {
                self.close_file(file)?;
            }
        }
        Ok(())
    }

    fn close_file(&mut self, file: u32) -> Result<(), EmulatorError> {
        let mut fabric = Fabric {
            clients: &mut self.clients,
            rdma: self.rdma.as_mut(),
            clock: None,
            shown: Time::ZERO,
        };
        self.files.close(file, &mut fabric)
    }

    fn watch_file(&mut self, file: u32, flags: Option<epoll::EventFlags>) {
        let flags = flags.filter(|flags| self.files.set_watched(file, *flags));
        if let (Some(flags), Some(socket)) = (flags, self.files.socket(file)) {
            let data = epoll::EventData::new_u64(FILE | u64::from(file));
            let _ = epoll::modify(&self.epoll, socket, data, flags);
        }
    }

    fn serve_session(&mut self, session: u32, quit: &mut bool) {
        let mut counter = Counter {
            clients: &mut self.clients,
            pace: &mut self.pace,
            rates: &self.rates,
            trees: &mut self.trees,
            exchange: &self.exchange,
            quit,
        };
        if let Some(flags) = self.sessions.serve(session, &mut counter) {
            if let Some(socket) = self.sessions.socket(session) {
                let data = epoll::EventData::new_u64(SESSION | u64::from(session));
                let _ = epoll::modify(&self.epoll, socket, data, flags);
            }
        }
    }

    fn serve_control(&mut self) {
        let mut buffer = [0; 2 * CONTROL_LEN];
        for _ in 0..TURN {
            let allowed = match self.options.address {
                Address::Unix(_) => Some(&self.options.users),
                Address::Udp(_) => None,
            };
            match receive(&self.control, &mut buffer, allowed) {
                Received::Datagram(len, from) => {
                    let done = (0..ATTEMPTS).any(|_| {
                        let action = self.clients.control(&buffer[..len]);
                        self.act(action, from.as_ref())
                    });
                    if !done {
                        self.refuse(&buffer[..len], from.as_ref());
                    }
                }
                Received::Foreign(user, from) => {
                    self.options.notices.refused(user, "attach");
                    // A refused client gets an answer at once.
                    self.refuse(&buffer[..CONTROL_LEN], from.as_ref());
                }
                Received::Gone => {}
                Received::Empty => return,
            }
        }
    }

    fn refuse(&self, request: &[u8], to: Option<&SocketAddrAny>) {
        if let Some(control) = crate::wire::Control::parse(request) {
            self.reply(&control.refuse(), to);
        }
    }

    fn reply(&self, reply: &[u8; CONTROL_LEN], to: Option<&SocketAddrAny>) {
        if let Some(to) = to {
            // A client takes one answer at a time; an ended client misses nothing.
            let _ = rustix::net::sendto(&self.control, reply, SendFlags::NOSIGNAL, to);
        }
    }

    fn act(&mut self, action: ControlAction, from: Option<&SocketAddrAny>) -> bool {
        match action {
            ControlAction::Nothing => {}
            ControlAction::Reply(reply) => self.reply(&reply, from),
            ControlAction::Connect {
                client,
                id,
                reply,
                refusal,
            } => match self.open_channel(client, id) {
                Ok(()) => {
                    self.drop_predecessor(client, id);
                    self.reply(&reply, from);
                }
                Err(EmulatorError::AddressInUse(_)) => {
                    self.clients.disconnect(client);
                    return false;
                }
                Err(_) => {
                    self.clients.disconnect(client);
                    self.reply(&refusal, from);
                }
            },
            ControlAction::Disconnect { client, reply } => {
                self.reply(&reply, from);
                self.drop_client(client);
            }
        }
        true
    }

    fn open_channel(&mut self, client: u16, id: u32) -> Result<(), EmulatorError> {
        let address = &self.options.address;
        let socket = address.open(&format!("out{client}"), client.saturating_add(1))?;
        address
            .connect(&socket, id)
            .map_err(EmulatorError::socket("connecting to a client"))?;
        watch(&self.epoll, &socket, CHANNEL | u64::from(client))?;
        self.channels.insert(client, Channel::new(socket, id));
        Ok(())
    }

    fn drop_predecessor(&mut self, client: u16, id: u32) {
        let mut channels = self.channels.iter();
        let same = channels.find(|(other, channel)| **other != client && channel.id == id);
        if let Some(&other) = same.map(|(other, _)| other) {
            self.drop_client(other);
        }
    }

    fn serve_channel(
        &mut self,
        client: u16,
        flags: epoll::EventFlags,
    ) -> Result<(), EmulatorError> {
        if flags.contains(epoll::EventFlags::OUT) {
            if let Some(channel) = self.channels.get_mut(&client) {
                let sent = channel.flush();
                self.after(client, sent);
            }
        }
        let mut buffer = [0; 2 * crate::wire::DATA_LEN];
        for _ in 0..TURN {
            let Some(channel) = self.channels.get(&client) else {
                return Ok(());
            };
            let allowed = match self.options.address {
                Address::Unix(_) => Some(&self.options.users),
                Address::Udp(_) => None,
            };
            match receive(&channel.socket, &mut buffer, allowed) {
                Received::Datagram(len, _) => {
                    self.clients.datagram(client, &buffer[..len]);
                    self.deliver()?;
                }
                Received::Foreign(user, _) => {
                    self.options.notices.refused(user, "send datagrams");
                    self.clients.traffic.dropped += 1;
                }
                Received::Gone => {
                    self.drop_client(client);
                    return Ok(());
                }
                Received::Empty => return Ok(()),
            }
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), EmulatorError> {
        // An ended client's requests return to others, which adds messages.
        while !self.clients.outbox.is_empty() {
            let room = std::mem::take(&mut self.sending);
            let mut sending = std::mem::replace(&mut self.clients.outbox, room);
            for (client, message) in sending.drain(..) {
                if let Some(channel) = self.channels.get_mut(&client) {
                    let sent = channel.send(&message);
                    self.after(client, sent);
                } else if let Some((file, going)) = self.files.send(client, &message) {
                    if !going {
                        self.close_file(file)?;
                    } else if self.files.waits(file) {
                        let both = epoll::EventFlags::IN | epoll::EventFlags::OUT;
                        self.watch_file(file, Some(both));
                    }
                }
            }
            self.sending = sending;
        }
        Ok(())
    }

    fn after(&mut self, client: u16, sent: Sent) {
        let flags = match sent {
            Sent::All => epoll::EventFlags::IN,
            Sent::Waiting => epoll::EventFlags::IN | epoll::EventFlags::OUT,
            Sent::Gone => {
                self.drop_client(client);
                return;
            }
            Sent::Full => {
                let id = self.channels.get(&client).map_or(0, |channel| channel.id);
                self.options.notices.disconnected(id);
                self.drop_client(client);
                return;
            }
        };
        if let Some(channel) = self.channels.get_mut(&client) {
            if std::mem::replace(&mut channel.watched, flags) != flags {
                let data = epoll::EventData::new_u64(CHANNEL | u64::from(client));
                let _ = epoll::modify(&self.epoll, &channel.socket, data, flags);
            }
        }
    }

    fn drop_client(&mut self, client: u16) {
        if let Some(channel) = self.channels.remove(&client) {
            let _ = epoll::delete(&self.epoll, &channel.socket);
        }
        self.clients.disconnect(client);
    }

    fn drop_gone(&mut self) -> Result<(), EmulatorError> {
        let address = &self.options.address;
        let channels = self.channels.iter();
        let gone = channels.filter(|(_, channel)| !address.is_alive(channel.id));
        let gone: Vec<u16> = gone.map(|(&client, _)| client).collect();
        for client in gone {
            self.drop_client(client);
        }
        self.deliver()
    }

    /// Name of the node that programs are attached to which name none.
    pub fn default_host(&self) -> &str {
        self.clients.default_name()
    }
}

fn watch(epoll: &OwnedFd, socket: &OwnedFd, token: u64) -> Result<(), EmulatorError> {
    let data = epoll::EventData::new_u64(token);
    epoll::add(epoll, socket, data, epoll::EventFlags::IN)
        .map_err(EmulatorError::socket("waiting for sockets"))
}
