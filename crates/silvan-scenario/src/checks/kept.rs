//! Cache of fabrics and routes for sweeps and the arena: the proof for a dragonfly of 1,056 hosts takes a third of a
//! second.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use silvan_fabric::Fabric;
use silvan_fabric::ForwardingTables;
use silvan_fabric::check::RouteReport;
use silvan_fabric::routing::{
    Alternatives, LaneSteps, PathChoice, PathLanes, Routes, Routing, Waypoints,
};

use silvan_workload::programs::Sharp;

use super::fabric::{CheckedRoutes, ChosenRouting, has_given_routes};
use super::faults::FabricFaults;
use super::sharp::section_of;
use crate::parsed::{FabricSection, FaultEntry, LinkSection, ScenarioFile};

const MOST: usize = 6;
/// Most hosts of one that is kept, so that it takes some megabytes.
const MOST_HOSTS: usize = 2048;

#[derive(Debug, Clone)]
pub(crate) struct RoutedFabric {
    pub fabric: Arc<Fabric>,
    pub faults: Arc<FabricFaults>,
    pub tables: Arc<ForwardingTables>,
    pub lanes: Option<Arc<PathLanes>>,
    pub alternatives: Option<Arc<Alternatives>>,
    pub steps: Option<Arc<LaneSteps>>,
    pub waypoints: Option<Arc<Waypoints>>,
    pub choice: PathChoice,
    pub report: Arc<RouteReport>,
    pub chosen: Arc<ChosenRouting>,
}

impl RoutedFabric {
    pub fn new(
        fabric: Arc<Fabric>,
        faults: Arc<FabricFaults>,
        chosen: ChosenRouting,
        routes: CheckedRoutes,
    ) -> Self {
        Self {
            fabric,
            faults,
            tables: Arc::new(routes.tables),
            lanes: routes.lanes.map(Arc::new),
            alternatives: routes.alternatives.map(Arc::new),
            steps: routes.steps.map(Arc::new),
            waypoints: routes.waypoints.map(Arc::new),
            choice: routes.choice,
            report: Arc::new(routes.report),
            chosen: Arc::new(chosen),
        }
    }

    pub fn lanes_needed(&self) -> u8 {
        let of_paths = self.lanes.as_ref().map_or(1, |lanes| lanes.lanes());
        let of_steps = self.steps.as_ref().map_or(1, |steps| steps.lanes());
        of_paths.max(of_steps)
    }

    pub fn routes(&self) -> Routes<'_> {
        Routes {
            tables: &self.tables,
            lanes: self.lanes.as_deref(),
            alternatives: self.alternatives.as_deref(),
            steps: self.steps.as_deref(),
            waypoints: self.waypoints.as_deref(),
            choice: self.choice,
        }
    }
}

/// Inputs of a fabric and computed routes. Tables, which depend on service levels, and lists in files are not cached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    fabric: FabricSection,
    link: LinkSection,
    fault: Vec<FaultEntry>,
    data_vls: Option<u8>,
    /// Aggregation nodes.
    sharp: Option<Sharp>,
}

impl Key {
    pub fn of(file: &ScenarioFile) -> Option<Self> {
        let section = &file.fabric;
        let given = has_given_routes(section)
            || section.root_guid_file.is_some()
            || section.cn_guid_file.is_some()
            || matches!(section.routing(), Routing::Explicit | Routing::Lfts);
        (!given).then(|| Self {
            fabric: section.clone(),
            link: file.link.clone(),
            fault: file.fault.clone(),
            data_vls: file.vl.data_vls,
            sharp: section_of(&file.traffic),
        })
    }
}

#[derive(Debug)]
struct Recent<K, V>(Vec<(K, V)>);

impl<K: PartialEq, V: Clone> Recent<K, V> {
    fn find(&mut self, key: &K) -> Option<V> {
        let place = self.0.iter().position(|(other, _)| other == key)?;
        let found = self.0.remove(place);
        let value = found.1.clone();
        self.0.push(found);
        Some(value)
    }

    fn add(&mut self, key: K, value: V) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push((key, value));
    }
}

static KEPT: Mutex<Recent<Key, RoutedFabric>> = Mutex::new(Recent(Vec::new()));

fn all() -> MutexGuard<'static, Recent<Key, RoutedFabric>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn kept(key: &Key) -> Option<RoutedFabric> {
    all().find(key)
}

pub(crate) fn keep(key: Key, routed: &RoutedFabric) {
    if routed.fabric.host_count() <= MOST_HOSTS {
        all().add(key, routed.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_used_last_are_found() {
        let mut recent = Recent(Vec::new());
        for number in 0..MOST {
            assert_eq!(recent.find(&number), None);
            recent.add(number, 10 * number);
        }
        assert_eq!(recent.find(&0), Some(0));
        recent.add(MOST, 10 * MOST);
        assert_eq!(recent.find(&1), None);
        for number in (0..=MOST).filter(|number| *number != 1) {
            assert_eq!(recent.find(&number), Some(10 * number));
        }
        assert_eq!(recent.0.len(), MOST);
    }
}
