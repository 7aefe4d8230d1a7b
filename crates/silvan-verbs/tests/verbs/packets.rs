//! RC where single packets are lost. Oracles: closed forms, a model that sends packet by packet, and memory.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use silvan_core::{Span, Time};
use silvan_verbs::abi::values::{QpState, QpType, SendOpcode, Status};
use silvan_verbs::{DeviceId, MessageKind};

use crate::wire::Wire;
use crate::world::*;

const PACKET: Span = Span::from_ps(400_000);
/// Payload of a packet, MTU code 1.
const MTU: u32 = 256;
const ACKNOWLEDGE_TIMEOUT: Span = Span::from_ps(4_096_000 << 5);
const RETRIES: u8 = 3;

fn connected(loses: impl FnMut(DeviceId, u64) -> bool + 'static) -> (World, Link) {
    let mut world = World::new(2);
    let tuning = Tuning {
        timeout: 5,
        retries: RETRIES,
        ..Tuning::default()
    };
    let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
    let mut loses = loses;
    let loses =
        Box::new(move |number, message: &silvan_verbs::Message| loses(message.from, number));
    world.wire = Some(Wire::new(PACKET, loses));
    (world, link)
}

fn write(link: &Link, wr_id: u64, packets: u32) -> Post {
    let from = vec![sge(link.a_region, BASE, packets * MTU)];
    Post::new(wr_id, SendOpcode::Write, from).to(BASE, link.b_region.key)
}

/// Completions with their times.
fn completions(world: &mut World, pair: Pair) -> Vec<(u64, u32, Time)> {
    let mut all = Vec::new();
    while world.step(Time::MAX) {
        let done = pair.poll(world);
        all.extend(
            done.iter()
                .map(|entry| (entry.wr_id, entry.status, world.now)),
        );
    }
    all
}

/// Closed form: the packet behind the gap arrives, its NAK returns, and the rest follows the packet under way then.
#[test]
fn a_write_goes_on_where_it_broke_off() {
    const PACKETS: u64 = 100;
    let (packet, latency) = (PACKET.as_ps(), LATENCY.as_ps());
    for lost in [0, 1, 40, 97, 98] {
        let a = DeviceId(0);
        let (mut world, link) = connected(move |from, number| from == a && number == lost);
        let data: Vec<u8> = (0..PACKETS as u32 * MTU).map(|at| (at / 7) as u8).collect();
        world.write(link.a.process.id, BASE, &data);
        link.a
            .send(&mut world, &[write(&link, 1, PACKETS as u32)])
            .unwrap();
        let done = completions(&mut world, link.a);
        // The NAK takes a packet, too.
        let nak = (lost + 2) * packet + latency + packet + latency;
        let started = nak.div_ceil(packet).min(PACKETS);
        let resumes = nak.max(started * packet);
        let arrived = resumes + (PACKETS - lost) * packet + latency;
        let at = Time::from_ps(arrived + packet + latency);
        assert_eq!(done, [(1, Status::Success.number(), at)], "packet {lost}");
        let sent = world.wire.as_ref().unwrap().sent(a);
        assert_eq!(sent, started + PACKETS - lost);
        let target = link.b.process.id;
        assert_eq!(world.read(target, BASE, data.len() as u64).unwrap(), data);
    }
}

/// Closed form: nothing follows the last packet, and the timeout since its departure repeats the whole request.
#[test]
fn a_lost_last_packet_waits_for_the_timeout() {
    let a = DeviceId(0);
    let (mut world, link) = connected(move |from, number| from == a && number == 9);
    link.a.send(&mut world, &[write(&link, 1, 10)]).unwrap();
    let done = completions(&mut world, link.a);
    let twenty = Span::from_ps(20 * PACKET.as_ps());
    let at = Time::ZERO + twenty + ACKNOWLEDGE_TIMEOUT + LATENCY + PACKET + LATENCY;
    assert_eq!(done, [(1, Status::Success.number(), at)]);
}

/// Closed form: the requester asks for the packets behind the gap alone.
#[test]
fn a_read_asks_for_the_rest() {
    const PACKETS: u32 = 50;
    for lost in [0, 20, 48] {
        let b = DeviceId(1);
        let (mut world, link) = connected(move |from, number| from == b && number == lost);
        let data: Vec<u8> = (0..PACKETS * MTU).map(|at| (at / 5) as u8).collect();
        world.write(link.b.process.id, BASE, &data);
        let into = vec![sge(link.a_region, BASE, PACKETS * MTU)];
        let post = Post::new(1, SendOpcode::Read, into).to(BASE, link.b_region.key);
        link.a.send(&mut world, &[post]).unwrap();
        let done = completions(&mut world, link.a);
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].1, Status::Success.number());
        let responses = world.injected.iter();
        let responses = responses.filter(|(_, message)| message.kind == MessageKind::Response);
        let sizes: Vec<u64> = responses
            .map(|(_, message)| message.payload_bytes)
            .collect();
        let rest = u64::from(PACKETS * MTU) - lost * u64::from(MTU);
        assert_eq!(sizes, [u64::from(PACKETS * MTU), rest]);
        let own = link.a.process.id;
        assert_eq!(world.read(own, BASE, data.len() as u64).unwrap(), data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Oracle: memory, and an end. Every request completes, with the data or after its last retry.
    #[test]
    fn requests_of_all_kinds_end_where_packets_are_lost(
        posts in prop::collection::vec((0usize..3, 1u32..60), 1..17),
        reads in 1u8..=16,
        seed: u64,
        chance in 0u64..100,
    ) {
        let mut world = World::new(2);
        let tuning = Tuning { timeout: 5, retries: RETRIES, reads, ..Tuning::default() };
        let link = link(&mut world, QpType::Rc, Sizes::default(), tuning);
        let mut loses = drawn(seed, chance);
        let loses = move |number, message: &silvan_verbs::Message| loses(message.from, number);
        world.wire = Some(Wire::new(PACKET, Box::new(loses)));
        let data: Vec<u8> = (0..SIZE / 2).map(|at| (at / 3) as u8).collect();
        world.write(link.b.process.id, BASE, &data);
        let (near, key) = (BASE + SIZE / 2, link.b_region.key);
        let sends: Vec<Post> = (0..).zip(&posts).map(|(id, &(kind, packets))| {
            let length = packets * MTU;
            let opcode = [SendOpcode::Read, SendOpcode::Write, SendOpcode::FetchAndAdd][kind];
            match opcode {
                SendOpcode::FetchAndAdd => {
                    let mut post = Post::new(id, opcode, vec![sge(link.a_region, BASE, 8)]);
                    post.operands = (1, 0);
                    post.to(BASE + SIZE - 8, key)
                }
                SendOpcode::Write => {
                    let from = vec![sge(link.a_region, BASE + 8, length)];
                    Post::new(id, opcode, from).to(BASE + SIZE / 2, key)
                }
                _ => Post::new(id, opcode, vec![sge(link.a_region, near, length)]).to(BASE, key),
            }
        }).collect();
        link.a.send(&mut world, &sends).unwrap();
        let done = completions(&mut world, link.a);
        prop_assert_eq!(done.len(), posts.len());
        let succeeded = done.iter().take_while(|entry| entry.1 == Status::Success.number());
        let succeeded = succeeded.count();
        if let Some(failed) = done.get(succeeded) {
            prop_assert_eq!(failed.1, Status::RetryExceeded.number());
        }
        let of = |kind| move |post: &&(usize, u32)| post.0 == kind;
        let longest = posts[..succeeded].iter().filter(of(0)).map(|post| post.1 * MTU).max();
        let length = u64::from(longest.unwrap_or(0));
        let read = world.read(link.a.process.id, near, length).unwrap();
        prop_assert_eq!(&read[..], &data[..length as usize]);
        let added = world.read(link.b.process.id, BASE + SIZE - 8, 8).unwrap();
        let added = u64::from_ne_bytes(added.try_into().unwrap());
        let (least, most) = (posts[..succeeded].iter(), posts.iter());
        let atomics = least.filter(of(2)).count() as u64..=most.filter(of(2)).count() as u64;
        prop_assert!(atomics.contains(&added), "{} of {:?}", added, atomics);
    }
}

/// Closed form: the path MTU of the responder is another one, so requests of several packets are invalid.
#[test]
fn ends_of_different_mtu_exchange_single_packets_alone() {
    for (own, peer, status) in [
        (1, 5, Status::RemoteInvalidRequest),
        (5, 1, Status::RemoteInvalidRequest),
    ] {
        for (length, expected) in [(200, Status::Success), (300, status)] {
            let mut world = World::new(2);
            let (first, second) = (world.process(1), world.process(2));
            let a = first.pair(&mut world, QpType::Rc, Sizes::default());
            let b = second.pair(&mut world, QpType::Rc, Sizes::default());
            let from = first.reg_mr(&mut world, a.pd, BASE, SIZE);
            let to = second.reg_mr(&mut world, b.pd, BASE, SIZE);
            let tuning = |mtu| Tuning {
                mtu,
                ..Tuning::default()
            };
            a.bring_to(&mut world, QpState::Rts, (2, b.number), tuning(own));
            b.bring_to(&mut world, QpState::Rts, (1, a.number), tuning(peer));
            let post = Post::new(1, SendOpcode::Write, vec![sge(from, BASE, length)]);
            a.send(&mut world, &[post.to(BASE, to.key)]).unwrap();
            world.run();
            let done = a.poll(&mut world);
            assert_eq!(done.len(), 1);
            assert_eq!(done[0].status, expected.number(), "{length} bytes");
        }
    }
}

/// Go-back-N of IBA 9.7.5, packet by packet: writes from one end, and acknowledgements.
struct Model {
    /// First sequence number of each write, and the end.
    starts: Vec<u64>,
    next: u64,
    acknowledged: u64,
    retries: u8,
    progress: u64,
    /// Departure of the last packet of each write, if it has left since the sender went back.
    departed: Vec<Option<u64>>,
    expected: u64,
    has_refused: bool,
    answers: VecDeque<Answer>,
    busy: [bool; 2],
    sent: [u64; 2],
    calendar: BTreeMap<(u64, u64), Step>,
    entries: u64,
    done: Vec<(u64, u32, Time)>,
}

#[derive(Clone, Copy)]
enum Answer {
    Acknowledge(u64),
    Refuse(u64),
}

#[derive(Clone, Copy)]
enum Step {
    Left(u64),
    Arrives(u64),
    AnswerLeft(Answer),
    Answered(Answer),
}

impl Model {
    fn new(sizes: &[u32]) -> Self {
        let mut starts = vec![0];
        for &size in sizes {
            starts.push(starts[starts.len() - 1] + u64::from(size));
        }
        Self {
            starts,
            next: 0,
            acknowledged: 0,
            retries: RETRIES,
            progress: 0,
            departed: vec![None; sizes.len()],
            expected: 0,
            has_refused: false,
            answers: VecDeque::new(),
            busy: [false; 2],
            sent: [0; 2],
            calendar: BTreeMap::new(),
            entries: 0,
            done: Vec::new(),
        }
    }

    fn write_of(&self, number: u64) -> usize {
        self.starts.partition_point(|&start| start <= number) - 1
    }

    fn is_last(&self, number: u64) -> bool {
        self.starts.binary_search(&(number + 1)).is_ok()
    }

    fn end(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    fn push(&mut self, at: u64, step: Step) {
        self.entries += 1;
        self.calendar.insert((at, self.entries), step);
    }

    fn start(&mut self, now: u64) {
        let left = now + PACKET.as_ps();
        if !self.busy[0] && self.next < self.end() {
            self.busy[0] = true;
            self.push(left, Step::Left(self.next));
            self.next += 1;
        }
        if !self.busy[1]
            && let Some(answer) = self.answers.pop_front()
        {
            self.busy[1] = true;
            self.push(left, Step::AnswerLeft(answer));
        }
    }

    fn due(&self) -> Option<u64> {
        let oldest = self.write_of(self.acknowledged);
        let departed = (*self.departed.get(oldest)?)?;
        Some(departed.max(self.progress) + ACKNOWLEDGE_TIMEOUT.as_ps())
    }

    /// Returns false if the last retry has failed.
    fn go_back(&mut self, now: u64) -> bool {
        if self.retries == 0 {
            let (first, end) = (self.write_of(self.acknowledged), self.departed.len());
            for write in first..end {
                let status = if write == first {
                    Status::RetryExceeded
                } else {
                    Status::Flushed
                };
                self.done
                    .push((write as u64, status.number(), Time::from_ps(now)));
            }
            return false;
        }
        self.retries -= 1;
        self.next = self.acknowledged;
        self.departed.fill(None);
        true
    }

    fn acknowledge(&mut self, now: u64, before: u64) {
        if before <= self.acknowledged {
            return;
        }
        for write in self.write_of(self.acknowledged)..self.departed.len() {
            if self.starts[write + 1] <= before {
                self.done
                    .push((write as u64, Status::Success.number(), Time::from_ps(now)));
            }
        }
        self.acknowledged = before;
        self.retries = RETRIES;
        self.progress = now;
    }

    fn run(&mut self, mut loses: impl FnMut(DeviceId, u64) -> bool) {
        let mut lose = |sent: &mut [u64; 2], side: usize| {
            sent[side] += 1;
            loses(DeviceId(side as u32), sent[side] - 1)
        };
        self.start(0);
        loop {
            let at = self.calendar.keys().next().map(|key| key.0);
            let Some(now) = [at, self.due()].into_iter().flatten().min() else {
                return;
            };
            let arrives = now + LATENCY.as_ps();
            match at
                .filter(|at| *at == now)
                .and_then(|_| self.calendar.pop_first())
            {
                None => {
                    if !self.go_back(now) {
                        return;
                    }
                }
                Some((_, Step::Left(number))) => {
                    self.busy[0] = false;
                    let write = self.write_of(number);
                    if self.is_last(number) && number < self.next {
                        self.departed[write] = Some(now);
                    }
                    if !lose(&mut self.sent, 0) {
                        self.push(arrives, Step::Arrives(number));
                    }
                }
                Some((_, Step::Arrives(number))) => {
                    if number > self.expected {
                        if !std::mem::replace(&mut self.has_refused, true) {
                            self.answers.push_back(Answer::Refuse(self.expected));
                        }
                    } else {
                        if number == self.expected {
                            self.expected += 1;
                            self.has_refused = false;
                        }
                        if self.is_last(number) {
                            self.answers.push_back(Answer::Acknowledge(self.expected));
                        }
                    }
                }
                Some((_, Step::AnswerLeft(answer))) => {
                    self.busy[1] = false;
                    if !lose(&mut self.sent, 1) {
                        self.push(arrives, Step::Answered(answer));
                    }
                }
                Some((_, Step::Answered(Answer::Acknowledge(before)))) => {
                    self.acknowledge(now, before);
                }
                Some((_, Step::Answered(Answer::Refuse(expected)))) => {
                    if expected >= self.acknowledged {
                        self.acknowledge(now, expected);
                        if !self.go_back(now) {
                            return;
                        }
                    }
                }
            }
            self.start(now);
        }
    }
}

/// Loses packets by a hash of seed, side and number.
pub fn drawn(seed: u64, chance: u64) -> impl FnMut(DeviceId, u64) -> bool + Clone {
    move |from, number| {
        let mut state =
            seed ^ (number << 1 | u64::from(from.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 31;
        state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
        state % 1000 < chance
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Oracle: the model. Every completion has its status and its picosecond.
    #[test]
    fn writes_complete_when_the_model_completes_them(
        sizes in prop::collection::vec(1u32..40, 1..12),
        seed: u64,
        chance in 0u64..150,
    ) {
        let loses = drawn(seed, chance);
        let (mut world, link) = connected(loses.clone());
        let posts: Vec<Post> = (0..).zip(&sizes).map(|(id, &size)| write(&link, id, size)).collect();
        link.a.send(&mut world, &posts).unwrap();
        let mut model = Model::new(&sizes);
        model.run(loses);
        prop_assert_eq!(completions(&mut world, link.a), model.done);
    }
}
