use std::path::Path;
use std::sync::Arc;

use silvan_core::document::SourceText;
use silvan_fabric::Fabric;
use silvan_model::EngineConfig;

use crate::checks::at;
use crate::checks::engine::{build_engine, check_data_vls};
use crate::checks::fabric::{
    ChosenRouting, build_fabric, build_routes, choose_routing, warn_of_routing,
};
use crate::checks::faults::{build_in, check_later};
use crate::checks::import::{import_fabric, import_guids, import_host_names, import_tables};
use crate::checks::kept::{Key, RoutedFabric, keep, kept};
use crate::checks::levels::lanes_named;
use crate::checks::limits::{check_name, check_runs};
use crate::checks::pfc::fill_ethernet;
use crate::checks::run::check_run;
use crate::checks::sharp::add_nodes;
use crate::effective;
use crate::faults::bit_errors_of;
use crate::parsed::ScenarioFile;
use crate::topology::{check_fabric_keys, read_routing, read_topology};
use crate::variants::published_settings;
use crate::{KeyPath, ScenarioError};

#[derive(Debug)]
pub(crate) struct Layout {
    pub file: ScenarioFile,
    pub warnings: Vec<String>,
    pub fabric: Arc<Fabric>,
    pub routed: RoutedFabric,
    pub engine: EngineConfig,
    key: Option<Key>,
}

pub(crate) fn lay_out(
    source: &SourceText,
    base: &Path,
) -> Result<(Layout, Vec<KeyPath>), ScenarioError> {
    let mut layout = Layout::of(source, base, None)?;
    let (settings, warning) = published_settings(source, base, &layout);
    let (source, published) = source.with_defaults(settings);
    if !published.is_empty() {
        layout = Layout::of(&source, base, Some(layout))?;
    }
    layout.warnings.extend(warning);
    Ok((layout, published))
}

impl Layout {
    pub fn of(
        source: &SourceText,
        base: &Path,
        other: Option<Self>,
    ) -> Result<Self, ScenarioError> {
        check_fabric_keys(source)?;
        let mut file: ScenarioFile = source.read()?;
        file.fabric.topology = read_topology(source)?;
        file.fabric.routing = read_routing(source)?;
        check_name(&file.name)?;
        check_runs(&file)?;
        let mut warnings = import_fabric(&mut file.fabric, &file.link, base)?;
        import_host_names(&mut file.fabric, base)?;
        let lanes_are_given = file.vl.sl_to_vl.is_some();
        check_data_vls(&file)?;
        fill_ethernet(source, &mut file);
        effective::fill_defaults(&mut file);
        check_run(&file)?;
        let key = Key::of(&file);
        let of_other = other.filter(|other| key.is_some() && other.key == key);
        let known = of_other
            .map(|other| other.routed)
            .or_else(|| key.as_ref().and_then(kept));
        let (fabric, faults) = match &known {
            Some(routed) => (Arc::clone(&routed.fabric), Arc::clone(&routed.faults)),
            None => {
                let fabric = build_fabric(&file.fabric, &file.link)?;
                let mut fabric = add_nodes(fabric, &file.traffic, &file.link)?;
                let faults = build_in(&file, &mut fabric)?;
                (Arc::new(fabric), Arc::new(faults))
            }
        };
        check_later(&file, &faults.later)?;
        let chosen = match &known {
            Some(routed) => ChosenRouting::clone(&routed.chosen),
            None => {
                let lists = import_guids(&mut file.fabric, &fabric, base, &mut warnings)?;
                choose_routing(&file.fabric, &fabric.without_aggregation(), lists)?
            }
        };
        warnings.extend(warn_of_routing(&file.fabric));
        file.fabric.routing = Some(chosen.routing.clone());
        let origin = file.fabric.routing_file.is_some();
        let origin = origin.then(|| at("fabric.routing-file"));
        import_tables(&mut file.fabric, &fabric, base)?;
        let has_levels_only = !file.fabric.path_sl.is_empty() && file.fabric.sl_to_vl.is_empty();
        if !lanes_are_given && has_levels_only {
            effective::leave_lanes_to_paths(&mut file);
        }
        if file.fabric.routing().algorithm().is_none() {
            let lanes = lanes_named(&file.fabric);
            file.vl.data_vls.get_or_insert(lanes);
            effective::fill_lanes(&mut file);
        }
        let routed = match known {
            Some(routed) => routed,
            None => {
                let uncut = faults.uncut.as_ref();
                let routes = build_routes(&file, &fabric, uncut, origin.as_ref())?;
                let routed = RoutedFabric::new(Arc::clone(&fabric), faults, chosen, routes);
                if let Some(key) = key.clone() {
                    keep(key, &routed);
                }
                routed
            }
        };
        file.vl.data_vls.get_or_insert(routed.lanes_needed());
        effective::fill_lanes(&mut file);
        let mut engine = build_engine(&file)?;
        engine.bit_errors = bit_errors_of(&routed.faults.later);
        Ok(Self {
            file,
            warnings,
            fabric,
            routed,
            engine,
            key,
        })
    }
}
