use silvan_core::{HostId, Rate, Time};

use crate::demand::Demand;
use crate::traffic::closed_loop::ClosedLoop;
use crate::traffic::fixed::Fixed;
use crate::traffic::flow_list::FlowList;
use crate::traffic::hosts::{Source, Traffic};
use crate::traffic::offered::Contribution;
use crate::traffic::scatter::{Common, Scatter};

impl Traffic {
    /// Bytes that unobstructed sources send to each host before `end`; random traffic is spread evenly.
    pub fn demands(&self, end: Time, injection: &[Rate]) -> Vec<Demand> {
        let mut spread = Demand::default();
        let mut demands = vec![Demand::default(); self.hosts.len()];
        let hotspots = self.hotspots(Time::ZERO);
        let contributions = &mut self.offered.contributions();
        for (record, rate) in self.hosts.iter().zip(injection) {
            let first = record.first as usize;
            let sources = &self.sources[first..first + record.count as usize];
            let most = rate.bits_per_sec() as f64 / 8.0 * seconds(Time::ZERO, end);
            for (source, offer) in sources.iter().zip(&mut *contributions) {
                match source {
                    Source::Fixed(fixed) => {
                        let at = fixed.destination().index();
                        demands[at].add(fixed.demand(offer, end));
                    }
                    Source::Scatter(scatter) => {
                        let (random, hot) = scatter.demands(offer, &self.commons, end);
                        spread.add(random);
                        let share = hot.scaled(1.0 / hotspots.len().max(1) as f64);
                        for host in &hotspots {
                            demands[host.index()].add(share);
                        }
                    }
                    Source::ClosedLoop(sequence) => {
                        for (host, demand) in sequence.demands(most) {
                            demands[host.index()].add(demand);
                        }
                    }
                    Source::Flows(flows) => {
                        let (random, listed) = flows.demands(end, most);
                        spread.add(random);
                        for (host, demand) in listed {
                            demands[host.index()].add(demand);
                        }
                    }
                }
            }
        }
        let receivers = self.receives.iter().filter(|receives| **receives).count();
        let share = spread.scaled(1.0 / receivers.max(1) as f64);
        let all = demands.iter_mut().zip(&self.receives);
        all.filter(|(_, receives)| **receives)
            .for_each(|(demand, _)| demand.add(share));
        demands
    }
}

fn seconds(from: Time, to: Time) -> f64 {
    to.max(from).since(from).as_secs_f64()
}

fn offered(offer: &Contribution, end: Time) -> f64 {
    let window = offer.window;
    let end = window.end.unwrap_or(end).min(end);
    offer.rate / 8.0 * seconds(window.start, end)
}

impl Fixed {
    fn demand(&self, offer: &Contribution, end: Time) -> Demand {
        let bytes = offered(offer, end).min(self.bytes_left() as f64);
        let (message, mtu) = self.message_and_mtu();
        Demand::of_messages(bytes, f64::from(message), mtu)
    }
}

impl Scatter {
    fn demands(&self, offer: &Contribution, commons: &[Common], end: Time) -> (Demand, Demand) {
        let common = self.common(commons);
        let bytes = offered(offer, end);
        let part = if offer.rate > 0.0 {
            offer.uniform / offer.rate
        } else {
            0.0
        };
        let of = |bytes| Demand::of_messages(bytes, f64::from(common.message), common.mtu);
        (of(bytes * part), of(bytes * (1.0 - part)))
    }
}

impl ClosedLoop {
    fn demands(&self, most: f64) -> Vec<(HostId, Demand)> {
        let plan = self.plan();
        let message = f64::from(plan.message);
        let receivers = plan.to.len() as f64;
        let bytes = (plan.iterations as f64 * receivers * message).min(most);
        let of_one = Demand::of_messages(bytes / receivers, message, plan.mtu);
        plan.to.iter().map(|host| (*host, of_one)).collect()
    }
}

impl FlowList {
    fn demands(&self, end: Time, most: f64) -> (Demand, Vec<(HostId, Demand)>) {
        let mtu = self.mtu();
        if let Some(listed) = self.listed() {
            let due = listed.iter().take_while(|(start, ..)| *start < end);
            let demand = |bytes: u64| Demand::of_messages(bytes as f64, bytes as f64, mtu);
            let due = due.map(|(_, host, bytes)| (*host, demand(*bytes)));
            return (Demand::default(), due.collect());
        }
        let mean = self.mean_size();
        let bytes = match self.is_closed() {
            true => most,
            false => self.expected(end) as f64 * mean,
        };
        (Demand::of_messages(bytes, mean, mtu), Vec::new())
    }
}
