use silvan_core::{HostId, PortId, PortNumber, SwitchId};

use super::RouteError;
use super::tree::DestinationTree;
use crate::routing::{Alternatives, PathLanes};
use crate::{Fabric, ForwardingTables};

type PortSet = [u64; 4];

fn insert(set: &mut PortSet, number: PortNumber) {
    let number = usize::from(number.as_u8());
    set[number / 64] |= 1 << (number % 64);
}

#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    None,
    Only(PortNumber),
    Several(&'a [PortNumber]),
}

impl Way<'_> {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Only(one), Self::Only(other)) => one == other,
            (Self::Several(one), Self::Several(other)) => std::ptr::eq(*one, *other),
            _ => false,
        }
    }

    fn ports(&self) -> PortSet {
        let mut set = PortSet::default();
        match self {
            Self::None => {}
            Self::Only(number) => insert(&mut set, *number),
            Self::Several(numbers) => {
                numbers.iter().for_each(|number| insert(&mut set, *number));
            }
        }
        set
    }
}

fn contains(set: &PortSet, number: PortNumber) -> bool {
    let number = usize::from(number.as_u8());
    set[number / 64] & (1 << (number % 64)) != 0
}

pub(super) type Channel = (PortId, u8);

/// Channels that follow each other on some route, by the port of entry. Channels of hosts are never part of a cycle.
pub(super) struct Dependencies<'f> {
    fabric: &'f Fabric,
    lanes: usize,
    outputs: Vec<PortSet>,
}

impl<'f> Dependencies<'f> {
    pub(super) fn new(fabric: &'f Fabric, lanes: Option<&PathLanes>) -> Self {
        Self::on_lanes(fabric, lanes.map_or(1, PathLanes::lanes))
    }

    pub(super) fn on_lanes(fabric: &'f Fabric, lanes: u8) -> Self {
        let lanes = usize::from(lanes);
        Self {
            fabric,
            lanes,
            outputs: vec![[0; 4]; fabric.ports.len() * lanes * lanes],
        }
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (set, more) in self.outputs.iter_mut().zip(&other.outputs) {
            for (word, more) in set.iter_mut().zip(more) {
                *word |= more;
            }
        }
    }

    fn sets(&self, (entry, lane): Channel) -> usize {
        (entry.index() * self.lanes + usize::from(lane)) * self.lanes
    }

    fn number(&self, port: PortId) -> PortNumber {
        self.fabric.ports[port].number
    }

    pub(super) fn insert(&mut self, channel: Channel, out: PortId, lane: u8) {
        let set = self.sets(channel) + usize::from(lane);
        insert(&mut self.outputs[set], self.fabric.ports[out].number);
    }

    pub(super) fn add(&mut self, tree: &DestinationTree<'_>) {
        for step in tree.steps() {
            let Some((switch, entry)) = step.next else {
                continue;
            };
            let Some(following) = tree.step_of(switch) else {
                continue;
            };
            if following.next.is_some() {
                self.insert((entry, 0), following.out, 0);
            }
        }
    }

    /// Adds the dependencies of routes with lanes. Errors if a packet would need a missing lane.
    pub(super) fn add_with_lanes(
        &mut self,
        tree: &DestinationTree<'_>,
        lanes: &PathLanes,
    ) -> Result<(), RouteError> {
        let mut found = Vec::new();
        for (leaf, sources) in tree.sources() {
            let Some(out) = tree.step_of(leaf).map(|step| step.out) else {
                continue;
            };
            let mut followed = Vec::new();
            for &source in sources.iter().filter(|host| **host != tree.destination()) {
                let input = self.fabric.host_attachment(source).1;
                for path in lanes.kinds(source, tree.destination()) {
                    let first = lanes.lane(leaf, self.number(input), self.number(out), path);
                    if followed.contains(&(path, first)) {
                        continue;
                    }
                    followed.push((path, first));
                    self.follow_lanes(tree, lanes, (leaf, source), path, &mut found)?;
                }
            }
        }
        for (channel, out, lane) in found {
            self.insert(channel, out, lane);
        }
        Ok(())
    }

    fn follow_lanes(
        &self,
        tree: &DestinationTree<'_>,
        lanes: &PathLanes,
        (leaf, source): (SwitchId, HostId),
        path: u8,
        found: &mut Vec<(Channel, PortId, u8)>,
    ) -> Result<(), RouteError> {
        let mut at = leaf;
        let mut input = self.number(self.fabric.host_attachment(source).1);
        // The lane from the host has no effect: nothing depends on that channel.
        let mut channel: Option<Channel> = None;
        while let Some(step) = tree.step_of(at) {
            let lane = lanes.lane(at, input, self.number(step.out), path);
            if lane >= lanes.lanes() {
                let name = |host: HostId| self.fabric.host(host).name.clone();
                return Err(RouteError::NoLane {
                    source_host: name(source),
                    destination: name(tree.destination()),
                    switch: self.fabric.switch(at).name.clone(),
                    input,
                    output: self.number(step.out),
                    level: path,
                    lane,
                });
            }
            let Some((next, entry)) = step.next else {
                break;
            };
            found.extend(channel.map(|channel| (channel, step.out, lane)));
            channel = Some((entry, lane));
            input = self.number(entry);
            at = next;
        }
        Ok(())
    }

    /// `ways` are the last destination's: those of one leaf are mostly equal.
    pub(super) fn add_alternatives<'a>(
        &mut self,
        destination: HostId,
        tables: &ForwardingTables,
        alternatives: &'a Alternatives,
        ways: &mut Vec<Way<'a>>,
    ) {
        let fabric = self.fabric;
        let mut is_new = ways.is_empty();
        ways.resize(fabric.switch_count(), Way::None);
        for (switch, way) in fabric.switch_ids().zip(ways.iter_mut()) {
            let several = alternatives.get(switch, destination);
            let found = if several.is_empty() {
                let only = tables.to_host(switch, destination);
                only.map_or(Way::None, |number| self.only(switch, number))
            } else {
                Way::Several(several)
            };
            is_new |= !found.is_same(way);
            *way = found;
        }
        if !is_new {
            return;
        }
        let sets: Vec<PortSet> = ways.iter().map(Way::ports).collect();
        for (switch, set) in fabric.switch_ids().zip(&sets) {
            let outs = fabric.switch(switch).ports();
            let outs = outs.filter(|out| contains(set, fabric.ports[*out].number));
            for (next, entry) in outs.filter_map(|out| fabric.peer_switch(out)) {
                let followers = self.sets((entry, 0));
                for (word, more) in self.outputs[followers].iter_mut().zip(sets[next.index()]) {
                    *word |= more;
                }
            }
        }
    }

    fn only(&self, switch: SwitchId, number: PortNumber) -> Way<'static> {
        let port = self.fabric.switch(switch).port(number);
        match port.and_then(|port| self.fabric.peer_switch(port)) {
            Some(_) => Way::Only(number),
            None => Way::None,
        }
    }

    pub(super) fn find_cycle(&self) -> Option<Vec<(PortId, u8)>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            Never,
            OnPath,
            Done,
        }

        let place = |(entry, lane): Channel| entry.index() * self.lanes + usize::from(lane);
        let mut visits = vec![Visit::Never; self.fabric.ports.len() * self.lanes];
        // Channels of the path, with untried followers.
        let mut path: Vec<(Channel, Vec<Channel>)> = Vec::new();
        let ports = self.fabric.ports.ids();
        let lanes = 0..self.lanes as u8;
        for start in ports.flat_map(|port| lanes.clone().map(move |lane| (port, lane))) {
            if visits[place(start)] != Visit::Never {
                continue;
            }
            visits[place(start)] = Visit::OnPath;
            path.push((start, self.followers(start)));
            while let Some((channel, followers)) = path.last_mut() {
                let Some(follower) = followers.pop() else {
                    visits[place(*channel)] = Visit::Done;
                    path.pop();
                    continue;
                };
                match visits[place(follower)] {
                    Visit::Done => {}
                    Visit::Never => {
                        visits[place(follower)] = Visit::OnPath;
                        path.push((follower, self.followers(follower)));
                    }
                    Visit::OnPath => {
                        let entered = path.iter().position(|(channel, _)| *channel == follower);
                        let cycle = &path[entered.unwrap_or(0)..];
                        let leaves_by = |((entry, lane), _): &(Channel, _)| {
                            let peer = self.fabric.ports[*entry].peer?;
                            Some((peer, *lane))
                        };
                        return Some(cycle.iter().filter_map(leaves_by).collect());
                    }
                }
            }
        }
        None
    }

    fn followers(&self, channel: Channel) -> Vec<Channel> {
        let fabric = self.fabric;
        let node = &fabric.nodes[fabric.ports[channel.0].node];
        let sets = &self.outputs[self.sets(channel)..][..self.lanes];
        let lanes = (0_u8..).zip(sets).filter(|(_, set)| **set != [0; 4]);
        let following = lanes.flat_map(|(lane, set)| {
            let ports = node
                .ports()
                .filter(|port| contains(set, fabric.ports[*port].number));
            ports.map(move |port| (port, lane))
        });
        following
            .filter_map(|(port, lane)| Some((fabric.ports[port].peer?, lane)))
            .collect()
    }
}
