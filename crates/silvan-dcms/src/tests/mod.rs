//! The manager on a subnet in memory.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod clock;
mod crash;
mod disk;
mod faults;
mod files;
mod lease;
mod operation;
mod text;

use std::sync::{Arc, Mutex};

use silvan_core::Span;
use silvan_subnet::fake::{Fault, SharedWorld, World};

use crate::event::{Do, Event};
use crate::manager::{Manager, ManagerError, Task};
use crate::metrics::Metrics;
use crate::settings::ManagerSettings;
use disk::FakeDisk;

/// Sweeps of a second that keep a rate low for 6 s.
const CONFIG: &str = r#"
[dcms]
interval = "1 s"
low-duration = "6 s"
"#;

fn settings(text: &str) -> ManagerSettings {
    ManagerSettings::from_toml(text, "dcms.toml").unwrap()
}

fn seconds(count: u64) -> Span {
    Span::from_secs(count)
}

/// A subnet with a disk, and what managers on it have logged.
struct Bench {
    subnet: SharedWorld,
    disk: FakeDisk,
    events: Arc<Mutex<Vec<Event>>>,
    metrics: Arc<Metrics>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let subnet = SharedWorld::new(World::testbed(seed));
        let disk = FakeDisk::new(&subnet);
        Self {
            subnet,
            disk,
            events: Arc::default(),
            metrics: Arc::default(),
        }
    }

    /// A bench on which many send to D from second 3 on, and the manager is stopped at `end`.
    fn congested(seed: u64, end: u64) -> Self {
        let bench = Self::new(seed);
        bench.after(3, Fault::Incast(true));
        bench.after(end, Fault::Stop);
        bench
    }

    fn after(&self, second: u64, fault: Fault) {
        self.subnet.world().after(seconds(second), fault);
    }

    fn manager(&self, config: &str, act: bool) -> Manager<SharedWorld, FakeDisk> {
        let events = Arc::clone(&self.events);
        let log = move |event: &Event| events.lock().unwrap().push(event.clone());
        Manager::new(
            settings(config),
            act,
            self.subnet.clone(),
            self.disk.clone(),
            Box::new(log),
            Arc::clone(&self.metrics),
        )
        .unwrap()
    }

    fn run(&self, config: &str, act: bool, task: Task) -> Result<usize, ManagerError> {
        let stop = Arc::clone(&self.subnet.world().stop);
        self.manager(config, act).run(task, &stop)
    }

    /// Runs until it is stopped, and gives what it left changed.
    fn act(&self, config: &str) -> usize {
        self.run(config, true, Task::Run).unwrap()
    }

    /// Names of the events, sweeps left out.
    fn events(&self) -> Vec<Event> {
        let events = self.events.lock().unwrap();
        let all = events
            .iter()
            .filter(|event| !matches!(event, Event::Swept { .. }));
        all.cloned().collect()
    }

    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events().iter().filter(|event| is(event)).count()
    }

    /// Asserts that the end of each low rate, real or dry, is logged with its victims' losses, with
    /// or without a decision.
    fn assert_losses_are_logged(&self) {
        let (mut lower, mut ended) = (0, 0);
        for event in self.events() {
            match event {
                Event::Decision(decided) => {
                    lower += usize::from(decided.action == Do::Lower);
                    ended += usize::from(decided.victims_lost_bytes.is_some());
                }
                Event::LowEnded { .. } => ended += 1,
                _ => {}
            }
            assert!(ended <= lower && lower <= ended + 1);
        }
        assert_eq!(lower, ended);
    }

    /// Settings of all ports of both switches.
    fn rates(&self) -> Vec<u16> {
        let world = self.subnet.world();
        let both = ["S1", "S2"].into_iter();
        both.flat_map(|name| (1..=24).map(move |port| (name, port)))
            .map(|(name, port)| world.rate(name, port))
            .collect()
    }

    /// Nothing is other than shipped, down to the elements of ports.
    fn assert_untouched(&self) {
        assert!(
            self.rates().iter().all(|&rate| rate == 128),
            "{:?}",
            self.rates()
        );
        let world = self.subnet.world();
        for node in &world.nodes {
            for port in &node.ports {
                assert!(!port.own.valid, "{}", node.name);
            }
        }
    }

    /// Ports and rates that were set, in order.
    fn sets(&self) -> Vec<(String, Option<u8>, u16)> {
        self.subnet.world().sets.clone()
    }
}
