//! Parameters of the data plane.

use silvan_core::Vl;
use silvan_fabric::routing::Routes;
use silvan_model::{
    BecnPath, BuildError, EngineConfig, FeedbackParams, HostParams, OutputBuffer, PacketParams,
    SwitchParams, VlArbitration,
};

use super::{advice, at};
use crate::parsed::{self, Limit, OutputBufferSection, ScenarioFile, VlWeight};
use crate::{KeyPath, ScenarioError};

/// The engine's configuration, checked, from a file whose defaults are filled in.
pub(crate) fn build_engine(file: &ScenarioFile) -> Result<EngineConfig, ScenarioError> {
    let feedback = &file.control.feedback;
    let config = EngineConfig {
        data_vls: file.vl.data_vls,
        sl_to_vl: sl_to_vl(file)?,
        switch: SwitchParams {
            latency: file.switch.latency,
            credit_delay: file.switch.credit_delay,
            buffer: file.switch.buffer,
            read_limit: file.switch.read_limit.value(),
            read_speedup_percent: percent(file.switch.read_speedup, "switch.read-speedup")?,
            queueing: file.switch.queueing,
            arbitration: file.switch.arbitration,
            bypass_limit: file.switch.bypass_limit.value(),
            output_buffer: file
                .switch
                .output_buffer
                .as_ref()
                .map(output_buffer)
                .transpose()?,
            vl_arbitration: VlArbitration {
                high: arbitration_table(&file.vl.high, "vl.high")?,
                low: arbitration_table(&file.vl.low, "vl.low")?,
                limit_high: file.vl.limit_high,
            },
        },
        host: HostParams {
            injection_rate: file.host.injection_rate.value(),
            sink_rate: file.host.sink_rate.value(),
            sink: file.host.sink,
            in_order: file.host.in_order,
            receive_buffer: super::pfc::receive_buffer(file),
            credit_delay: file.host.credit_delay,
        },
        packet: PacketParams {
            mtu: file.packet.mtu,
            header: file.packet.header,
        },
        pfc: file.link.pfc_params(),
        feedback: FeedbackParams {
            carrier: feedback.carrier.unwrap_or_default(),
            path: match feedback.path {
                parsed::FeedbackPath::OutOfBand => BecnPath::OutOfBand {
                    delay: feedback.delay,
                },
                parsed::FeedbackPath::InBand => BecnPath::InBand {
                    sl: feedback.sl,
                    bytes: feedback.bytes,
                    priority: feedback.priority,
                },
            },
            coalesce: feedback.coalesce.and_then(Limit::value),
            charge: feedback.charge,
        },
        latency: file.probe.latency,
        seed: file.run.seed,
    };
    config.validate().map_err(|error| refused(&error, file))?;
    Ok(config)
}

/// Checks that there are virtual lanes for the routes, and that they suit the rest.
pub(crate) fn check_engine_routes(
    file: &ScenarioFile,
    config: &EngineConfig,
    routes: Routes<'_>,
) -> Result<(), ScenarioError> {
    config
        .validate_routes(routes)
        .map_err(|error| refused(&error, file))
}

pub(super) fn refused(error: &BuildError, file: &ScenarioFile) -> ScenarioError {
    let advice = advice::on_engine(error);
    ScenarioError::new(key_of(error, file), error.to_string()).with_hint(advice)
}

fn sl_to_vl(file: &ScenarioFile) -> Result<[u8; 16], ScenarioError> {
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

fn output_buffer(section: &OutputBufferSection) -> Result<OutputBuffer, ScenarioError> {
    Ok(OutputBuffer {
        size: section.size,
        speedup_percent: percent(section.speedup, "switch.output-buffer.speedup")?,
        cut_through: section.crossbar == parsed::CrossbarFeed::CutThrough,
    })
}

/// A rate over that of the link, in per cent.
fn percent(speedup: f64, key: &str) -> Result<u32, ScenarioError> {
    let percent = speedup * 100.0;
    let rounded = percent.round();
    let is_exact = (percent - rounded).abs() < 1e-6;
    if !(is_exact && (100.0..=100_000.0).contains(&rounded)) {
        let message = format!("a speedup of {speedup} is not 1 to 1000 in steps of 0.01");
        let error = ScenarioError::new(at(key), message);
        return Err(error.with_hint("write 1 for as fast as the links, or e.g. 1.5"));
    }
    Ok(rounded as u32)
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

/// The key that an error of the engine's own check is about.
fn key_of(error: &BuildError, file: &ScenarioFile) -> KeyPath {
    match error {
        BuildError::DataVls(_) => at("vl.data-vls"),
        BuildError::SlToVl { sl, .. } => at("vl.sl-to-vl").index(usize::from(*sl)),
        BuildError::Mtu(_) => at("packet.mtu"),
        BuildError::Header(_) => at("packet.header"),
        BuildError::BufferTooSmall { which, .. } | BuildError::BufferTooLarge { which, .. } => {
            match *which {
                "PFC buffer" => at("link.pfc.buffer"),
                "host receive buffer" => at("host.receive-buffer"),
                "switch output buffer" => at("switch.output-buffer.size"),
                _ => at("switch.buffer"),
            }
        }
        BuildError::ReadLimit => at("switch.read-limit"),
        BuildError::BypassLimit | BuildError::BypassInFifo => at("switch.bypass-limit"),
        BuildError::ReadSpeedup(_) | BuildError::ReadSpeedupAlone => at("switch.read-speedup"),
        BuildError::Speedup(_) => at("switch.output-buffer.speedup"),
        BuildError::VlNeverServed(_) => at("vl.low"),
        BuildError::VlArbitration { vl, .. } => {
            let names = |entries: &[VlWeight]| entries.iter().position(|entry| entry.0 == *vl);
            match (names(&file.vl.high), names(&file.vl.low)) {
                (Some(index), _) => at("vl.high").index(index),
                (None, Some(index)) => at("vl.low").index(index),
                (None, None) => at("vl"),
            }
        }
        BuildError::PathLanes { sl, .. } => at("vl.sl-to-vl").index(usize::from(*sl)),
        BuildError::PfcScheme => at("control.scheme"),
        BuildError::PfcPriorities(_) => at("vl.data-vls"),
        BuildError::PfcThresholds { .. } => at("link.pfc.xon"),
        BuildError::PfcBuffer { .. } => at("link.pfc.buffer"),
        BuildError::PfcFrame { which, .. } => match *which {
            "pause frame" => at("link.pfc.pause-frame"),
            _ => at("link.pfc.max-frame"),
        },
        BuildError::MessagesOutOfOrder => at("control.feedback.carrier"),
        BuildError::NotificationBytes(_) => at("control.feedback.bytes"),
        BuildError::NotificationCharge(_) => at("control.feedback.charge"),
        BuildError::DelayTooLong { which, .. } => match *which {
            "switch latency" => at("switch.latency"),
            "switch credit delay" => at("switch.credit-delay"),
            "host credit delay" => at("host.credit-delay"),
            "PFC response" => at("link.pfc.response"),
            "PFC interface delay" => at("link.pfc.interface-delay"),
            _ => at("control.feedback.delay"),
        },
        _ => at("fabric"),
    }
}
