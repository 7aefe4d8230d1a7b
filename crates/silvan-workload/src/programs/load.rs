//! Programs together with other traffic, behind the engine's [`Workload`] interface.

use crate::traffic::Traffic;
use silvan_cc::workload::{Gate, Offer, Poll, Transit, Workload};
use silvan_core::{HostId, Time};

use crate::programs::ranks::Programs;

/// Traffic, and programs that run together with it, if there are any. A host with both sends a packet of each in
/// turn.
#[derive(Debug)]
pub struct Load {
    traffic: Traffic,
    programs: Option<Programs>,
    /// The first class of the programs' packets.
    first_class: u16,
    /// Whether it is the programs' turn, by host.
    turn: Vec<bool>,
    class_names: Vec<String>,
    /// When the traffic changes by itself.
    traffic_change: Option<Time>,
}

impl Load {
    /// Joins programs, whose packets have the classes behind those of the traffic, with the traffic.
    pub fn new(traffic: Traffic, programs: Programs, classes: Vec<String>, hosts: usize) -> Self {
        Self::join(traffic, Some(programs), classes, hosts)
    }

    fn join(
        traffic: Traffic,
        programs: Option<Programs>,
        classes: Vec<String>,
        hosts: usize,
    ) -> Self {
        let mut class_names = traffic.classes().to_vec();
        // The traffic refuses more classes than 16 bits can number.
        let first_class = class_names.len() as u16;
        class_names.extend(classes);
        Self {
            traffic_change: traffic.next_change(Time::ZERO),
            traffic,
            programs,
            first_class,
            turn: vec![false; hosts],
            class_names,
        }
    }

    /// Traffic without programs, of that many hosts.
    pub fn of_traffic(traffic: Traffic, hosts: usize) -> Self {
        Self::join(traffic, None, Vec::new(), hosts)
    }

    /// The traffic, without the programs.
    pub fn into_traffic(self) -> Traffic {
        self.traffic
    }

    /// The traffic in addition to the programs.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The programs, if there are any.
    pub fn programs(&self) -> Option<&Programs> {
        self.programs.as_ref()
    }

    /// The same, to steer them from outside.
    pub fn programs_mut(&mut self) -> Option<&mut Programs> {
        self.programs.as_mut()
    }

    /// Whether an engine with lookahead windows can run it: it pauses no run, and its traffic need not know of deliveries.
    pub fn fits_windows(&self) -> bool {
        let driven = self.programs.as_ref().is_some_and(Programs::is_driven);
        !driven && !self.traffic.needs_delivery()
    }

    /// Names of all traffic classes.
    pub fn classes(&self) -> &[String] {
        &self.class_names
    }
}

impl Workload for Load {
    const LINKS_HOSTS: bool = true;

    #[inline]
    fn needs_delivery(&self) -> bool {
        self.programs.is_some() || self.traffic.needs_delivery()
    }

    #[inline]
    fn needs_packets(&self) -> bool {
        self.traffic.needs_delivery()
    }

    #[inline]
    fn prefetch_poll(&self, host: HostId) {
        if self.programs.is_none() {
            self.traffic.prefetch_poll(host);
        }
    }

    #[inline]
    fn prefetch_poll_data(&self, host: HostId) {
        if self.programs.is_none() {
            self.traffic.prefetch_poll_data(host);
        }
    }

    #[inline]
    fn poll<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll {
        let Some(programs) = &mut self.programs else {
            return self.traffic.poll(host, now, gate);
        };
        let programs_first = self.turn[host.index()];
        let mut answer = if programs_first {
            programs.poll(host, now, gate)
        } else {
            self.traffic.poll(host, now, gate)
        };
        let wait = match &answer {
            Poll::Send(_) => {
                self.turn[host.index()] = !programs_first;
                return answer;
            }
            Poll::WaitUntil(at) => *at,
            Poll::Idle => Time::MAX,
        };
        answer = if programs_first {
            self.traffic.poll(host, now, gate)
        } else {
            programs.poll(host, now, gate)
        };
        match &answer {
            Poll::WaitUntil(at) => Poll::WaitUntil(wait.min(*at)),
            Poll::Idle if wait < Time::MAX => Poll::WaitUntil(wait),
            _ => answer,
        }
    }

    fn next_change(&self, _now: Time) -> Option<Time> {
        let timer = self.programs.as_ref().and_then(Programs::next_timer);
        let changes = [self.traffic_change, timer];
        changes.into_iter().flatten().min()
    }

    fn apply_change(&mut self, now: Time, wake: &mut Vec<HostId>) {
        if self.traffic_change.take_if(|at| *at <= now).is_some() {
            self.traffic.apply_change(now, wake);
            self.traffic_change = self.traffic.next_change(now);
        }
        if let Some(programs) = &mut self.programs {
            programs.wake_at(now, wake);
        }
    }

    fn pauses(&self) -> bool {
        self.programs.as_ref().is_some_and(Programs::pauses)
    }

    fn on_release_moved(&mut self, host: HostId) {
        self.traffic.on_release_moved(host);
        if let Some(programs) = &mut self.programs {
            programs.invalidate_releases(host);
        }
    }

    fn on_delivered(
        &mut self,
        src: HostId,
        offer: &Offer,
        transit: Transit,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        match &mut self.programs {
            Some(programs) if offer.class >= self.first_class => {
                programs.delivered(src, offer, transit.completes, now, wake);
            }
            _ => self.traffic.on_delivered(src, offer, transit, now, wake),
        }
    }
}
