//! Congestion trees, found in the state of the data plane at one instant.
//!
//! The words are those of Gran et al., "Exploring the Scope of the InfiniBand Congestion Control
//! Mechanism", IPDPS 2012, sections I to III; the definitions do not depend on whether congestion
//! control is on.
//!
//! - A Port VL **lacks credits** if those in hand are too few for a packet of MTU size.
//! - A **root** is an output Port VL of a switch for which at least the threshold's bytes wait, and
//!   which has credits ("the Port VL has available credits to output data", section II.1) or
//!   is connected to a host: only the host's own sink can block the last link.
//! - A **branch** is an output Port VL of a switch for which packets wait, which lacks credits, and
//!   whose input buffer at the far end holds a packet that waits for a root or for another branch:
//!   "branches of the tree will grow from the root, backwards" (section III).
//! - A **source** is a host whose uplink lacks credits in the same way: the branch has grown "all
//!   the way back into a source node".
//! - **Depth** is the smallest number of such waits from a Port VL to a root, which has depth 0. A
//!   buffer may hold packets for several branches. The Port VL belongs to the tree of the one, among
//!   those nearest to a root, for which most bytes wait there, and on a tie of the one with the lower
//!   number: every Port VL belongs to one tree at most and follows one parent to its root.
//! - A packet that waits for a Port VL of a tree **contributes** if its way leads over a root: to
//!   that of this tree, or else to the first on the way. Any other one is a **victim** of the tree in
//!   which it waits (head-of-line blocking, section I). A host can be both (footnote 3).

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
    /// What it holds of whose packets, by host.
    pub shares: Vec<HostShare>,
    /// Flows (source, destination, service level) with packets that contribute to it.
    pub contributing_flows: u32,
    /// Flows with packets that are its victims.
    pub victim_flows: u32,
}

/// What a Port VL is to its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Where congestion starts.
    Root,
    /// Waits for credits because of the root.
    Branch,
    /// The same, of a host.
    Source,
}

/// A Port VL of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The output port.
    pub port: PortId,
    /// Its virtual lane.
    pub vl: Vl,
    /// What it is.
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
