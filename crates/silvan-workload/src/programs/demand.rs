use silvan_core::{HostId, Time};

use crate::demand::Demand;
use crate::programs::op::Op;
use crate::programs::schedule::{Action, Schedule};
use crate::programs::spec::{JobSpec, Script};

const MOST_OPS: usize = 20_000;

impl JobSpec {
    /// Bytes that all ranks send to other hosts; a program without an end sends `most`.
    pub fn demand(self, most: f64, mtu: u32) -> Demand {
        let hosts: Vec<HostId> = self.ranks.iter().map(|(host, _)| *host).collect();
        let mut all = Demand::default();
        for (host, script) in self.ranks {
            let message = |to: u32, bytes: u64| match hosts.get(to as usize) {
                Some(other) if *other != host => {
                    Demand::of_messages(bytes.max(1) as f64, bytes as f64, mtu)
                }
                _ => Demand::default(),
            };
            all.add(script.demand(most, message));
        }
        all
    }
}

impl Script {
    fn demand(self, most: f64, message: impl Fn(u32, u64) -> Demand) -> Demand {
        let of_schedule = |schedule: &Schedule| {
            let mut sum = Demand::default();
            for op in schedule.ops() {
                if let Action::Send { to, bytes, .. } | Action::Put { to, bytes } = op.action {
                    sum.add(message(to, bytes));
                }
            }
            sum
        };
        let endless = |one: Demand| one.scaled(most / one.bytes.max(1.0));
        match self {
            Self::Schedule(schedule) => of_schedule(&schedule),
            Self::Loop { schedule, times } => {
                let one = of_schedule(&schedule);
                times.map_or_else(|| endless(one), |times| one.scaled(times as f64))
            }
            Self::Sequence(mut steps) => {
                let (mut ops, mut sum) = (Vec::new(), Demand::default());
                let mut seen = 0;
                for step in 0.. {
                    ops.clear();
                    let may_go_on = steps.step(step, Time::ZERO, &mut ops);
                    seen += ops.len().max(1);
                    for op in &ops {
                        if let Op::Send { to, bytes, .. }
                        | Op::Segment { to, bytes, .. }
                        | Op::Put { to, bytes }
                        | Op::Get { from: to, bytes } = *op
                        {
                            sum.add(message(to, bytes));
                        }
                    }
                    if !may_go_on {
                        return sum;
                    }
                    if seen >= MOST_OPS || sum.bytes >= most {
                        break;
                    }
                }
                endless(sum)
            }
            Self::External => Demand::default(),
        }
    }
}
