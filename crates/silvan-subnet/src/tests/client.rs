//! Requests and answers one by one.

use std::collections::{BTreeSet, VecDeque};

use silvan_core::{Lid, MonotonicTime, Rate, Span};
use silvan_mad::smp::NodeInfo;
use silvan_mad::{Packet, Status};

use crate::client::{Client, Failure, Limits, Pace, Query};
use crate::transport::{Incoming, Outgoing, Transport, TransportError};

/// Response to a request: arrivals after their times, possibly changed.
type Script = Box<dyn FnMut(usize, &Outgoing<'_>) -> Vec<(Span, Incoming)>>;

struct Scripted {
    now: MonotonicTime,
    script: Script,
    sent: Vec<(MonotonicTime, Lid)>,
    open: usize,
    most_open: usize,
    /// After how many requests this process is stopped, and for how long.
    stop: Option<(usize, Span)>,
    arrivals: VecDeque<(MonotonicTime, Incoming)>,
}

impl Scripted {
    fn new(script: impl FnMut(usize, &Outgoing<'_>) -> Vec<(Span, Incoming)> + 'static) -> Self {
        Self {
            now: MonotonicTime::ZERO,
            script: Box::new(script),
            sent: Vec::new(),
            open: 0,
            most_open: 0,
            stop: None,
            arrivals: VecDeque::new(),
        }
    }
}

impl Transport for Scripted {
    fn now(&mut self) -> MonotonicTime {
        self.now
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        let number = self.sent.len();
        self.sent.push((self.now, outgoing.destination));
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
        for (span, incoming) in (self.script)(number, &outgoing) {
            self.arrivals.push_back((self.now + span, incoming));
        }
        self.arrivals.make_contiguous().sort_by_key(|(at, _)| *at);
        if let Some((_, span)) = self
            .stop
            .take_if(|(requests, _)| *requests == self.sent.len())
        {
            self.now = self.now + span;
        }
        Ok(())
    }

    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
        let until = self.now + limit;
        match self.arrivals.front() {
            Some((at, _)) if *at <= until => {
                self.now = self.now.max(*at);
                // A request may be answered twice.
                self.open = self.open.saturating_sub(1);
                Ok(self.arrivals.pop_front().map(|(_, incoming)| incoming))
            }
            _ => {
                self.now = until;
                Ok(None)
            }
        }
    }

    fn pause(&mut self, span: Span) {
        self.now = self.now + span;
    }

    fn unix_time(&mut self) -> u64 {
        0
    }
}

fn answer(outgoing: &Outgoing<'_>) -> Incoming {
    let mut packet = Packet::new(*outgoing.mad);
    packet.answer(Status::OK);
    Incoming {
        source: outgoing.destination,
        unanswered: false,
        mad: packet.into_inner(),
    }
}

fn bounce(outgoing: &Outgoing<'_>) -> Incoming {
    Incoming {
        source: outgoing.destination,
        unanswered: true,
        mad: *outgoing.mad,
    }
}

const LIMITS: Limits = Limits {
    in_flight: 8,
    per_node: 3,
    timeout: Span::from_ms(100),
    retries: 3,
};

fn query(node: u32) -> Query {
    Query::subnet_get(node, Lid::new(10 + node as u16), NodeInfo::default(), 0)
}

fn ms(time: MonotonicTime) -> u64 {
    time.as_ns() / 1_000_000
}

/// Oracle: 100, 200, 400, 800 ms with a quarter more each before the next try.
#[test]
fn unanswered_requests_are_sent_again_ever_more_patiently() {
    let mut client = Client::new(Scripted::new(|_, _| Vec::new()), LIMITS);
    let outcome = client.query_one(query(0)).unwrap();
    assert_eq!(outcome.unwrap_err(), Failure::Unanswered);
    let sent: Vec<u64> = client
        .transport()
        .sent
        .iter()
        .map(|(at, _)| ms(*at))
        .collect();
    assert_eq!(sent, [0, 125, 375, 875]);
    assert_eq!(ms(client.now()), 1875);
    assert_eq!(client.statistics().timeouts, 4);
}

/// Oracle: all answers have come in time; no request is sent twice, and none is missed.
#[test]
fn answers_that_came_while_the_process_was_stopped_are_taken() {
    let script = |_, outgoing: &Outgoing<'_>| vec![(Span::from_ms(1), answer(outgoing))];
    let mut transport = Scripted::new(script);
    transport.stop = Some((8, Span::from_ms(5_000)));
    let mut client = Client::new(transport, LIMITS);
    let many: Vec<Query> = (0..50).map(|index| query(index % 7)).collect();
    assert!(client.ask(&many).unwrap().iter().all(Result::is_ok));
    assert_eq!(client.transport().sent.len(), many.len());
    assert_eq!(client.statistics().timeouts, 0);
    assert!(ms(client.now()) >= 5_000);
}

/// Oracle: a request that comes back at once is not sent again at once.
#[test]
fn bounced_requests_wait_before_they_are_sent_again() {
    let script = |_, outgoing: &Outgoing<'_>| vec![(Span::from_us(5), bounce(outgoing))];
    let mut client = Client::new(Scripted::new(script), LIMITS);
    assert!(client.query_one(query(0)).unwrap().is_err());
    let sent: Vec<u64> = client
        .transport()
        .sent
        .iter()
        .map(|(at, _)| ms(*at))
        .collect();
    assert_eq!(sent, [0, 12, 37, 87]);
}

/// Oracle: the limits.
#[test]
fn many_are_in_flight_but_never_too_many() {
    let script = |_, outgoing: &Outgoing<'_>| vec![(Span::from_ms(1), answer(outgoing))];
    let mut client = Client::new(Scripted::new(script), LIMITS);
    let one: Vec<Query> = (0..20).map(|_| query(0)).collect();
    assert!(client.ask(&one).unwrap().iter().all(Result::is_ok));
    assert_eq!(client.transport().most_open, 3);
    let many: Vec<Query> = (0..50).map(|index| query(index % 7)).collect();
    assert!(client.ask(&many).unwrap().iter().all(Result::is_ok));
    assert_eq!(client.transport().most_open, 8);
}

/// Oracle: a silent node costs the timeouts of one request, for any number of its requests, and no time of others.
#[test]
fn a_silent_node_costs_its_patience_once() {
    let script = |_, outgoing: &Outgoing<'_>| match outgoing.destination.as_u16() {
        10 => Vec::new(),
        _ => vec![(Span::from_us(10), answer(outgoing))],
    };
    let mut client = Client::new(Scripted::new(script), LIMITS);
    let queries: Vec<Query> = (0..200).map(|index| query(index % 2)).collect();
    let outcomes = client.ask(&queries).unwrap();
    for (index, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.is_ok(), index % 2 == 1);
    }
    assert!(ms(client.now()) <= 1875 + 10, "{}", client.now());
}

/// Oracle: the request. A datagram that differs from its answer in any way is dropped.
#[test]
fn what_does_not_belong_is_dropped() {
    type Change = fn(&mut Incoming);
    let changes: [Change; 8] = [
        |incoming| incoming.source = Lid::new(99),
        |incoming| incoming.mad[0] = 2,
        |incoming| incoming.mad[1] = 0x04,
        |incoming| incoming.mad[2] = 9,
        |incoming| incoming.mad[3] = 0x82,
        |incoming| incoming.mad[15] ^= 1,
        |incoming| incoming.mad[17] ^= 1,
        |incoming| incoming.mad[23] ^= 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let script = move |_, outgoing: &Outgoing<'_>| {
            let mut forged = answer(outgoing);
            change(&mut forged);
            forged.mad[64 + 19] = 1;
            // The forged one is faster than the real one, which then comes twice.
            let real = answer(outgoing);
            let us = Span::from_us;
            vec![(us(1), forged), (us(2), real), (us(3), real)]
        };
        let mut client = Client::new(Scripted::new(script), LIMITS);
        let taken = client.query_one(query(0)).unwrap().unwrap();
        let info = NodeInfo::parse(&taken.data());
        assert_eq!(info.node_guid.as_u64(), 0, "change {number}");
        assert_eq!(client.statistics().unexpected, 1);
    }
}

/// Oracle: the status.
#[test]
fn refusals_are_told_and_busy_nodes_asked_again() {
    let script = |number, outgoing: &Outgoing<'_>| {
        let mut packet = Packet::new(*outgoing.mad);
        packet.answer(match number {
            0 => Status::BUSY,
            _ => Status::INVALID_VALUE,
        });
        let mad = packet.into_inner();
        let source = outgoing.destination;
        let incoming = Incoming {
            source,
            unanswered: false,
            mad,
        };
        vec![(Span::from_us(1), incoming)]
    };
    let mut client = Client::new(Scripted::new(script), LIMITS);
    let failure = client.query_one(query(0)).unwrap().unwrap_err();
    assert_eq!(failure, Failure::Refused(Status::INVALID_VALUE));
    assert_eq!(client.transport().sent.len(), 2);
}

/// Oracle: the pace. As many requests as may be in flight follow each other at once, then one at each turn.
#[test]
fn requests_keep_their_pace() {
    let turn = Span::from_us(100);
    let script = |_, outgoing: &Outgoing<'_>| vec![(Span::from_us(1), answer(outgoing))];
    let mut client = Client::new(Scripted::new(script), LIMITS);
    client.set_pace(Pace::Every(turn));
    let queries: Vec<Query> = (0..40).map(query).collect();
    assert!(client.ask(&queries).unwrap().iter().all(Result::is_ok));
    let sent = &client.transport().sent;
    for (number, (at, _)) in (0_u64..).zip(sent) {
        let turns = number.saturating_sub(LIMITS.in_flight as u64 - 1);
        let due = MonotonicTime::ZERO + Span::from_ps(turn.as_ps() * turns);
        // The first ones go at once, as answers come.
        assert!(
            *at >= due && *at <= due + Span::from_us(2 * number),
            "{number}: {at:?}"
        );
    }
}

/// Oracle: 290 bytes, of which 1 % of 2 Gbit/s carries 8,620 per second.
#[test]
fn a_pace_is_a_part_of_a_link() {
    let rate = Rate::from_bits_per_sec(2_000_000_000).unwrap();
    assert_eq!(
        Pace::of_link(rate, 0.01),
        Pace::Every(Span::from_ns(116_000))
    );
}

/// Oracle: 1,875 ms for all retries as above, 125 ms for one request. The seventh is answered, so that the node gets
/// its retries again.
#[test]
fn destinations_remembered_as_silent_get_no_retries_until_they_answer() {
    let script = |number, outgoing: &Outgoing<'_>| match number {
        6 => vec![(Span::from_ms(1), answer(outgoing))],
        _ => Vec::new(),
    };
    let mut client = Client::new(Scripted::new(script), LIMITS);
    client.remember_silent(BTreeSet::new());
    let mut spent = Vec::new();
    for _ in 0..5 {
        let before = ms(client.now());
        let is_answered = client.query_one(query(0)).unwrap().is_ok();
        spent.push((ms(client.now()) - before, is_answered));
    }
    let wanted = [(1875, false), (125, false), (125, false), (1, true)];
    assert_eq!(spent[..4], wanted);
    assert_eq!(spent[4], (1875, false));
    client.remember_silent(BTreeSet::from([query(1).destination]));
    let before = ms(client.now());
    assert!(client.query_one(query(1)).unwrap().is_err());
    assert_eq!(ms(client.now()) - before, 125);
}
