//! Many requests in flight, with timeouts, retries and backoff.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::fmt;

use silvan_core::{Lid, MonotonicTime, Rate, Span};
use silvan_mad::congestion::{CongestionAttribute, CongestionControl, CongestionLog};
use silvan_mad::smp::{DirectedRoute, Smp, SmpAttribute, SmpRoute};
use silvan_mad::{Body, Class, LOG_BYTE, MAD_LEN, Mad, Method, Packet, Status};

use crate::transport::{Incoming, Outgoing, Transport, TransportError};

const DATA_AT: usize = 64;
/// Part of its timeout that a returned request waits.
const PAUSE_SHARE: u64 = 8;
/// Part of its timeout beyond the system's after which a request counts as lost.
const GRACE_SHARE: u64 = 4;

/// Limits on requests in flight, timeouts and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight, at most.
    pub in_flight: usize,
    /// Requests in flight to one node, at most.
    pub per_node: usize,
    /// Time to wait for the first answer; doubled at every retry.
    pub timeout: Span,
    /// Number of retries of an unanswered request.
    pub retries: u32,
}

impl Limits {
    /// Limits that suit switches and adapters with a processor of their own.
    pub const DEFAULT: Self = Self {
        in_flight: 64,
        per_node: 4,
        timeout: Span::from_ms(100),
        retries: 3,
    };
}

/// Bytes on a link for a datagram, with 34 of LRH, BTH, DETH, ICRC and VCRC (IBA volume 1, chapter 7).
pub const BYTES_ON_LINK: u64 = MAD_LEN as u64 + 34;

/// Rate of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As many requests as are answered.
    #[default]
    Unlimited,
    /// One request per span on average, in bursts of at most those [in flight](Limits::in_flight).
    Every(Span),
}

impl Pace {
    /// The pace at which requests, and answers the other way, take at most this part of a link's data rate.
    pub fn of_link(rate: Rate, part: f64) -> Self {
        let bits = BYTES_ON_LINK * 8;
        let allowed = rate.bits_per_sec() as f64 * part;
        Self::Every(Span::from_ps((bits as f64 * 1e12 / allowed).ceil() as u64))
    }
}

/// A request to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// A small number that represents the node asked, for [`Limits::per_node`].
    pub node: u32,
    /// Destination LID.
    pub destination: Lid,
    /// The datagram; its TransactionID is set when it is sent.
    pub mad: [u8; MAD_LEN],
}

impl Query {
    /// A request to a node with a LID.
    pub fn new(node: u32, destination: Lid, method: Method, body: Body, modifier: u32) -> Self {
        let mut mad = Mad::request(method, body);
        mad.modifier = modifier;
        Self {
            node,
            destination,
            mad: mad.emit(),
        }
    }

    /// A Get of subnet management to a node with a LID.
    pub fn subnet_get(
        node: u32,
        destination: Lid,
        attribute: impl Into<SmpAttribute>,
        modifier: u32,
    ) -> Self {
        let body = Body::Smp(Smp {
            m_key: 0,
            route: SmpRoute::Lid,
            attribute: attribute.into(),
        });
        Self::new(node, destination, Method::GET, body, modifier)
    }

    /// A request of congestion control with a CC_Key, which is 0 if there is none.
    pub fn congestion(
        node: u32,
        destination: Lid,
        method: Method,
        cc_key: u64,
        attribute: impl Into<CongestionAttribute>,
        modifier: u32,
    ) -> Self {
        let body = Body::CongestionControl(CongestionControl {
            cc_key,
            attribute: attribute.into(),
        });
        Self::new(node, destination, method, body, modifier)
    }

    /// A Get by a directed route; `None` if it has more hops than a datagram can hold.
    pub fn directed(
        node: u32,
        path: &[u8],
        attribute: impl Into<SmpAttribute>,
        modifier: u32,
    ) -> Option<Self> {
        let body = Body::Smp(Smp {
            m_key: 0,
            route: SmpRoute::Directed(DirectedRoute::request(path)?),
            attribute: attribute.into(),
        });
        let destination = DirectedRoute::PERMISSIVE;
        Some(Self::new(node, destination, Method::GET, body, modifier))
    }
}

/// An answer that belongs to its request.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Arrival time.
    pub at: MonotonicTime,
    /// Send time of the answered request.
    pub sent: MonotonicTime,
    mad: [u8; MAD_LEN],
}

impl Answer {
    /// Makes an answer of these bytes.
    pub fn new(sent: MonotonicTime, at: MonotonicTime, mad: [u8; MAD_LEN]) -> Self {
        Self { at, sent, mad }
    }

    /// The attribute's bytes.
    pub fn data<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|index| self.mad[DATA_AT + index])
    }

    /// The log, if that is what was asked for: it stands where no other attribute does.
    pub fn congestion_log(&self) -> CongestionLog {
        CongestionLog::parse(&std::array::from_fn(|index| self.mad[LOG_BYTE + index]))
    }
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No transmission was answered.
    Unanswered,
    /// Refused with this status.
    Refused(Status),
    /// The LID belongs to another node by now.
    WrongNode,
    /// The node takes no settings with this CC_Key.
    WrongKey,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("it does not answer"),
            Self::Refused(status) => write!(f, "it refuses: {status}"),
            Self::WrongNode => f.write_str("its LID belongs to another node"),
            Self::WrongKey => f.write_str(
                "the CC_Key is wrong: the switch has another one than marking.cc-key-file says",
            ),
        }
    }
}

/// Result of a request.
pub type RequestResult = Result<Answer, Failure>;

/// Datagrams sent and received since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests sent, retries included.
    pub sent: u64,
    /// Answers taken.
    pub answered: u64,
    /// Requests that were not answered in time.
    pub timeouts: u64,
    /// Answers with a status other than 0.
    pub refused: u64,
    /// Datagrams that answer nothing that was asked: late, doubled or forged.
    pub unexpected: u64,
}

struct InFlight {
    query: usize,
    sent: MonotonicTime,
    timeout: Span,
}

#[derive(Default)]
struct NodeQueue {
    waiting: VecDeque<usize>,
    in_flight: usize,
    queued: bool,
    misses: usize,
    is_silent: bool,
}

/// Queries nodes by management datagrams.
pub struct Client<T> {
    transport: T,
    read: MonotonicTime,
    jumps: u64,
    limits: Limits,
    pace: Pace,
    turn: MonotonicTime,
    sequence: u32,
    statistics: Statistics,
    silent: Option<BTreeSet<Lid>>,
}

struct Round<'a> {
    queries: &'a [Query],
    attempts: Vec<u32>,
    nodes: Vec<NodeQueue>,
    turns: VecDeque<usize>,
    in_flight: HashMap<u32, InFlight>,
    deadlines: BinaryHeap<Reverse<(MonotonicTime, u32)>>,
    pauses: BinaryHeap<Reverse<(MonotonicTime, usize)>>,
    outcomes: Vec<Option<RequestResult>>,
    open: usize,
}

impl<'a> Round<'a> {
    fn new(queries: &'a [Query]) -> Self {
        let mut round = Self {
            queries,
            attempts: vec![0; queries.len()],
            nodes: Vec::new(),
            turns: VecDeque::new(),
            in_flight: HashMap::new(),
            deadlines: BinaryHeap::new(),
            pauses: BinaryHeap::new(),
            outcomes: vec![None; queries.len()],
            open: queries.len(),
        };
        for query in 0..queries.len() {
            round.enqueue(query, false);
        }
        round
    }

    fn is_late(&self, now: MonotonicTime) -> bool {
        let first = self.deadlines.peek();
        first.is_some_and(|Reverse((deadline, _))| *deadline <= now)
    }

    fn enqueue(&mut self, query: usize, first: bool) {
        let node = self.queries[query].node as usize;
        if self.nodes.len() <= node {
            self.nodes.resize_with(node + 1, NodeQueue::default);
        }
        match first {
            true => self.nodes[node].waiting.push_front(query),
            false => self.nodes[node].waiting.push_back(query),
        }
        self.give_turn(node);
    }

    fn give_turn(&mut self, node: usize) {
        if !std::mem::replace(&mut self.nodes[node].queued, true) {
            self.turns.push_back(node);
        }
    }

    fn next(&mut self, limits: &Limits) -> Option<usize> {
        if self.in_flight.len() >= limits.in_flight {
            return None;
        }
        while let Some(location) = self.turns.pop_front() {
            let node = &mut self.nodes[location];
            node.queued = false;
            if node.in_flight >= limits.per_node {
                continue;
            }
            if let Some(query) = node.waiting.pop_front() {
                node.in_flight += 1;
                self.give_turn(location);
                return Some(query);
            }
        }
        None
    }

    fn landed(&mut self, query: usize) {
        let node = self.queries[query].node as usize;
        self.nodes[node].in_flight -= 1;
        self.give_turn(node);
    }

    fn expect_nothing(&mut self, silent: &BTreeSet<Lid>) {
        for query in self.queries {
            self.nodes[query.node as usize].is_silent |= silent.contains(&query.destination);
        }
    }

    fn remember(&self, silent: &mut BTreeSet<Lid>) {
        let is_missing = |outcome: &Option<RequestResult>| {
            matches!(outcome, None | Some(Err(Failure::Unanswered)))
        };
        let asked = self.queries.iter().zip(&self.outcomes);
        let routed = asked.filter(|(query, _)| query.destination != DirectedRoute::PERMISSIVE);
        let (missing, answered): (Vec<_>, Vec<_>) =
            routed.partition(|(_, outcome)| is_missing(outcome));
        silent.extend(missing.iter().map(|(query, _)| query.destination));
        for (query, _) in answered {
            silent.remove(&query.destination);
        }
    }

    fn finish(&mut self, query: usize, outcome: RequestResult) {
        self.outcomes[query] = Some(outcome);
        self.open -= 1;
    }

    fn give_up(&mut self, query: usize, most: usize) {
        self.finish(query, Err(Failure::Unanswered));
        let location = self.queries[query].node as usize;
        self.nodes[location].misses += 1;
        if self.nodes[location].misses >= most {
            for query in std::mem::take(&mut self.nodes[location].waiting) {
                self.finish(query, Err(Failure::Unanswered));
            }
        }
    }
}

impl<T: Transport> Client<T> {
    /// A client on a transport.
    pub fn new(transport: T, limits: Limits) -> Self {
        Self {
            transport,
            read: MonotonicTime::ZERO,
            jumps: 0,
            limits,
            pace: Pace::Unlimited,
            turn: MonotonicTime::ZERO,
            sequence: 0,
            statistics: Statistics::default(),
            silent: None,
        }
    }

    /// Replaces the destinations that get no retries until they answer; each [`ask`](Self::ask) adds silent ones.
    pub fn remember_silent(&mut self, silent: BTreeSet<Lid>) {
        self.silent = Some(silent);
    }

    /// Sets how many requests may be sent per second from now on.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
        self.turn = MonotonicTime::ZERO;
    }

    /// Generic cell rate algorithm (ITU-T I.371).
    fn held_until(&mut self) -> Option<MonotonicTime> {
        let Pace::Every(span) = self.pace else {
            return None;
        };
        let now = self.now();
        // A clock that went back delays nothing.
        let ahead = Span::from_ps(span.as_ps().saturating_mul(self.limits.in_flight as u64));
        if self.turn > now.saturating_add(ahead) {
            self.turn = now.saturating_add(ahead);
        }
        let tolerated = ahead.saturating_sub(span);
        let excess = self.turn.checked_since(now)?.saturating_sub(tolerated);
        (!excess.is_zero()).then(|| now.saturating_add(excess))
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// The time.
    pub fn now(&mut self) -> MonotonicTime {
        let now = self.transport.now();
        self.jumps += u64::from(now < self.read);
        self.read = now;
        now
    }

    /// Returns the number of backward jumps of the clock so far. Deadlines from before the last jump are invalid.
    pub fn clock_jumps(&self) -> u64 {
        self.jumps
    }

    /// Counts since the start.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Sends one request. Errors: [`TransportError::Lost`].
    pub fn query_one(&mut self, query: Query) -> Result<RequestResult, TransportError> {
        let mut outcomes = self.ask(&[query])?;
        Ok(outcomes.pop().unwrap_or(Err(Failure::Unanswered)))
    }

    /// Sends requests, many at once, and returns their results in order, or [`TransportError::Lost`].
    ///
    /// Retries double the timeout; nodes take turns, so that a silent one delays no other.
    pub fn ask(&mut self, queries: &[Query]) -> Result<Vec<RequestResult>, TransportError> {
        let mut round = Round::new(queries);
        if let Some(silent) = &self.silent {
            round.expect_nothing(silent);
        }
        let mut jumps = self.jumps;
        while round.open > 0 {
            let now = self.now();
            // Deadlines from before the clock went back may be decades away.
            let reached = match std::mem::replace(&mut jumps, self.jumps) == self.jumps {
                true => now,
                false => MonotonicTime::MAX,
            };
            if round.is_late(reached) {
                self.take_arrived(&mut round)?;
            }
            self.expire(&mut round, reached);
            while let Some(Reverse((at, query))) = round.pauses.peek().copied() {
                if at > reached {
                    break;
                }
                round.pauses.pop();
                round.enqueue(query, true);
            }
            let mut held = self.held_until();
            while held.is_none() {
                let Some(query) = round.next(&self.limits) else {
                    break;
                };
                self.send(&mut round, query)?;
                held = self.held_until();
            }
            let deadline = round.deadlines.peek().map(|Reverse((at, _))| *at);
            let pause = round.pauses.peek().map(|Reverse((at, _))| *at);
            let Some(until) = deadline.into_iter().chain(pause).chain(held).min() else {
                continue;
            };
            // Read again: the clock may have gone back since, and then the wait would be as long.
            let now = self.now();
            if jumps != self.jumps {
                continue;
            }
            let limit = until.checked_since(now).unwrap_or(Span::ZERO);
            if let Some(incoming) = self.transport.receive(limit)? {
                self.take(&mut round, &incoming);
            }
        }
        if let Some(silent) = &mut self.silent {
            round.remember(silent);
        }
        let outcomes = round.outcomes.into_iter();
        Ok(outcomes
            .map(|outcome| outcome.unwrap_or(Err(Failure::Unanswered)))
            .collect())
    }

    /// Reads answers that came while the process was stopped, at most as many as requests are in flight.
    fn take_arrived(&mut self, round: &mut Round<'_>) -> Result<(), TransportError> {
        for _ in 0..round.in_flight.len() {
            let Some(incoming) = self.transport.receive(Span::ZERO)? else {
                break;
            };
            self.take(round, &incoming);
        }
        Ok(())
    }

    fn send(&mut self, round: &mut Round<'_>, query: usize) -> Result<(), TransportError> {
        self.sequence = self.sequence.wrapping_add(1);
        let id = self.sequence;
        let asked = &round.queries[query];
        let mut packet = Packet::new(asked.mad);
        packet.set_transaction_id(u64::from(id));
        let doubled = 1 << round.attempts[query].min(16);
        let timeout = Span::from_ps(self.limits.timeout.as_ps().saturating_mul(doubled));
        let sent = self.now();
        self.transport.send(Outgoing {
            destination: asked.destination,
            mad: packet.bytes(),
            timeout,
        })?;
        self.statistics.sent += 1;
        if let Pace::Every(span) = self.pace {
            self.turn = self.turn.max(sent).saturating_add(span);
        }
        let grace = Span::from_ps(timeout.as_ps() / GRACE_SHARE);
        let deadline = sent.saturating_add(timeout).saturating_add(grace);
        round.deadlines.push(Reverse((deadline, id)));
        round.in_flight.insert(
            id,
            InFlight {
                query,
                sent,
                timeout,
            },
        );
        Ok(())
    }

    fn expire(&mut self, round: &mut Round<'_>, now: MonotonicTime) {
        while let Some(Reverse((deadline, id))) = round.deadlines.peek().copied() {
            let is_open = round.in_flight.contains_key(&id);
            if is_open && deadline > now {
                return;
            }
            round.deadlines.pop();
            if let Some(lost) = round.in_flight.remove(&id) {
                self.missed(round, &lost);
            }
        }
    }

    fn missed(&mut self, round: &mut Round<'_>, lost: &InFlight) {
        self.statistics.timeouts += 1;
        round.landed(lost.query);
        let node = &round.nodes[round.queries[lost.query].node as usize];
        if node.is_silent || round.attempts[lost.query] >= self.limits.retries {
            round.give_up(lost.query, self.limits.per_node);
            return;
        }
        round.attempts[lost.query] += 1;
        // A request that came back at once pauses; a request that has waited already does not.
        let pause = Span::from_ps(lost.timeout.as_ps() / PAUSE_SHARE);
        let at = lost.sent.min(self.read).saturating_add(pause);
        round.pauses.push(Reverse((at, lost.query)));
    }

    fn take(&mut self, round: &mut Round<'_>, incoming: &Incoming) {
        let packet = Packet::new(&incoming.mad);
        // The system writes its own number into the high half.
        let id = packet.transaction_id() as u32;
        let known = round.in_flight.get(&id);
        let fits = known.is_some_and(|known| {
            let asked = &round.queries[known.query];
            belongs(&packet, incoming, asked)
        });
        let known = fits.then(|| round.in_flight.remove(&id)).flatten();
        let Some(known) = known else {
            self.statistics.unexpected += 1;
            return;
        };
        if incoming.unanswered || packet.status() == Status::BUSY {
            self.missed(round, &known);
            return;
        }
        self.statistics.answered += 1;
        round.landed(known.query);
        let node = &mut round.nodes[round.queries[known.query].node as usize];
        node.misses = 0;
        node.is_silent = false;
        let status = packet.status();
        let outcome = if status == Status::OK {
            Ok(Answer::new(known.sent, self.now(), incoming.mad))
        } else {
            self.statistics.refused += 1;
            Err(Failure::Refused(status))
        };
        round.finish(known.query, outcome);
    }
}

fn belongs(packet: &Packet<&[u8; MAD_LEN]>, incoming: &Incoming, asked: &Query) -> bool {
    let request = Packet::new(&asked.mad);
    let same = packet.class() == request.class()
        && packet.attribute_id() == request.attribute_id()
        && packet.attribute_modifier() == request.attribute_modifier();
    if incoming.unanswered {
        return same;
    }
    let from_there =
        packet.class() == Class::SUBNET_DIRECTED || incoming.source == asked.destination;
    same && from_there
        && packet.base_version() == 1
        && packet.class_version() == request.class_version()
        && packet.method() == Method::GET_RESPONSE
}
