use std::path::Path;
use std::sync::Arc;

use silvan_core::{Bytes, HostId, Rate};
use silvan_fabric::Fabric;
use silvan_model::{HostParams, PacketParams};
use silvan_workload::traffic::{
    Environment, HostNames, HostRef, SizeMix, TrafficSection, UnknownHost, read_cdf, read_flows,
};

use super::import::read;
use super::{at, host_named, limits};
use crate::{KeyPath, ScenarioError};

pub(crate) fn environment(
    fabric: &Arc<Fabric>,
    host: &HostParams,
    packet: &PacketParams,
    seed: u64,
) -> Environment {
    let payload_rate = |host_id: HostId| {
        let port = fabric.host_port(host_id);
        let link = fabric.ports[port].link.map(|link| fabric.links[link]);
        let link = link.map(|link| payload_part(link.data_rate(), packet));
        match (link, host.injection_rate) {
            (Some(link), Some(limit)) => link.min(limit),
            (Some(rate), None) | (None, Some(rate)) => rate,
            (None, None) => unreachable!("the builder has cabled every host"),
        }
    };
    Environment {
        injection: fabric.compute_host_ids().map(payload_rate).collect(),
        idle: fabric.host_count() - fabric.compute_host_ids().len(),
        mtu: packet.mtu,
        seed,
        send_queue: host.send_queue,
        names: Arc::new(Names {
            fabric: Arc::clone(fabric),
        }),
    }
}

/// Payload rate of a link with packets of MTU size, rounded down to bit/s.
fn payload_part(rate: Rate, packet: &PacketParams) -> Rate {
    let (mtu, header) = (packet.mtu.as_u64(), packet.header.as_u64());
    let bits = u128::from(rate.bits_per_sec()) * u128::from(mtu) / u128::from(mtu + header);
    // A share of a 64-bit number has 64 bits; zero only below one bit per second.
    Rate::from_bits_per_sec(bits as u64).unwrap_or(rate)
}

pub(crate) fn check_traffic(section: &TrafficSection) -> Result<(), ScenarioError> {
    if section.message.is_some_and(Bytes::is_zero) {
        let error = ScenarioError::new(at("traffic.message"), "zero bytes");
        return Err(error.with_hint("write e.g. \"4 KiB\""));
    }
    Ok(())
}

pub(crate) fn import_sizes(section: &mut TrafficSection, base: &Path) -> Result<(), ScenarioError> {
    for (index, entry) in section.flows.iter_mut().enumerate() {
        let SizeMix::File(file) = &entry.sizes else {
            continue;
        };
        let key = at("traffic.flows").index(index).key("sizes").key("file");
        let key = match file.unit() {
            Some(_) => key.key("path"),
            None => key,
        };
        let (name, text) = read(file.path(), base, &key, limits::TABLES_FILE)?;
        let points = read_cdf(&text, file.unit()).map_err(|error| {
            let message = error.message.clone();
            let position = Some((error.place, 1));
            ScenarioError::new(KeyPath::ROOT, message)
                .with_hint(error.hint)
                .at(&name, position)
        })?;
        entry.sizes = SizeMix::Cdf(points);
    }
    Ok(())
}

pub(crate) fn import_flows(section: &mut TrafficSection, base: &Path) -> Result<(), ScenarioError> {
    for (index, entry) in section.flow_file.iter_mut().enumerate() {
        let Some(file) = entry.file.take() else {
            continue;
        };
        let key = at("traffic.flow-file").index(index).key("file");
        if entry.list.is_some() {
            let error = ScenarioError::new(key, "both a file and a list are given");
            return Err(error.with_hint("use file or list"));
        }
        let (name, text) = read(&file, base, &key, limits::FILE)?;
        read_flows(&text, entry.format).map_err(|error| {
            ScenarioError::new(KeyPath::ROOT, error.message)
                .with_hint(error.hint)
                .at(&name, Some((error.line, 1)))
        })?;
        entry.list = Some(text);
        entry.read_from = Some(name);
    }
    Ok(())
}

#[derive(Debug)]
struct Names {
    fabric: Arc<Fabric>,
}

impl HostNames for Names {
    fn host(&self, name: &str) -> Result<HostId, UnknownHost> {
        host_named(&self.fabric, name, KeyPath::ROOT).map_err(|error| UnknownHost {
            message: error.message().to_owned(),
            hint: error.hint().unwrap_or_default().to_owned(),
        })
    }
}

pub(super) fn hosts_named(
    fabric: &Fabric,
    names: &[HostRef],
    key: &KeyPath,
) -> Result<Vec<HostId>, ScenarioError> {
    let names = names.iter().enumerate();
    let host = |(index, host): (usize, &HostRef)| match host {
        HostRef::Name(name) => host_named(fabric, name, key.index(index)),
        HostRef::Id(host) => Ok(*host),
    };
    names.map(host).collect()
}
