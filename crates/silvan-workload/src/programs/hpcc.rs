//! The communication of the HPC Challenge benchmark (P. Luszczek et al., 2005; version 1.4), with `bench_lat_bw`.
//!
//! Keys give the computing time of the other tests:
//!
//! - PTRANS adds a matrix's transpose to another one, on a grid as square as possible.
//! - MPIRandomAccess: the largest collection of updates leaves at 1024. Here all ranks send at once, to drawn partners.
//! - MPIFFT transposes its vector by three all-to-alls.
//! - HPL factorizes a matrix dealt to the grid in blocks ([`hpl`]).

use std::sync::Arc;

use crate::traffic::rng::{Purpose, shuffle, stream};
use silvan_core::{HostId, Span, Time};

use crate::programs::collective;
use crate::programs::op::{Group, Op, Steps};
use crate::programs::plan::Placement;
use crate::programs::section::HpccSection;
use crate::programs::spec::{Helpers, JobSpec, Script};

mod hpl;

/// A benchmark run.
#[derive(Clone, Debug, PartialEq)]
pub struct Hpcc {
    /// The hosts, in their order.
    pub hosts: Vec<HostId>,
    /// Everything else.
    pub keys: HpccSection,
}

/// Bytes of a message of the latency tests.
pub const SMALL: u64 = 8;

/// Names of the tests, as the benchmark's labels.
pub const TESTS: [&str; 8] = [
    "ping-pong-latency",
    "ping-pong-bandwidth",
    "ring-latency",
    "ring-bandwidth",
    "ptrans",
    "random-access",
    "fft",
    "hpl",
];

/// Name of the job and of its traffic class.
pub const JOB: &str = "hpcc";

/// Iterations of a measurement, and measurements of which the shortest counts (`bench_lat_bw`).
pub const LATENCY_LOOPS: (u32, u32) = (5, 8);
/// Loops of the bandwidth tests.
pub const BANDWIDTH_LOOPS: (u32, u32) = (2, 3);

const LOOKAHEAD: u64 = 1024;

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// `after` is the previous client, which passes its turn on.
    PingPong {
        client: u32,
        server: u32,
        after: Option<u32>,
        latency: bool,
        index: u32,
    },
    /// One ring, natural or random. The original takes the better of blocking and non-blocking exchange.
    Ring {
        ring: u32,
        latency: bool,
        blocking: bool,
        index: u32,
    },
    Transpose,
    Access,
    Fft,
    Panel(u32),
}

impl Hpcc {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.hosts.len() as u32 * self.keys.ranks_per_host
    }

    /// The job, whose packets have this class.
    pub fn job(&self, seed: u64, class: u16) -> JobSpec {
        let phases: Arc<[Phase]> = self.phases().into();
        let ranks = (0..self.ranks()).map(|me| {
            let host = match self.keys.placement {
                Placement::Cyclic => self.hosts[me as usize % self.hosts.len()],
                _ => self.hosts[(me / self.keys.ranks_per_host) as usize],
            };
            let steps = Rank {
                spec: self.clone(),
                phases: Arc::clone(&phases),
                seed,
                me,
            };
            (host, Script::Sequence(Box::new(steps)))
        });
        JobSpec {
            name: JOB.to_owned(),
            class,
            sl: self.keys.sl,
            start: Time::ZERO,
            background: false,
            stragglers: Vec::new(),
            ranks: ranks.collect(),
            rails: Vec::new(),
            helpers: Helpers::default(),
            labels: TESTS.map(str::to_owned).to_vec(),
        }
    }

    fn phases(&self) -> Vec<Phase> {
        let mut phases = Vec::new();
        for latency in [true, false] {
            let (_, measurements) = if latency {
                LATENCY_LOOPS
            } else {
                BANDWIDTH_LOOPS
            };
            for measurement in 0..measurements {
                self.ping_pongs(&mut phases, latency, measurement);
            }
        }
        for latency in [true, false] {
            let (_, measurements) = if latency {
                LATENCY_LOOPS
            } else {
                BANDWIDTH_LOOPS
            };
            let rings = match latency {
                true => self.keys.latency_rings,
                false => self.keys.bandwidth_rings,
            };
            let rings = 1 + rings;
            let each =
                (0..rings).flat_map(|ring| (0..measurements).map(move |which| (ring, which)));
            phases.extend(each.flat_map(|(ring, which)| {
                let index = ring * measurements + which;
                [true, false].map(|blocking| Phase::Ring {
                    ring,
                    latency,
                    blocking,
                    index,
                })
            }));
        }
        phases.extend([Phase::Transpose, Phase::Access, Phase::Fft]);
        phases.extend((0..self.panels()).map(Phase::Panel));
        phases
    }

    fn ping_pongs(&self, phases: &mut Vec<Phase>, latency: bool, measurement: u32) {
        let n = self.ranks();
        let mut after = None;
        for client in 0..n {
            for server in (0..n).filter(|server| *server != client) {
                let index = measurement * n * n + client * n + server;
                phases.push(Phase::PingPong {
                    client,
                    server,
                    after,
                    latency,
                    index,
                });
                after = Some(client);
            }
        }
    }

    fn grid(&self) -> (u32, u32) {
        let n = self.ranks();
        let rows = (1..=n).rev().find(|rows| n % rows == 0 && rows * rows <= n);
        let rows = rows.unwrap_or(1);
        (rows, n / rows)
    }

    /// Bytes from a rank to each other one: block (i, j) goes from (i mod P, j mod Q) to (j mod P, i mod Q).
    pub fn transposed(&self, me: u32) -> Vec<u64> {
        let (p, q) = self.grid();
        let period = u64::from(p) * u64::from(q);
        let rows = u64::from(self.keys.ptrans_rows);
        let share = rows * rows * 8 / (period * period);
        let (row, column) = (u64::from(me / q), u64::from(me % q));
        let mut sent = vec![0; self.ranks() as usize];
        for i in (row..period).step_by(p as usize) {
            for j in (column..period).step_by(q as usize) {
                let to = (j % u64::from(p)) * u64::from(q) + i % u64::from(q);
                sent[to as usize] += share;
            }
        }
        sent[me as usize] = 0;
        sent
    }

    /// Bytes of one message of MPIRandomAccess: the fullest of the others' buckets, about their mean.
    pub fn access_bytes(&self) -> u64 {
        LOOKAHEAD / u64::from(self.ranks()) * 8
    }
}

#[derive(Debug)]
struct Rank {
    spec: Hpcc,
    phases: Arc<[Phase]>,
    seed: u64,
    me: u32,
}

fn loops(latency: bool) -> u32 {
    if latency {
        LATENCY_LOOPS.0
    } else {
        BANDWIDTH_LOOPS.0
    }
}

impl Rank {
    fn bytes(&self, latency: bool) -> u64 {
        if latency {
            SMALL
        } else {
            self.spec.keys.bandwidth_bytes.as_u64()
        }
    }

    fn ping_pong(
        &self,
        out: &mut Vec<Op>,
        pair: (u32, u32),
        after: Option<u32>,
        latency: bool,
        index: u32,
    ) {
        let (client, server) = pair;
        let (bytes, tag) = (self.bytes(latency), 0);
        if let Some(before) = after.filter(|before| *before != client) {
            let turn = 1;
            if self.me == before {
                out.extend([
                    Op::Send {
                        to: client,
                        bytes: 0,
                        tag: turn,
                    },
                    Op::Wait,
                ]);
            } else if self.me == client {
                out.extend([
                    Op::Receive {
                        from: Some(before),
                        bytes: 0,
                        tag: Some(turn),
                    },
                    Op::Wait,
                ]);
            }
        }
        let other = if self.me == client { server } else { client };
        let send = [
            Op::Send {
                to: other,
                bytes,
                tag,
            },
            Op::Wait,
        ];
        let receive = [
            Op::Receive {
                from: Some(other),
                bytes,
                tag: Some(tag),
            },
            Op::Wait,
        ];
        for iteration in 0..=loops(latency) {
            if self.me == client {
                out.extend((iteration == 1).then_some(Op::Begin));
                out.extend(send.iter().chain(&receive));
            } else if self.me == server {
                out.extend(receive.iter().chain(&send));
            }
        }
        if self.me == client {
            out.push(Op::End {
                label: u16::from(!latency),
                index,
            });
        }
    }

    /// Ring 0 is natural, others are random.
    fn neighbours(&self, ring: u32) -> (u32, u32) {
        let n = self.spec.ranks();
        let mut order: Vec<u32> = (0..n).collect();
        if ring > 0 {
            shuffle(
                &mut stream(self.seed, Purpose::Programs(0), ring.into()),
                &mut order,
            );
        }
        let place = order.iter().position(|rank| *rank == self.me).unwrap_or(0);
        let at = |offset: u32| order[(place + offset as usize) % order.len()];
        (at(n - 1), at(1))
    }

    fn ring(&self, out: &mut Vec<Op>, ring: u32, latency: bool, blocking: bool, index: u32) {
        let (left, right) = self.neighbours(ring);
        let bytes = self.bytes(latency);
        collective::doubling::barrier(out, Group::all(self.spec.ranks()), self.me);
        for iteration in 0..=loops(latency) {
            out.extend((iteration == 1).then_some(Op::Begin));
            if blocking {
                for (to, from, tag) in [(right, left, 2), (left, right, 3)] {
                    out.push(Op::Receive {
                        from: Some(from),
                        bytes,
                        tag: Some(tag),
                    });
                    out.extend([Op::Send { to, bytes, tag }, Op::Wait]);
                }
            } else {
                collective::neighbours(out, left, right, bytes, 1);
            }
        }
        out.push(Op::End {
            label: 2 + u16::from(!latency),
            index: 2 * index + u32::from(blocking),
        });
    }

    fn measured(&self, out: &mut Vec<Op>, label: u16, what: impl FnOnce(&mut Vec<Op>)) {
        let all = Group::all(self.spec.ranks());
        collective::doubling::barrier(out, all, self.me);
        out.push(Op::Begin);
        what(out);
        collective::doubling::barrier(out, all, self.me);
        out.push(Op::End { label, index: 0 });
    }

    fn compute(&self, out: &mut Vec<Op>, span: Span) {
        if !span.is_zero() {
            out.push(Op::Compute(span));
        }
    }

    fn transpose(&self, out: &mut Vec<Op>) {
        let tag = 4;
        self.compute(out, self.spec.keys.ptrans_compute);
        for from in 0..self.spec.ranks() {
            let bytes = self.spec.transposed(from)[self.me as usize];
            if bytes > 0 {
                out.push(Op::Receive {
                    from: Some(from),
                    bytes,
                    tag: Some(tag),
                });
            }
        }
        for (to, bytes) in (0..).zip(self.spec.transposed(self.me)) {
            if bytes > 0 {
                out.push(Op::Send { to, bytes, tag });
            }
        }
        out.push(Op::Wait);
    }

    fn access(&self, out: &mut Vec<Op>) {
        let (bytes, tag) = (self.spec.access_bytes(), 5);
        let keys = &self.spec.keys;
        let most_rings = keys.latency_rings.max(keys.bandwidth_rings);
        for round in 0..self.spec.keys.access_rounds {
            let (from, to) = self.neighbours(1 + most_rings + round);
            self.compute(out, keys.access_compute);
            out.push(Op::Receive {
                from: Some(from),
                bytes,
                tag: Some(tag),
            });
            out.extend([Op::Send { to, bytes, tag }, Op::Wait]);
        }
    }

    fn fft(&self, out: &mut Vec<Op>) {
        let n = u64::from(self.spec.ranks());
        let all = Group::all(self.spec.ranks());
        const TRANSPOSITIONS: u64 = 3;
        for _ in 0..TRANSPOSITIONS {
            let part = self.spec.keys.fft_compute.as_ps() / TRANSPOSITIONS;
            self.compute(out, Span::from_ps(part));
            collective::pairwise::alltoall(
                out,
                all,
                self.me,
                u64::from(self.spec.keys.fft_length) * 16 / (n * n),
            );
        }
    }
}

impl Steps for Rank {
    fn step(&mut self, step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        if step == 0 {
            out.push(Op::Compute(self.spec.keys.settle));
        }
        let Some(phase) = self.phases.get(step as usize) else {
            return false;
        };
        match *phase {
            Phase::PingPong {
                client,
                server,
                after,
                latency,
                index,
            } => {
                self.ping_pong(out, (client, server), after, latency, index);
            }
            Phase::Ring {
                ring,
                latency,
                blocking,
                index,
            } => {
                self.ring(out, ring, latency, blocking, index);
            }
            Phase::Transpose => self.measured(out, 4, |out| self.transpose(out)),
            Phase::Access => self.measured(out, 5, |out| self.access(out)),
            Phase::Fft => self.measured(out, 6, |out| self.fft(out)),
            Phase::Panel(panel) => self.panel(out, panel),
        }
        true
    }
}
