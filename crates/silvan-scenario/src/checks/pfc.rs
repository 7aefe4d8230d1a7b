//! Links with priority-based flow control (PFC) in the place of credits.

use silvan_cc::schemes::ib_cc::PortSelection;
use silvan_cc::schemes::{Changes, SchemeName};
use silvan_core::document::SourceText;
use silvan_fabric::Fabric;
use silvan_model::pfc::{ROCE_V2_CNP, ROCE_V2_OVERHEAD};
use silvan_model::{EngineConfig, HostParams, SwitchParams};

use super::{at, refused};
use crate::ScenarioError;
use crate::parsed::{FlowControl, ScenarioFile};

/// Ethernet packets and notifications have the headers of RoCE v2 by default.
pub(crate) fn fill_ethernet(source: &SourceText, file: &mut ScenarioFile) {
    if file.link.flow_control != FlowControl::Pfc {
        return;
    }
    if !source.has(&at("packet.header")) {
        file.packet.header = ROCE_V2_OVERHEAD;
    }
    if !source.has(&at("control.feedback.bytes")) {
        file.control.feedback.bytes = ROCE_V2_CNP;
    }
}

/// Checks the headroom of every cable, and that no key needs credits.
pub(crate) fn check_pfc(
    file: &ScenarioFile,
    config: &EngineConfig,
    fabric: &Fabric,
    settings: &Changes,
) -> Result<(), ScenarioError> {
    if config.pfc.is_none() {
        if file.link.pfc.is_some() {
            let message = "links have credits, so these thresholds have no effect".to_owned();
            let hint = "set link.flow-control to \"pfc\", or leave the section out";
            return Err(ScenarioError::new(at("link.pfc"), message).with_hint(hint));
        }
        return Ok(());
    }
    let scheme = file.control.scheme.scheme();
    if scheme.includes(SchemeName::Pft) {
        let message = format!(
            "{} reads the credits of a host, and links with PFC have none",
            scheme.as_str()
        );
        let hint = "choose another scheme, e.g. \"dcqcn\", or set link.flow-control to \"credits\"";
        return Err(ScenarioError::new(at("control.scheme"), message).with_hint(hint));
    }
    if scheme.includes(SchemeName::IbCc) {
        let mask = file.control.parameters.ib_cc.switch.credit_mask;
        let timed = settings.timed.iter().map(|(_, change)| change);
        let mut changes = settings.initial.iter().chain(timed);
        if mask != PortSelection::None || changes.any(|change| change.concerns_credits()) {
            let message =
                "a switch cannot return credits late, because links with PFC have none".to_owned();
            let hint = "leave credit-mask, credit-threshold and credit-return-delay out, also for single ports";
            return Err(
                ScenarioError::new(at("control.ib-cc.switch.credit-mask"), message).with_hint(hint),
            );
        }
    }
    for link in &fabric.links {
        config.pfc_limits(link).map_err(|error| refused(&error))?;
    }
    Ok(())
}

pub(crate) fn warn_of_credits(file: &ScenarioFile) -> Option<String> {
    if file.link.flow_control != FlowControl::Pfc {
        return None;
    }
    let (switch, host) = (SwitchParams::default(), HostParams::default());
    let changed = [
        ("switch.buffer", file.switch.buffer != switch.buffer),
        (
            "switch.credit-delay",
            file.switch.credit_delay != switch.credit_delay,
        ),
        (
            "host.receive-buffer",
            file.host.receive_buffer != host.receive_buffer,
        ),
        (
            "host.credit-delay",
            file.host.credit_delay != host.credit_delay,
        ),
    ];
    let changed = changed.iter().filter(|(_, is_changed)| *is_changed);
    let keys: Vec<_> = changed.map(|(key, _)| *key).collect();
    let verb = if keys.len() == 1 { "has" } else { "have" };
    (!keys.is_empty()).then(|| {
        format!(
            "{} {verb} no effect: with link.flow-control = \"pfc\" link.pfc states buffers and delays",
            keys.join(", ")
        )
    })
}
