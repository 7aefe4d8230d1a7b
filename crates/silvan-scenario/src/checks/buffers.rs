use std::collections::BTreeMap;

use serde_json::{Value, json};
use silvan_core::{Bytes, Rate, Span};
use silvan_fabric::{Fabric, Link};
use silvan_model::pfc::PfcCable;
use silvan_model::{EngineConfig, MOST_BUFFER, SwitchParams};

use crate::parsed::{FlowControl, ScenarioFile};

pub(crate) fn input_buffer(file: &ScenarioFile) -> Bytes {
    let cable = file.link.kind();
    let limits = file.link.pfc_params().and_then(|pfc| {
        let cable = PfcCable {
            rate: cable.data_rate(),
            propagation: cable.propagation(),
            mtu_wire: Bytes::from_bytes(
                file.packet
                    .mtu
                    .as_u64()
                    .saturating_add(file.packet.header.as_u64()),
            ),
            latency: file.switch.latency,
        };
        pfc.at(cable).ok()
    });
    limits.map_or_else(
        || switch_params(file).buffer_behind(cable, file.packet),
        |limits| limits.buffer,
    )
}

pub(super) fn switch_params(file: &ScenarioFile) -> SwitchParams {
    let lanes_per_buffer = match file.vl.share_buffer {
        true => file.vl.lanes(),
        false => 1,
    };
    SwitchParams {
        lanes_per_buffer,
        ..file.switch.clone()
    }
}

/// The receive buffer that is written for hosts. Under PFC a host takes what arrives, and the key has no effect.
pub(super) fn receive_buffer(file: &ScenarioFile) -> Option<Bytes> {
    let has_credits = file.link.flow_control == FlowControl::Credits;
    file.host.receive_buffer.filter(|_| has_credits)
}

/// The input buffers behind cables of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputBuffers {
    /// Data rate of the cables.
    pub rate: Rate,
    /// Propagation from end to end.
    pub propagation: Span,
    /// True if the buffers are in hosts instead of switches.
    pub in_hosts: bool,
    /// Number of buffers, for each virtual lane.
    pub count: usize,
    /// Size of each.
    pub size: Bytes,
    /// The smallest size with which one lane carries the rate of the cable; `None` under PFC.
    pub needed: Option<Bytes>,
    /// The rate of payload that one lane carries; `None` under PFC.
    pub carried: Option<Rate>,
}

impl InputBuffers {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "rate_bits_per_s": self.rate.bits_per_sec(),
            "propagation_ps": self.propagation.as_ps(),
            "in_hosts": self.in_hosts,
            "count": self.count,
            "bytes": self.size.as_u64(),
            "needed_bytes": self.needed.map(Bytes::as_u64),
            "carried_bits_per_s": self.carried.map(Rate::bits_per_sec),
        })
    }

    fn suffices(&self) -> bool {
        self.needed.is_none_or(|needed| needed <= self.size)
    }
}

pub(crate) fn input_buffers(config: &EngineConfig, fabric: &Fabric) -> Vec<InputBuffers> {
    let mut found: BTreeMap<(u64, u64, bool), InputBuffers> = BTreeMap::new();
    for link in &fabric.links {
        for end in [link.a, link.b] {
            let in_hosts = fabric.nodes[fabric.ports[end].node].as_host().is_some();
            let (rate, propagation) = (link.data_rate(), link.propagation());
            let key = (
                u64::MAX - rate.bits_per_sec(),
                propagation.as_ps(),
                in_hosts,
            );
            let entry = found.entry(key);
            let buffers = entry.or_insert_with(|| behind(config, link, in_hosts));
            buffers.count += 1;
        }
    }
    found.into_values().collect()
}

fn behind(config: &EngineConfig, link: &Link, in_hosts: bool) -> InputBuffers {
    let (packet, cable) = (config.packet, link.kind);
    let (rate, propagation) = (link.data_rate(), link.propagation());
    let buffers = |size, needed, carried| InputBuffers {
        rate,
        propagation,
        in_hosts,
        count: 0,
        size,
        needed,
        carried,
    };
    if let Ok(Some(limits)) = config.pfc_limits(link) {
        return buffers(limits.buffer, None, None);
    }
    let (size, credits) = match in_hosts {
        true => (
            config.host.buffer_behind(cable, packet),
            config.host.credit_loop(cable, packet),
        ),
        false => (
            config.switch.buffer_behind(cable, packet),
            config.switch.credit_loop(cable, packet),
        ),
    };
    buffers(size, Some(credits.needed()), Some(credits.carried(size)))
}

pub(crate) fn warn_of_buffers(config: &EngineConfig, buffers: &[InputBuffers]) -> Vec<String> {
    let too_small = buffers.iter().filter(|buffers| !buffers.suffices());
    too_small
        .map(|buffers| {
            let (key, end) = match buffers.in_hosts {
                true => ("host.receive-buffer", "to a host"),
                false => ("switch.buffer", "to a switch"),
            };
            let lane = match config.data_vls {
                1 => "",
                _ => "one virtual lane of ",
            };
            let InputBuffers {
                rate,
                propagation,
                size,
                ..
            } = buffers;
            let carried = buffers.carried.map_or(0, Rate::bits_per_sec) as f64 / 1e9;
            let needed = buffers.needed.unwrap_or(*size);
            let advice = match needed <= MOST_BUFFER {
                true => format!("{needed} carry its rate"),
                false => format!("no buffer of at most {MOST_BUFFER} carries its rate"),
            };
            format!(
                "{key}: {size} let {lane}a cable of {rate} and {propagation} {end} carry {carried:.1} Gbit/s of payload: {advice}"
            )
        })
        .collect()
}
