use super::REMOTE;
use super::assignment::{Assignment, PartId};
use super::exchange::Remote;
use crate::choices::ChoiceTables;
use crate::packet::{NONE, Queue};
use crate::plane::Plane;
use crate::records::{Next, Sender};
use crate::table::Table;

impl Plane {
    /// The planes of all parts of a fabric; with `look_ahead`, with tables of neighbouring switches.
    pub(super) fn split(mut self, assignment: &Assignment, look_ahead: bool) -> Vec<Self> {
        let queues = std::mem::take(&mut self.queues);
        let tables = std::mem::take(&mut self.tables);
        let choices = self.routing.choices.take_tables();
        let detours = (self.routing.detours.as_mut()).map(|detours| detours.take_tables());
        let part = |part| {
            let mut plane = self.clone();
            plane.remote = Remote::new(part as PartId, assignment.clone());
            plane.mark_remote_ports();
            plane.keep_own_queues(&queues);
            plane.keep_tables(look_ahead, &tables, &choices, detours.as_ref());
            plane
        };
        (0..assignment.parts()).map(part).collect()
    }

    fn mark_remote_ports(&mut self) {
        for port in 0..self.outs.len() {
            let out = &self.outs[port];
            let crosses = out.kind == Next::Input
                && !self.remote.has_port(port as u32)
                && self.remote.has_port(out.next);
            if crosses && !self.mark_remote_bad_link(port) {
                self.outs[port].head_queue = REMOTE;
            }
        }
        for input in self.ins.iter_mut() {
            if input.upstream != NONE && self.remote.has_port(input.upstream) {
                input.sender = Sender::Remote;
            }
        }
    }

    fn keep_own_queues(&mut self, queues: &Table<Queue>) {
        let vls = self.vls;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let port = index / vls;
            let first = lane.queues as usize;
            lane.queues = self.queues.len() as u32;
            let is_stage = port >= self.fabric_ports;
            let is_host = self.elements[self.ins[port].element as usize].table == NONE && !is_stage;
            if !is_host && !self.remote.has_port(port as u32) {
                let ports = self.elements[self.ins[port].element as usize].ports as usize;
                self.queues.extend_from_slice(&queues[first..first + ports]);
            }
        }
    }

    fn keep_tables(
        &mut self,
        look_ahead: bool,
        tables: &Table<u8>,
        choices: &ChoiceTables,
        detours: Option<&Table<u8>>,
    ) {
        if self.rule.is_some() {
            return;
        }
        let mut is_next = vec![false; self.elements.len()];
        for (port, out) in self.outs.iter().enumerate() {
            if look_ahead && out.kind == Next::Input && !self.remote.has_port(port as u32) {
                is_next[out.next_element as usize] = true;
            }
        }
        let entries = self.hosts.len() + 1;
        for (index, element) in self.elements.iter_mut().enumerate() {
            if element.table == NONE {
                continue;
            }
            let first = element.table as usize;
            element.table = if self.remote.has_port(element.base) && !is_next[index] {
                NONE
            } else {
                self.tables
                    .extend_from_slice(&tables[first..first + entries]);
                self.routing
                    .choices
                    .keep_tables(choices, index, first..first + entries);
                if let (Some(own), Some(all)) = (&mut self.routing.detours, detours) {
                    own.keep_tables(all, first..first + entries);
                }
                (self.tables.len() - entries) as u32
            };
        }
    }
}
