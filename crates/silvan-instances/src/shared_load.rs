//! Programs that the parts of a divided fabric share.

use std::sync::{Arc, Mutex, PoisonError};

use silvan_cc::workload::{Gate, Offer, Poll, Transit, Workload};
use silvan_core::{HostId, Time};
use silvan_workload::programs::{Load, Programs};
use silvan_workload::traffic::Traffic;

use crate::compiled::HostLoad;

/// A share in a load. Each part of a fabric has one; the first keeps the load while the engine does not run.
///
/// A poll changes the queues of its own host alone, so it does not matter in which order threads come to the load. What
/// links hosts is done by one thread for all parts.
#[derive(Debug)]
pub(crate) struct SharedLoad {
    kept: Option<Box<Load>>,
    lent: Arc<Mutex<Option<Box<Load>>>>,
    needs_delivery: bool,
    needs_packets: bool,
}

impl Clone for SharedLoad {
    fn clone(&self) -> Self {
        Self {
            kept: None,
            lent: Arc::clone(&self.lent),
            ..*self
        }
    }
}

impl SharedLoad {
    /// Lends the load.
    pub fn new(load: Load) -> Self {
        Self {
            needs_delivery: load.needs_delivery(),
            needs_packets: load.needs_packets(),
            kept: None,
            lent: Arc::new(Mutex::new(Some(Box::new(load)))),
        }
    }

    #[inline]
    fn with<T>(&self, with: impl FnOnce(&mut Load) -> T) -> T {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        with(lent.as_mut().expect("a load that is lent to the engine"))
    }

    fn kept(&self) -> &Load {
        self.kept.as_ref().expect("a load that is not in use")
    }
}

impl Workload for SharedLoad {
    const LINKS_HOSTS: bool = true;

    #[inline]
    fn needs_delivery(&self) -> bool {
        self.needs_delivery
    }

    #[inline]
    fn needs_packets(&self) -> bool {
        self.needs_packets
    }

    fn poll<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll {
        self.with(|load| load.poll(host, now, gate))
    }

    fn next_change(&self, now: Time) -> Option<Time> {
        self.with(|load| load.next_change(now))
    }

    fn apply_change(&mut self, now: Time, wake: &mut Vec<HostId>) {
        self.with(|load| load.apply_change(now, wake));
    }

    fn on_release_moved(&mut self, host: HostId) {
        self.with(|load| load.on_release_moved(host));
    }

    fn on_delivered(
        &mut self,
        src: HostId,
        offer: &Offer,
        transit: Transit,
        now: Time,
        wake: &mut Vec<HostId>,
    ) {
        self.with(|load| load.on_delivered(src, offer, transit, now, wake));
    }
}

impl HostLoad for SharedLoad {
    fn traffic(&self) -> &Traffic {
        self.kept().traffic()
    }

    fn classes(&self) -> &[String] {
        self.kept().classes()
    }

    fn programs(&self) -> Option<&Programs> {
        self.kept().programs()
    }

    fn programs_mut(&mut self) -> Option<&mut Programs> {
        self.kept.as_mut().and_then(|load| load.programs_mut())
    }

    fn lend(&mut self) {
        if let Some(load) = self.kept.take() {
            let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
            *lent = Some(load);
        }
    }

    fn take_back(&mut self) {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        self.kept = lent.take();
    }
}
