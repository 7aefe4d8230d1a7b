//! Congestion trees, found in the state of the data plane at one instant.
//!
//! The terms are those of Gran et al., "Exploring the Scope of the InfiniBand Congestion Control Mechanism", IPDPS
//! 2012, sections I to III. The definitions hold with and without congestion control.
//!
//! - A Port VL **lacks credits** if it has too few for a packet of MTU size.
//! - A **root** is an output Port VL of a switch that holds at least the threshold in waiting bytes. It either has
//!   credits ("the Port VL has available credits to output data", section II.1) or is connected to a host, whose sink
//!   alone can block the last link.
//! - A **branch** is an output Port VL of a switch with waiting packets and without credits. The input buffer at its
//!   far end holds a packet that waits for a root or for another branch: "branches of the tree will grow from the root,
//!   backwards" (section III).
//! - A **source** is a host whose uplink lacks credits in the same way: the branch has grown "all the way back into a
//!   source node".
//! - **Depth** is the smallest number of such waits from a Port VL to a root, which has depth 0. If a buffer holds
//!   packets for several branches, the branch nearest to a root is the parent. Further criteria are the most waiting
//!   bytes, then the lower number. So a Port VL belongs to at most one tree and follows one parent to the root.
//! - A packet that waits for a Port VL of a tree **contributes** if its path leads over a root: this tree's root,
//!   otherwise the first root on the path. Any other packet is a **victim** of the tree (head-of-line blocking, section
//!   I). A host can be both (footnote 3).

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
