use silvan_fabric::Fabric;
use silvan_fabric::check::{CheckOptions, RouteError, check, check_steps};
use silvan_fabric::generators::Generator;
use silvan_fabric::routing::{self, LaneSteps, PathChoice, Routes, Routing, Waypoints};

use super::fabric::{CheckedRoutes, most_lanes, routing_input};
use super::levels::MOST_LANES;
use super::{at, refused_in};
use crate::ScenarioError;
use crate::parsed::ScenarioFile;

pub(super) fn add_choices(
    file: &ScenarioFile,
    fabric: &Fabric,
    routes: CheckedRoutes,
    options: CheckOptions,
) -> Result<CheckedRoutes, ScenarioError> {
    let routing = file.fabric.routing();
    let algorithm = routing.algorithm();
    match file.fabric.path_choice {
        PathChoice::Table if algorithm.is_some_and(|one| one.raises_lanes(PathChoice::Table)) => {
            let topology = file.fabric.topology.as_ref();
            let steps = topology.map(|topology| topology.lane_steps(fabric));
            match steps {
                Some(steps) => on_steps(file, fabric, routes, steps),
                None => Ok(routes),
            }
        }
        PathChoice::Table => Ok(routes),
        _ if routing == Routing::None => Ok(routes),
        choice if choice.is_among_shortest() => among_shortest(file, fabric, routes, options),
        _ => over_waypoints(file, fabric, routes),
    }
}

fn refused(message: impl Into<String>, hint: impl Into<String>) -> ScenarioError {
    ScenarioError::new(at("fabric.path-choice"), message).with_hint(hint)
}

fn among_shortest(
    file: &ScenarioFile,
    fabric: &Fabric,
    mut routes: CheckedRoutes,
    options: CheckOptions,
) -> Result<CheckedRoutes, ScenarioError> {
    let routing = file.fabric.routing();
    if routing.algorithm().is_some_and(|one| !one.allows_choice()) {
        let message = format!("{} routes leave nothing to choose", routing.name().name());
        let hint = "set fabric.routing to \"min-hop\", or leave it out";
        return Err(refused(message, hint));
    }
    if routes.lanes.is_some() {
        let message = "switches cannot choose where the lane is that of the path";
        return Err(refused(message, "leave it out, or use it in a fat tree"));
    }
    let found = match routing.algorithm() {
        Some(algorithm) => algorithm.alternatives(routing_input(file, fabric)),
        None => routing::minimal_alternatives(fabric),
    };
    let found = found.map_err(|error| refused_in(&at("fabric"), &error))?;
    let on_one_lane = Routes {
        alternatives: Some(&found),
        choice: file.fabric.path_choice,
        ..(&routes.tables).into()
    };
    let strict = CheckOptions {
        allow_cycles: false,
        ..options
    };
    let report = check(fabric, on_one_lane, strict);
    routes.alternatives = Some(found);
    routes.choice = file.fabric.path_choice;
    match report {
        Ok(report) => {
            routes.report = report;
            Ok(routes)
        }
        Err(RouteError::DependencyCycle { .. }) => {
            let topology = file.fabric.topology.as_ref();
            let steps = topology.map(|topology| topology.lane_steps(fabric));
            let steps = steps.unwrap_or_else(|| LaneSteps::equal(fabric));
            on_steps(file, fabric, routes, steps)
        }
        Err(error) => Err(refused(error.to_string(), "leave it out")),
    }
}

fn over_waypoints(
    file: &ScenarioFile,
    fabric: &Fabric,
    mut routes: CheckedRoutes,
) -> Result<CheckedRoutes, ScenarioError> {
    let topology = file.fabric.topology.as_ref();
    let (waypoints, steps) = match topology {
        Some(topology) => (topology.waypoints(fabric), topology.lane_steps(fabric)),
        None => (Waypoints::of_switches(fabric), LaneSteps::equal(fabric)),
    };
    routes.waypoints = Some(waypoints);
    routes.choice = file.fabric.path_choice;
    on_steps(file, fabric, routes, steps)
}

fn on_steps(
    file: &ScenarioFile,
    fabric: &Fabric,
    mut routes: CheckedRoutes,
    steps: LaneSteps,
) -> Result<CheckedRoutes, ScenarioError> {
    let data_vls = most_lanes(file);
    let steps = steps.with_lanes(data_vls);
    let with = Routes {
        steps: Some(&steps),
        alternatives: routes.alternatives.as_ref(),
        waypoints: routes.waypoints.as_ref(),
        choice: routes.choice,
        ..(&routes.tables).into()
    };
    let found = check_steps(fabric, with);
    if let Some(cycle) = &found.cycle {
        if !file.fabric.allow_credit_loops {
            let error = RouteError::cycle(fabric, cycle);
            let hint = match found.needed {
                needed @ ..=MOST_LANES => format!(
                    "set vl.data-vls to {needed}, or fabric.allow-credit-loops to true to study the deadlock"
                ),
                _ => format!(
                    "these paths need more than the {MOST_LANES} virtual lanes of a port: set fabric.path-choice to \"table\""
                ),
            };
            let key = match routes.choice {
                PathChoice::Table => at("fabric.routing"),
                _ => at("fabric.path-choice"),
            };
            return Err(ScenarioError::new(key, error.to_string()).with_hint(hint));
        }
        routes.report.dependency_cycle = Some(cycle.iter().map(|(port, _)| *port).collect());
    } else {
        routes.report.dependency_cycle = None;
    }
    // A class of service has no more lanes than it needs.
    routes.steps = Some(steps.with_lanes(found.needed.min(data_vls)));
    Ok(routes)
}
