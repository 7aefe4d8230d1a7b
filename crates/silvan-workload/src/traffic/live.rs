use silvan_cc::workload::Chosen;
use silvan_core::{Bytes, HostId, Time};

use crate::traffic::check::Checker;
use crate::traffic::error::{Entry, Reason, TrafficError};
use crate::traffic::hosts::{Source, Traffic};
use crate::traffic::kinds::{Flow, FlowSource, TrafficSection};
use crate::traffic::spec::Environment;

impl Source {
    pub(crate) fn has_class(&self, class: u16) -> bool {
        match self {
            Self::Scatter(scatter) => scatter.has_class(class),
            Self::Fixed(fixed) => fixed.class() == class,
            Self::ClosedLoop(sequence) => sequence.class() == class,
            Self::Flows(flows) => flows.class() == class,
        }
    }

    fn resume(&mut self, now: Time) {
        match self {
            Self::Scatter(scatter) => scatter.resume(now),
            Self::Fixed(fixed) => fixed.resume(now),
            Self::Flows(flows) => flows.resume(now),
            Self::ClosedLoop(_) => {}
        }
    }
}

impl Traffic {
    /// Adds a flow, or names the key at fault, and returns its class; the engine must poll its host.
    ///
    /// `message` is the default size; [`offered_load`](Self::offered_load) and [`tmax`](Self::tmax) keep the
    /// description's values.
    pub fn add_flow(
        &mut self,
        flow: &Flow,
        message: Option<Bytes>,
        environment: &Environment,
    ) -> Result<u16, TrafficError> {
        let general = TrafficSection {
            message,
            ..TrafficSection::default()
        };
        let check = Checker {
            entry: Entry::listed("flow", 0),
            environment,
            general: &general,
        };
        let mtu = check.size("mtu", environment.mtu)?;
        let make = flow.source(&check, mtu, self.classes.len())?;
        let name = flow.name.clone().unwrap_or_else(|| self.free_name());
        if self.classes.contains(&name) {
            return check.fail("name", Reason::NameTaken(name));
        }
        let Ok(class) = u16::try_from(self.classes.len()) else {
            return check.fail("name", Reason::TooManyClasses);
        };
        self.classes.push(name);
        let FlowSource { from, fixed, .. } = make(class);
        self.append(from, Source::Fixed(fixed));
        Ok(class)
    }

    fn free_name(&self) -> String {
        let mut names = (1..).map(|number| format!("flow-{number}"));
        let free = names.find(|name| !self.classes.contains(name));
        free.unwrap_or_default()
    }

    /// Inserts before stopped sources. A host's sources are adjacent, so they may move.
    fn append(&mut self, host: HostId, source: Source) {
        let record = &mut self.hosts[host.index()];
        let first = record.first as usize;
        let running = first + record.count as usize;
        let end = running + record.stopped as usize;
        if end != self.sources.len() {
            record.first = self.sources.len() as u32;
            let moved = self.sources[first..end].to_vec();
            self.sources.extend(moved);
        }
        let at = record.first as usize + record.count as usize;
        self.sources.insert(at, source);
        record.count += 1;
    }

    /// Stops a class's sources, perhaps within a message, and returns their hosts; empty if stopped already.
    pub fn stop(&mut self, class: u16) -> Vec<HostId> {
        let mut stopped = Vec::new();
        for (index, record) in self.hosts.iter_mut().enumerate() {
            let first = record.first as usize;
            let mut place = 0;
            let before = record.count;
            while place < record.count as usize {
                if self.sources[first + place].has_class(class) {
                    record.count -= 1;
                    record.stopped += 1;
                    self.sources
                        .swap(first + place, first + record.count as usize);
                } else {
                    place += 1;
                }
            }
            if record.count < before {
                record.turn = 0;
                self.chosen[index] = Chosen::default();
                stopped.push(HostId::new(index));
            }
        }
        stopped
    }

    /// Lets the sources of a class go on. Gives the hosts concerned, which the engine must poll.
    pub fn resume(&mut self, class: u16, now: Time) -> Vec<HostId> {
        let mut resumed = Vec::new();
        for (index, record) in self.hosts.iter_mut().enumerate() {
            let first = record.first as usize;
            let end = first + (record.count + record.stopped) as usize;
            let before = record.count;
            for place in first + record.count as usize..end {
                if self.sources[place].has_class(class) {
                    self.sources[place].resume(now);
                    self.sources.swap(place, first + record.count as usize);
                    record.count += 1;
                    record.stopped -= 1;
                }
            }
            if record.count > before {
                record.turn = 0;
                self.chosen[index] = Chosen::default();
                resumed.push(HostId::new(index));
            }
        }
        resumed
    }

    /// Returns true if some source of a class is running. A source with an end also counts after it.
    pub fn is_running(&self, class: u16) -> bool {
        self.hosts.iter().any(|record| {
            let first = record.first as usize;
            let running = &self.sources[first..first + record.count as usize];
            running.iter().any(|source| source.has_class(class))
        })
    }
}
