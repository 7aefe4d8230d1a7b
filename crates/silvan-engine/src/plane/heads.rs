use silvan_core::prefetch::prefetch;
use silvan_fabric::routing::ComputedRoutes;

use super::{NO_ROUTE, Plane, UNREAD};
use crate::bit_errors::BAD_LINK;
use crate::events::Head;
use crate::packet::{NONE, Packet};
use crate::partition::REMOTE;
use crate::prefetching::WorkingSet;
use crate::records::{Element, Next};
use crate::routing::CHOOSE;
use crate::table::Table;
use crate::variant::EngineVariant;

impl Plane {
    /// `NONE` if the switch chooses or has no route.
    #[inline(always)]
    pub fn output_of(&self, element: u32, destination: u32) -> u32 {
        let record = self.elements[element as usize];
        match &self.rule {
            Some(rule) if record.table != NONE => {
                computed_output(rule, element, record, destination)
            }
            _ => table_output(&self.tables, record, destination),
        }
    }

    /// The output, or the index of its table entry, which [`resolve`](Self::resolve) reads later.
    #[inline(always)]
    pub(crate) fn noted_output(&self, element: u32, packet: &Packet) -> u32 {
        let record = self.elements[element as usize];
        if self.working_set == WorkingSet::ExceedsCaches && record.table != NONE {
            let entry = match &self.rule {
                Some(rule) => rule.entry(element as usize, packet.destination() as usize) as u32,
                None => record.table + packet.destination(),
            };
            return UNREAD | entry;
        }
        table_output(&self.tables, record, packet.destination())
    }

    /// Decodes the output that [`push_head`](Self::push_head) has stored.
    #[inline(always)]
    pub fn resolve(&self, port: u32, noted: u32, packet: &Packet) -> u32 {
        if noted < UNREAD || noted == NONE {
            return noted;
        }
        let element = self.ins[port as usize].element as usize;
        let entry = (noted & !UNREAD) as usize;
        match &self.rule {
            Some(rule) => {
                let number = rule.read(entry, packet.destination() as usize);
                numbered(self.elements[element], number)
            }
            None => chosen(self.elements[element], self.tables[entry]),
        }
    }

    #[inline(always)]
    pub fn prefetch_entry(&self, noted: u32) {
        let entry = (noted & !UNREAD) as usize;
        match &self.rule {
            Some(rule) => prefetch(rule.entries(), entry),
            None => prefetch(&self.tables, entry),
        }
    }

    pub fn tabulate(&mut self) {
        let Some(rule) = self.rule.take() else {
            return;
        };
        let hosts = self.hosts.len();
        for (switch, element) in self.elements.iter_mut().enumerate() {
            if element.table == NONE {
                continue;
            }
            element.table = self.tables.len() as u32;
            let port = |host| rule.read(rule.entry(switch, host), host);
            self.tables
                .extend((0..hosts).map(|host| port(host).wrapping_sub(1)));
            self.tables.push(NO_ROUTE);
        }
        self.redirect = true;
    }

    pub fn redirect_heads(&mut self) {
        if !std::mem::take(&mut self.redirect) {
            return;
        }
        self.refresh_tables();
        let Self {
            tables,
            elements,
            ins,
            ..
        } = self;
        self.events.redirect_heads(|port, packet| {
            let element = ins[port as usize].element;
            table_output(tables, elements[element as usize], packet.destination())
        });
    }

    /// Sends a head to the next input with its output, or the index of its table entry for prefetching.
    #[inline(always)]
    pub fn push_head<F: EngineVariant>(&mut self, now: u64, port: u32, packet: Packet) {
        let out = &self.outs[port as usize];
        let next = out.next;
        if let Some(&delay) = self.queue_delay.get(usize::from(out.head_queue)) {
            let output = self.noted_output(out.next_element, &packet);
            let queue = usize::from(out.head_queue);
            let mut head = Head {
                time: now + delay,
                port: next,
                output,
                packet,
            };
            if F::LOOKAHEAD && !F::PLAIN && self.mixed {
                head.time += self.wait_for_tail(&head);
            }
            self.events.push_head::<F>(queue, head);
        } else if F::LOOKAHEAD && out.head_queue == REMOTE {
            self.send_remote_head(now, port, packet);
        } else if out.head_queue == BAD_LINK {
            self.push_bad_link_head::<F>(now, port, packet);
        } else {
            let output = self.noted_output(out.next_element, &packet);
            let time = now + self.head_delay[port as usize];
            let head = Head {
                time,
                port: next,
                output,
                packet,
            };
            if F::LOOKAHEAD {
                self.add_head::<F>(head);
            } else {
                self.events.push_head_at(head);
            }
        }
    }

    pub(crate) fn add_head<F: EngineVariant>(&mut self, mut head: Head) {
        if !F::PLAIN && self.mixed {
            head.time += self.wait_for_tail(&head);
        }
        self.events.calendar.add_head(head);
    }

    /// Wait of a head until the packet's tail comes in time, because an output may be faster than the cable.
    pub(super) fn wait_for_tail(&self, head: &Head) -> u64 {
        let element = self.element_of(head.port);
        if !element.mixed {
            return 0;
        }
        let output = self.resolve(head.port, head.output, &head.packet);
        if output == NONE {
            let entry = (element.table + head.packet.destination()) as usize;
            return match self.tables.get(entry) {
                None | Some(&NO_ROUTE) => 0,
                Some(_) => self.head_start(head),
            };
        }
        let upstream = self.ins[head.port as usize].upstream;
        let wire = head.packet.wire();
        let from = self.serialisation(&self.outs[upstream as usize], wire);
        from.saturating_sub(self.passing_time(output, wire))
    }

    pub fn longest_wait(&self) -> u64 {
        let cabled = |port: u32| self.outs[port as usize].kind != Next::Nowhere;
        let time = |port: u32| self.rates[usize::from(self.outs[port as usize].rate)].ser_mtu;
        let waits = self.elements.iter().filter(|element| element.mixed);
        let waits = waits.map(|element| {
            let ports = element.base..element.base + element.ports;
            let upstream = ports.clone().map(|port| self.ins[port as usize].upstream);
            let slowest = upstream.filter(|&port| port != NONE).map(time).max();
            let fastest = ports.filter(|&port| cabled(port)).map(time).min();
            slowest.unwrap_or(0) - fastest.unwrap_or(0)
        });
        waits.max().map_or(0, |wait| wait + 1)
    }

    #[inline(never)]
    pub(crate) fn send_remote_head(&mut self, now: u64, port: u32, packet: Packet) {
        let head = Head {
            time: now + self.head_delay[port as usize],
            port: self.outs[port as usize].next,
            output: NONE,
            packet,
        };
        self.remote.send_head(head, &mut self.extensions);
    }

    pub fn receive_head<F: EngineVariant>(&mut self, head: Head) {
        let element = self.ins[head.port as usize].element;
        let output = self.noted_output(element, &head.packet);
        self.add_head::<F>(Head { output, ..head });
    }
}

#[inline(always)]
fn table_output(tables: &Table<u8>, element: Element, destination: u32) -> u32 {
    if element.table == NONE {
        return element.base;
    }
    chosen(element, tables[(element.table + destination) as usize])
}

#[inline(always)]
fn computed_output(rule: &ComputedRoutes, element: u32, record: Element, destination: u32) -> u32 {
    let (switch, host) = (element as usize, destination as usize);
    numbered(record, rule.read(rule.entry(switch, host), host))
}

/// 0 is no port.
#[inline(always)]
fn numbered(element: Element, number: u8) -> u32 {
    chosen(element, number.wrapping_sub(1))
}

#[inline(always)]
fn chosen(element: Element, local: u8) -> u32 {
    if local >= CHOOSE {
        NONE
    } else {
        element.base + u32::from(local)
    }
}
