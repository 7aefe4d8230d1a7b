use silvan_core::{Bytes, Vl};
use silvan_fabric::routing::Routes;
use silvan_model::{
    BuildError, EngineConfig, FeedbackParams, HostParams, PacketParams, VlArbitration,
};

use super::levels::MOST_LANES;
use super::{at, refused};
use crate::ScenarioError;
use crate::parsed::{ScenarioFile, VlWeight};

pub(crate) fn build_engine(file: &ScenarioFile) -> Result<EngineConfig, ScenarioError> {
    let control = &file.control;
    let telemetry = control.scheme.scheme().wire_bytes(&control.parameters);
    let with_telemetry =
        |bytes: Bytes| Bytes::from_bytes(bytes.as_u64().saturating_add(telemetry.as_u64()));
    let config = EngineConfig {
        data_vls: file.vl.lanes(),
        sl_to_vl: sl_to_vl(file)?,
        vl_arbitration: VlArbitration {
            high: arbitration_table(&file.vl.high, "vl.high")?,
            low: arbitration_table(&file.vl.low, "vl.low")?,
            limit_high: file.vl.limit_high,
        },
        switch: super::buffers::switch_params(file),
        host: HostParams {
            receive_buffer: super::buffers::receive_buffer(file),
            ..file.host.clone()
        },
        packet: PacketParams {
            header: with_telemetry(file.packet.header),
            ..file.packet
        },
        pfc: file.link.pfc_params(),
        feedback: FeedbackParams {
            bytes: with_telemetry(file.control.feedback.bytes),
            ..file.control.feedback
        },
        latency: file.probe.latency,
        seed: file.run.seed,
        fast_forward: file.run.fast_forward,
        bit_errors: Vec::new(),
    };
    config.validate().map_err(|error| refused(&error))?;
    Ok(config)
}

pub(crate) fn check_engine_routes(
    config: &EngineConfig,
    routes: Routes<'_>,
) -> Result<(), ScenarioError> {
    config
        .validate_routes(routes)
        .map_err(|error| refused(&error))
}

pub(crate) fn check_data_vls(file: &ScenarioFile) -> Result<(), ScenarioError> {
    match file.vl.lanes() {
        1..=MOST_LANES => Ok(()),
        lanes => Err(refused(&BuildError::DataVls(lanes))),
    }
}

pub(super) fn sl_to_vl(file: &ScenarioFile) -> Result<[u8; 16], ScenarioError> {
    let given = file.vl.sl_to_vl.as_deref().unwrap_or_default();
    <[u8; 16]>::try_from(given).map_err(|_| {
        let message = format!(
            "{} entries, one for each of the 16 service levels is needed",
            given.len()
        );
        let hint = "list 16 VLs, or leave it out to spread the SLs over all VLs";
        ScenarioError::new(at("vl.sl-to-vl"), message).with_hint(hint)
    })
}

fn arbitration_table(entries: &[VlWeight], key: &str) -> Result<Vec<(Vl, u8)>, ScenarioError> {
    let entries = entries.iter().enumerate();
    entries
        .map(|(index, &(vl, weight))| match Vl::try_new(vl) {
            Ok(vl) => Ok((vl, weight)),
            Err(error) => {
                let error = ScenarioError::new(at(key).index(index), error.to_string());
                Err(error.with_hint("write pairs of VL and weight, e.g. [0, 1]"))
            }
        })
        .collect()
}
