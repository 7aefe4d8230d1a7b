use crate::traffic::Traffic;
use silvan_cc::workload::{
    Gate, MessageChange, Offer, Poll, Progress, Transit, WholeMessage, Workload,
};
use silvan_core::{HostId, Span, Time};

use crate::programs::mail::{Letter, Ranks};
use crate::programs::ranks::Programs;
use crate::programs::senders::Senders;

#[derive(Debug)]
struct OnHosts {
    ranks: Ranks,
    senders: Senders,
    /// By host: the programs have the next turn.
    turn: Vec<bool>,
}

/// Traffic, and programs that run together with it, if there are any. A host with both sends a packet of each in turn.
#[derive(Debug)]
pub struct Load {
    traffic: Traffic,
    programs: Option<Box<OnHosts>>,
    /// First class of the programs' packets, and number of classes.
    first_class: u16,
    class_count: u16,
    traffic_change: Option<Time>,
}

/// For a further part of a fabric, which shares the programs. Panics if they are not [shared](Load::shared).
impl Clone for Load {
    fn clone(&self) -> Self {
        Self {
            traffic: self.traffic.clone(),
            programs: self.programs.as_ref().map(|programs| {
                let ranks = programs.ranks.share();
                Box::new(OnHosts {
                    ranks: ranks.expect("programs that parts share"),
                    senders: programs.senders.clone(),
                    turn: programs.turn.clone(),
                })
            }),
            ..*self
        }
    }
}

impl Load {
    /// Joins programs with the traffic; classes are the traffic's, then the programs'.
    pub fn new(traffic: Traffic, programs: Programs, classes: Vec<String>, hosts: usize) -> Self {
        let mut load = Self::of_traffic(traffic);
        load.class_count = classes.len() as u16;
        load.traffic.classes.extend(classes);
        let senders = Senders::new(hosts, programs.payload);
        let mut ranks = Ranks::new(programs, hosts);
        ranks.change(None, &mut Vec::new(), |_| {});
        load.programs = Some(Box::new(OnHosts {
            ranks,
            senders,
            turn: vec![false; hosts],
        }));
        load
    }

    /// Traffic without programs.
    pub fn of_traffic(traffic: Traffic) -> Self {
        Self {
            traffic_change: traffic.next_change(Time::ZERO),
            first_class: traffic.classes().len() as u16,
            class_count: 0,
            traffic,
            programs: None,
        }
    }

    /// The traffic, without the programs.
    pub fn into_traffic(self) -> Traffic {
        self.traffic
    }

    /// The traffic in addition to the programs.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The traffic, to change it; hosts that have more to send must be polled.
    pub fn traffic_mut(&mut self) -> &mut Traffic {
        &mut self.traffic
    }

    /// The programs, if any; shared ones are readable while not [lent](Self::lend), in the part that took them back.
    pub fn programs(&self) -> Option<&Programs> {
        self.programs.as_ref()?.ranks.programs()
    }

    /// Changes the programs from outside, and adds hosts with something new to send to `wake`.
    pub fn change_programs(&mut self, wake: &mut Vec<HostId>, change: impl FnOnce(&mut Programs)) {
        if let Some(programs) = &mut self.programs {
            programs.ranks.change(None, wake, change);
        }
    }

    /// Converts the load for a fabric in parts. Each part gets a copy, with the queues of its hosts and shared ranks.
    #[must_use]
    pub fn shared(mut self) -> Self {
        if let Some(mut programs) = self.programs.take() {
            programs.ranks = programs.ranks.shared();
            self.programs = Some(programs);
        }
        self
    }

    /// Lends the programs to all parts before they run.
    pub fn lend(&mut self) {
        if let Some(programs) = &mut self.programs {
            programs.ranks.lend();
        }
    }

    /// Takes them back afterwards, so that they can be read in this part.
    pub fn take_back(&mut self) {
        if let Some(programs) = &mut self.programs {
            programs.ranks.take_back();
        }
    }

    /// True if lookahead windows can run the load: no pauses, no deliveries of a host to itself, none of traffic if
    /// packets are `delivered_together`.
    pub fn fits_windows(&self, delivered_together: bool) -> bool {
        let is_driven = self.programs().is_some_and(Programs::is_driven);
        let is_told_together = delivered_together && self.traffic.needs_delivery();
        !is_driven && !is_told_together && !self.traffic.comes_back
    }

    /// Returns true if the load is only traffic that needs no deliveries.
    pub fn is_unaware(&self) -> bool {
        self.programs.is_none() && !self.traffic.needs_delivery()
    }

    fn invalidate_senders(&mut self, host: HostId) {
        if let Some(programs) = &mut self.programs {
            programs.senders.invalidate_releases(host);
        }
    }

    /// Names of all traffic classes.
    pub fn classes(&self) -> &[String] {
        self.traffic.classes()
    }

    #[inline]
    fn is_of_programs(&self, class: u16) -> bool {
        class.wrapping_sub(self.first_class) < self.class_count
    }
}

impl Workload for Load {
    const LINKS_HOSTS: bool = true;
    const RECURS: bool = true;

    fn can_recur(&self) -> bool {
        self.first_class == 0 && self.traffic_change.is_none() && self.programs().is_some()
    }

    fn keep_message_changes(&mut self) {
        if let Some(programs) = &mut self.programs {
            programs.senders.keep_changes();
        }
    }

    fn take_message_changes(&mut self, changes: &mut Vec<MessageChange>) {
        if let Some(programs) = &mut self.programs {
            programs.senders.take_changes(changes);
        }
    }

    fn packets_before_last(&self, host: HostId) -> Option<u64> {
        self.programs.as_ref()?.senders.packets_before_last(host)
    }

    fn progress(&self, hosts: &[u32], now: Time) -> Progress {
        let senders = self.programs.as_ref().map(|programs| &programs.senders);
        senders.map_or_else(Progress::default, |senders| senders.progress(hosts, now))
    }

    fn most_periods(&self, period: &Progress) -> u64 {
        let senders = self.programs.as_ref().map(|programs| &programs.senders);
        senders.map_or(0, |senders| senders.most_periods(period))
    }

    fn skip_periods(&mut self, period: &Progress, periods: u64, now: Time, by: Span) {
        if let Some(programs) = &mut self.programs {
            programs.senders.skip_periods(period, periods, now, by);
        }
    }

    fn whole_message(&self, host: HostId) -> Option<WholeMessage> {
        self.programs.as_ref()?.senders.whole_message(host)
    }

    fn send_whole_message(&mut self, host: HostId) {
        if let Some(programs) = &mut self.programs {
            let OnHosts { ranks, senders, .. } = &mut **programs;
            let complete = |sent| ranks.with_mail(host, |mail| mail.note_sent(sent));
            senders.send_whole_message(host, complete);
        }
    }

    #[inline]
    fn needs_delivery(&self) -> bool {
        self.programs.is_some() || self.traffic.needs_delivery()
    }

    #[inline]
    fn needs_packets(&self) -> bool {
        self.traffic.needs_delivery()
    }

    #[inline]
    fn needs_delivery_of(&self, class: u16) -> bool {
        self.is_of_programs(class) || self.traffic.needs_delivery()
    }

    #[inline]
    fn tells_only_sender_of(&self, class: u16) -> bool {
        !self.is_of_programs(class)
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
        let Self {
            traffic, programs, ..
        } = self;
        let Some(programs) = programs else {
            return traffic.poll(host, now, gate);
        };
        let OnHosts {
            ranks,
            senders,
            turn,
        } = &mut **programs;
        let mut poll_programs = |gate: &mut G| {
            let complete = |sent| ranks.with_mail(host, |mail| mail.note_sent(sent));
            senders.poll(host, now, gate, complete)
        };
        let turn = &mut turn[host.index()];
        let mut answer = match *turn {
            true => poll_programs(gate),
            false => traffic.poll(host, now, gate),
        };
        let wait = match &answer {
            Poll::Send(_) => {
                *turn = !*turn;
                return answer;
            }
            Poll::WaitUntil(at) => *at,
            Poll::Idle => Time::MAX,
        };
        answer = match *turn {
            true => traffic.poll(host, now, gate),
            false => poll_programs(gate),
        };
        match &answer {
            Poll::WaitUntil(at) => Poll::WaitUntil(wait.min(*at)),
            Poll::Idle if wait < Time::MAX => Poll::WaitUntil(wait),
            _ => answer,
        }
    }

    fn next_change(&self, _now: Time) -> Option<Time> {
        self.traffic_change
    }

    fn apply_change(&mut self, now: Time, wake: &mut Vec<HostId>) {
        if self.traffic_change.take_if(|at| *at <= now).is_some() {
            self.traffic.apply_change(now, wake);
            self.traffic_change = self.traffic.next_change(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.programs.as_ref()?.ranks.next_timer()
    }

    fn on_timer(&mut self, now: Time, wake: &mut Vec<HostId>) {
        if let Some(programs) = &mut self.programs {
            let fire = |programs: &mut Programs| programs.fire_timers(now);
            programs.ranks.change(None, wake, fire);
        }
    }

    fn on_woken(&mut self, host: HostId, now: Time) {
        let Some(programs) = &mut self.programs else {
            return;
        };
        let OnHosts { ranks, senders, .. } = &mut **programs;
        ranks.with_mail(host, |mail| {
            while let Some(letter) = mail.take_launched(now) {
                match letter {
                    Letter::Launch(launch) => senders.push(host, &launch),
                    Letter::Withdraw { from, queue, .. } => {
                        senders.withdraw(host, from, queue, |sent| mail.note_sent(sent));
                    }
                }
            }
        });
    }

    fn pauses(&self) -> bool {
        self.programs().is_some_and(Programs::pauses)
    }

    fn on_release_moved(&mut self, host: HostId) {
        self.traffic.on_release_moved(host);
        self.invalidate_senders(host);
    }

    fn on_flow_release_moved(&mut self, host: HostId, dst: HostId) {
        self.traffic.on_flow_release_moved(host, dst);
        self.invalidate_senders(host);
    }

    fn on_lanes_opened(&mut self, host: HostId) {
        self.traffic.on_lanes_opened(host);
        self.invalidate_senders(host);
    }

    fn on_delivered(
        &mut self,
        src: HostId,
        offer: &Offer,
        transit: Transit,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        let is_of_programs = self.is_of_programs(offer.class);
        match &mut self.programs {
            Some(programs) if is_of_programs => {
                let OnHosts { ranks, senders, .. } = &mut **programs;
                let under_way = |flow| senders.under_way(src, flow, offer.number);
                ranks.change(Some((src, now)), wake, |programs| {
                    programs.delivered(src, offer, transit, under_way, now);
                });
            }
            _ => self.traffic.on_delivered(src, offer, transit, now, wake),
        }
    }

    fn queue_of(&self, src: HostId, offer: &Offer) -> u16 {
        let programs = self.programs.as_ref();
        programs.map_or(0, |programs| programs.senders.queue_of(src, offer))
    }

    fn on_lost(
        &mut self,
        src: HostId,
        offer: &Offer,
        transit: Transit,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        let is_of_programs = self.is_of_programs(offer.class);
        if let Some(programs) = self.programs.as_mut().filter(|_| is_of_programs) {
            let OnHosts { ranks, senders, .. } = &mut **programs;
            let under_way = |flow| senders.under_way(src, flow, offer.number);
            ranks.change(Some((src, now)), wake, |programs| {
                programs.lost(src, offer, transit, under_way, now);
            });
        }
    }

    fn on_failed(&mut self, src: HostId, offer: &Offer, now: Time) {
        let is_of_programs = self.is_of_programs(offer.class);
        let Some(programs) = self.programs.as_mut().filter(|_| is_of_programs) else {
            return;
        };
        let OnHosts { ranks, senders, .. } = &mut **programs;
        let under_way = |flow| senders.under_way(src, flow, offer.number);
        ranks.change(Some((src, now)), &mut Vec::new(), |programs| {
            programs.failed(src, offer, under_way, now);
        });
    }
}
