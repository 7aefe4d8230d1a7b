//! What to do about each error of the crates below, whose messages say only what is wrong.

use silvan_fabric::FabricError;
use silvan_fabric::check::RouteError;
use silvan_fabric::routing::{Routing, RoutingError};
use silvan_model::BuildError;
use silvan_workload::traffic::Reason;

use crate::parsed::FabricSection;

/// Bytes of a flow-control credit (IBA volume 1, section 7.9.4).
const CREDIT: u64 = 64;
/// Data lanes that a port can have (IBA volume 1, section 7.6.1).
const MOST_LANES: u8 = 15;

/// Advice on an error of the engine's own check.
pub(super) fn on_engine(error: &BuildError) -> String {
    let advice = match error {
        BuildError::DataVls(_) => "1 is usual; write e.g. 2 for two traffic classes",
        BuildError::SlToVl { vl, .. } => {
            let needed = u16::from(*vl) + 1;
            return format!("map it to a data VL that is there, or set vl.data-vls to {needed}");
        }
        BuildError::Mtu(_) => "InfiniBand MTUs are 256 B to 4 KiB; 2 KiB is usual",
        BuildError::Header(_) => "26 B are usual: LRH, BTH, ICRC and VCRC",
        BuildError::BufferTooSmall { packet, .. } => {
            let whole_credits = packet.div_ceil(CREDIT) * CREDIT;
            return format!("make it at least {whole_credits} B, or lower packet.mtu");
        }
        BuildError::BufferTooLarge { .. } => "write e.g. \"64 KiB\"",
        BuildError::ReadLimit => "write 1 or more, or \"unlimited\"",
        BuildError::BypassLimit => "write e.g. 4, or \"unlimited\"",
        BuildError::BypassInFifo => "leave it out, or set switch.queueing to \"voq\"",
        BuildError::Speedup(_) | BuildError::ReadSpeedup(_) => {
            "write 1 for as fast as the links, or e.g. 1.5"
        }
        BuildError::ReadSpeedupAlone => "set switch.read-limit, e.g. to 1, or leave it out",
        BuildError::VlNeverServed(vl) => return format!("add [{vl}, 1] to vl.low"),
        BuildError::VlArbitration { vl, .. } => {
            let needed = u16::from(*vl) + 1;
            return format!("leave the entry out, or set vl.data-vls to {needed}");
        }
        BuildError::PathLanes {
            data_vls, lanes, ..
        } => {
            let most = MOST_LANES - MOST_LANES % lanes;
            let whole = data_vls.next_multiple_of(*lanes).min(most);
            return format!("leave vl.sl-to-vl out, and set vl.data-vls to {whole}");
        }
        BuildError::PfcPriorities(most) => {
            return format!(
                "use at most 8 virtual lanes, {} fewer",
                most.saturating_sub(8)
            );
        }
        BuildError::PfcScheme => "choose another scheme, or set link.flow-control to \"credits\"",
        BuildError::PfcThresholds { xoff, .. } => {
            return format!("make it at most {xoff} B, or leave it out");
        }
        BuildError::PfcBuffer { xoff, headroom, .. } => {
            let needed = xoff.saturating_add(*headroom);
            return format!("make it at least {needed} B, or leave it out");
        }
        BuildError::PfcFrame { .. } => {
            "84 B are usual for a pause frame; leave the largest frame out"
        }
        BuildError::MessagesOutOfOrder => "use ack-per-packet, or leave fabric.path-choice out",
        BuildError::NotificationBytes(_) => "42 B are usual, the size of a CNP",
        BuildError::NotificationCharge(_) => "64 B is the default; 0 turns the charge off",
        BuildError::DelayTooLong { which, .. } => match *which {
            "switch latency"
            | "switch credit delay"
            | "host credit delay"
            | "PFC response"
            | "PFC interface delay" => "write e.g. \"100 ns\"",
            _ => "write e.g. \"2 us\"",
        },
        BuildError::TooMany { .. } => "make the fabric smaller, or use fewer virtual lanes",
        _ => "plug one cable into each host",
    };
    advice.to_owned()
}

/// Advice on a fabric that cannot be built.
pub(super) fn on_fabric(error: &FabricError) -> String {
    let advice = match error {
        FabricError::BadName { .. } => "choose a name such as \"leaf-03\"",
        FabricError::DuplicateName { .. } => "rename one; switches and hosts share their names",
        FabricError::UnknownNode {
            nearest: Some(nearest),
            ..
        } => return did_you_mean(nearest),
        FabricError::BadEndpoint { .. } => "write e.g. \"leaf-03:19\"; a host has only port 1",
        FabricError::UnknownNode { name, .. } => {
            return format!("add a [[fabric.switch]] or [[fabric.host]] with name = {name:?}");
        }
        FabricError::PortCount { .. } => "write e.g. 36",
        FabricError::NoSuchPort { .. } => {
            "ports count from 1; choose a free one, or give the switch more"
        }
        FabricError::PortUsedTwice { .. } => "move one cable to a free port",
        FabricError::SelfCable { .. } => "lead it to another switch or host",
        FabricError::HostToHost { .. } => "add a [[fabric.switch]] and cable both hosts to it",
        FabricError::UnconnectedHost { name } => {
            return format!("add a [[fabric.cable]] from \"{name}:1\" to a port of a switch");
        }
        FabricError::NoHosts => "add a [[fabric.host]] with a [[fabric.cable]]",
        FabricError::BadLid { .. } => "leave out the LID",
        FabricError::DuplicateLid { .. } | FabricError::DuplicateGuid { .. } => {
            "give each node one of its own, or leave it out"
        }
        FabricError::LidsExhausted { .. } => {
            "leave out all LIDs and tables by LID: a fabric without them can be simulated, but not managed"
        }
        FabricError::BadParameter { hint, .. } => return hint.clone(),
        _ => "change the numbers of the generator in [fabric]",
    };
    advice.to_owned()
}

/// Advice on routes that cannot be computed, or on given tables that name what is not there.
pub(super) fn on_routing(error: &RoutingError) -> String {
    let advice = match error {
        RoutingError::Disconnected { from, .. } => {
            return format!("add a [[fabric.cable]] from {from:?} towards it");
        }
        RoutingError::UnknownSwitch {
            nearest: Some(nearest),
            ..
        }
        | RoutingError::UnknownDestination {
            nearest: Some(nearest),
            ..
        } => return did_you_mean(nearest),
        RoutingError::UnknownSwitch { .. } => "a table is named after its switch",
        RoutingError::DuplicateTable { .. } => "merge them into one",
        RoutingError::UnknownDestination { .. } => "name a host of the fabric",
        RoutingError::DuplicateEntry { .. } => "keep one of them",
        RoutingError::NotAGrid { .. } => "use a torus of at most four dimensions",
        RoutingError::Refused { hint, .. } => hint,
        RoutingError::DeadPort { .. } => "name a port that a [[fabric.cable]] is plugged into",
        _ => "use min-hop instead",
    };
    advice.to_owned()
}

fn did_you_mean(nearest: &str) -> String {
    format!("did you mean {nearest:?}?")
}

/// Advice on forwarding tables, given or computed, that do not lead where they should.
/// `from_file`: the tables come from a file of their own.
/// `lanes`: how many virtual lanes would keep the paths from deadlock, 1 if that is not known.
pub(super) fn on_route(
    error: &RouteError,
    section: &FabricSection,
    from_file: bool,
    lanes: u8,
) -> String {
    let routing = section.routing();
    let linear = from_file || !section.linear_tables.is_empty();
    if let RouteError::DependencyCycle { .. } = error {
        let hint = routing.algorithm().and_then(|one| one.deadlock_hint(lanes));
        if let Some(hint) = hint {
            return format!("{hint}, or fabric.allow-credit-loops to true to study the deadlock");
        }
        return "set fabric.routing to \"layered-min-hop\"; or let OpenSM route it, e.g. silvan route --engine dfsssp with vl.data-vls = 8; or set \
                fabric.allow-credit-loops to true to study the deadlock"
            .to_owned();
    }
    if let RouteError::NoLane { lane, .. } = error {
        return on_lane(*lane);
    }
    if routing != Routing::Explicit {
        return "choose another fabric.routing".to_owned();
    }
    match error {
        RouteError::NoEntry { .. } if linear => {
            "set fabric.unreachable to \"drop\" to discard and count such packets, or collect the \
             tables again"
                .to_owned()
        }
        _ if linear => "take tables and fabric at the same time".to_owned(),
        RouteError::NoEntry {
            switch,
            destination,
            ..
        } => format!("add {destination} = 1, or another port, to [fabric.tables.{switch}]"),
        RouteError::Loop { .. } => {
            "change the port in one of these tables to one that leads closer".to_owned()
        }
        _ => "name a port that leads towards it".to_owned(),
    }
}

/// Advice on a virtual lane that is mapped to and does not exist.
pub(super) fn on_lane(lane: u8) -> String {
    if lane < MOST_LANES {
        return format!("set vl.data-vls to {}", lane + 1);
    }
    "VL 15 carries no data: use another service level, or change the table".to_owned()
}

/// Advice on a value that the traffic refuses.
pub(super) fn on_traffic(reason: &Reason) -> String {
    let advice = match reason {
        Reason::OutsideFabric { .. } => "name a host of the fabric",
        Reason::Repeated(_) => "name each host once",
        Reason::ToItself(_) => {
            "choose another receiver, or for a flow or a sequence set traffic.loopback to true"
        }
        Reason::TooFewHosts { available, .. } => {
            return format!("ask for at most {available}, or enlarge the fabric");
        }
        Reason::NoOtherHost(_) => "enlarge the fabric",
        Reason::NoHosts => "name at least one host",
        Reason::NoHotspots => "set traffic.nodes.hotspots, e.g. to 1",
        Reason::NotAFraction(_) => "write e.g. 0.5 for one half",
        Reason::NotAPercentage(_) => "write e.g. 60 for 60 %",
        Reason::FractionSum(_) => "lower one of them; the rest of the hosts is idle",
        Reason::MixedRoles => "give all roles in the same way",
        Reason::UnwantedKey {
            choice,
            wanted: None,
        } => return format!("{choice} has no parameters"),
        Reason::UnwantedKey {
            choice,
            wanted: Some(key),
        }
        | Reason::MissingKey { choice, key } => return format!("{choice} needs {key}"),
        Reason::UnknownHost(unknown) => return unknown.hint.clone(),
        Reason::ZeroBytes => "write e.g. \"4 KiB\"",
        Reason::TooLarge(_) => "write e.g. \"4 KiB\"; a flow's bytes may be more",
        Reason::ZeroIterations => "write 1 or more, or \"unlimited\"",
        Reason::ZeroSpan => "write e.g. \"1 ms\", or \"unlimited\" where that is allowed",
        Reason::OnOffUnsaturated => "leave out the load or rate, or the times on and off",
        Reason::ZeroBacklog => "write 1 or more",
        Reason::EndBeforeStart { .. } => "choose a later end, or leave it out",
        Reason::ZeroLoad => "write e.g. 0.5 to offer half the injection rate",
        Reason::AboveInjection { .. } => {
            "lower it, or write \"saturating\" for as much as the host can inject"
        }
        Reason::NotAPowerOfTwo(_) => "use the pattern \"random\" or \"shift\" instead",
        Reason::WrongLength { hosts, .. } => {
            return format!("list {hosts} receivers, one for each host");
        }
        Reason::FlowsSaturate => "write e.g. load = 0.5",
        Reason::NoPace => "set load, e.g. to 0.5; or outstanding, e.g. to 4, for a closed loop",
        Reason::TwoPaces => "use one of load, outstanding and interval",
        Reason::ZeroOutstanding => "write 1 or more",
        Reason::Outstanding { .. } => "write e.g. 4",
        Reason::ZeroFlows => "write 1 or more, or \"unlimited\"",
        Reason::NotASquare(_) => "use another pattern, or a fabric of n x n hosts",
        Reason::RackSize { .. } => "choose a divisor of the number of hosts, from 2 to half of it",
        Reason::SizeRange { .. } => "let `to` be larger than `from`",
        Reason::FlowTooLarge(_) => "write e.g. \"1 MiB\"",
        Reason::ParetoShape(_) => "write e.g. 1.2",
        Reason::Cdf(error) => error.hint,
        Reason::UnreadFile(_) => "give the points as cdf",
        Reason::NameTaken(_) => "choose another name, or leave it out",
        _ => "use fewer entries",
    };
    advice.to_owned()
}
