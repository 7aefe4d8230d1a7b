//! The channel-dependency graph between switches.

use silvan_units::{IdVec, PortId};

use super::tree::DestinationTree;
use crate::Fabric;

/// A set of port numbers 1 to 254, as bits.
type PortSet = [u64; 4];

/// Which channel is followed by which on some route.
///
/// A channel between switches is represented by the port it enters a switch by. Channels from and to
/// hosts are left out: nothing depends on the former, the latter depend on nothing, so neither is
/// part of a cycle.
pub(super) struct Dependencies<'f> {
    fabric: &'f Fabric,
    /// For each channel, the numbers of the ports by which packets from it leave the switch.
    outputs: IdVec<PortId, PortSet>,
}

impl<'f> Dependencies<'f> {
    pub(super) fn new(fabric: &'f Fabric) -> Self {
        Self {
            fabric,
            outputs: IdVec::filled([0; 4], fabric.ports.len()),
        }
    }

    /// Adds the dependencies of the routes to one destination.
    pub(super) fn add(&mut self, tree: &DestinationTree<'_>) {
        for step in tree.steps() {
            let Some((switch, entry)) = step.next else {
                continue;
            };
            let Some(following) = tree.step_of(switch) else {
                continue;
            };
            if following.next.is_some() {
                let number = usize::from(self.fabric.ports[following.out].number.as_u8());
                self.outputs[entry][number / 64] |= 1 << (number % 64);
            }
        }
    }

    /// A cycle, as the ports that packets leave by, in the order of travel.
    pub(super) fn find_cycle(&self) -> Option<Vec<PortId>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            Never,
            OnPath,
            Done,
        }

        let mut visits = IdVec::filled(Visit::Never, self.fabric.ports.len());
        // The channels of the current path, each with its followers that are still to be tried.
        let mut path: Vec<(PortId, Vec<PortId>)> = Vec::new();
        for start in self.fabric.ports.ids() {
            if visits[start] != Visit::Never || self.outputs[start] == [0; 4] {
                continue;
            }
            visits[start] = Visit::OnPath;
            path.push((start, self.followers(start)));
            while let Some((channel, followers)) = path.last_mut() {
                let Some(follower) = followers.pop() else {
                    visits[*channel] = Visit::Done;
                    path.pop();
                    continue;
                };
                match visits[follower] {
                    Visit::Done => {}
                    Visit::Never => {
                        visits[follower] = Visit::OnPath;
                        path.push((follower, self.followers(follower)));
                    }
                    Visit::OnPath => {
                        let entered = path.iter().position(|(channel, _)| *channel == follower);
                        let cycle = &path[entered.unwrap_or(0)..];
                        let leaves_by = |(entry, _): &(PortId, _)| self.fabric.ports[*entry].peer;
                        return Some(cycle.iter().filter_map(leaves_by).collect());
                    }
                }
            }
        }
        None
    }

    /// The channels that some route takes after `entry`, in the order of port numbers.
    fn followers(&self, entry: PortId) -> Vec<PortId> {
        let node = &self.fabric.nodes[self.fabric.ports[entry].node];
        node.ports()
            .filter(|port| {
                let number = usize::from(self.fabric.ports[*port].number.as_u8());
                self.outputs[entry][number / 64] & (1 << (number % 64)) != 0
            })
            .filter_map(|port| self.fabric.ports[port].peer)
            .collect()
    }
}
