//! Congestion trees at one instant, by Gran et al., "Exploring the Scope of the InfiniBand Congestion Control
//! Mechanism", IPDPS 2012, sections I to III, with or without congestion control.
//!
//! - A Port VL **lacks credits** if it has too few for a packet of MTU size.
//! - A **root** is a switch's output Port VL with at least the threshold in waiting bytes, and with credits (section
//!   II.1) or connected to a host.
//! - A **branch** is one with waiting packets and without credits, whose far buffer holds a packet for a root or branch
//!   (section III).
//! - A **source** is a host whose uplink lacks credits in the same way.
//! - **Depth** is the smallest number of such waits to a root. The parent is nearest to a root, then has the most
//!   waiting bytes, then the lowest number.
//! - A waiting packet **contributes** to the root on its path (this tree's, else the first); any other is a **victim**
//!   (section I). A host can be both (footnote 3).

use silvan_core::{Bytes, HostId, PortId, Time, Vl};

/// All congestion trees of an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forest {
    /// The instant.
    pub at: Time,
    /// The trees, by port and virtual lane of their roots.
    pub trees: Vec<Tree>,
    /// Bytes on the wire of all packets that wait in switches, in trees or not.
    pub waiting: Bytes,
}

/// A congestion tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Output port at its root.
    pub root: PortId,
    /// Virtual lane of the root.
    pub vl: Vl,
    /// The host that the root faces; `None` for a root inside the fabric.
    pub destination: Option<HostId>,
    /// Root, branches and sources, by depth, then by port and virtual lane.
    pub members: Vec<Member>,
    /// Bytes that the tree holds, by the host that sent them.
    pub shares: Vec<HostShare>,
    /// Flows (source, destination, service level) with packets that contribute to it.
    pub contributing_flows: u32,
    /// Flows with packets that are its victims.
    pub victim_flows: u32,
}

/// Role of a Port VL in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Start of the congestion.
    Root,
    /// Waits for credits because of the root.
    Branch,
    /// A host whose uplink lacks credits because of the tree.
    Source,
}

/// A Port VL of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The output port.
    pub port: PortId,
    /// Virtual lane of the member.
    pub vl: Vl,
    /// Role of the member.
    pub role: Role,
    /// Waits from here to the root.
    pub depth: u32,
    /// Output port of the member that it waits for; `None` for the root.
    pub parent: Option<PortId>,
    /// Bytes on the wire that wait for it in its switch; zero for a host.
    pub queued: Bytes,
}

/// The packets of one host that a tree holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// The sending host.
    pub host: HostId,
    /// Bytes on the wire that contribute to the tree, wherever in the forest they wait.
    pub contributing: Bytes,
    /// Bytes on the wire that are victims of the tree.
    pub victim: Bytes,
}

impl Tree {
    /// Port VLs of switches: the root and the branches.
    pub fn ports(&self) -> usize {
        let in_switch = |member: &&Member| member.role != Role::Source;
        self.members.iter().filter(in_switch).count()
    }

    /// Hosts that the tree has grown back to.
    pub fn sources(&self) -> usize {
        self.members.len() - self.ports()
    }

    /// Bytes on the wire that wait for its Port VLs.
    pub fn queued(&self) -> Bytes {
        self.members.iter().map(|member| member.queued).sum()
    }

    /// The largest depth of a member.
    pub fn depth(&self) -> u32 {
        self.members
            .iter()
            .map(|member| member.depth)
            .max()
            .unwrap_or(0)
    }

    /// Hosts with packets that contribute.
    pub fn contributors(&self) -> usize {
        let contributes = |share: &&HostShare| !share.contributing.is_zero();
        self.shares.iter().filter(contributes).count()
    }

    /// Hosts with packets that are victims.
    pub fn victims(&self) -> usize {
        let suffers = |share: &&HostShare| !share.victim.is_zero();
        self.shares.iter().filter(suffers).count()
    }

    /// Bytes on the wire that contribute.
    pub fn contributing(&self) -> Bytes {
        self.shares.iter().map(|share| share.contributing).sum()
    }

    /// Bytes on the wire that are victims.
    pub fn victim(&self) -> Bytes {
        self.shares.iter().map(|share| share.victim).sum()
    }
}
