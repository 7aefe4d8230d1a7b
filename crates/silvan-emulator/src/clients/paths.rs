//! Queries of the hosts to the subnet manager for the service levels of their paths.
//!
//! A host sends SubnAdmGet(PathRecord) before it sends on a path, again if its port becomes Active, on reregistration,
//! or after stable changes of tables. Only a manager that has made a Set is queried; without one, hosts send as before.

use std::collections::BTreeMap;
use std::time::Duration;

use silvan_core::{HostId, Lid, Sl};
use silvan_mad::administration::{AdministrationAttribute, PathRecord, SubnetAdministration};
use silvan_mad::{Body, Mad, Method, Packet, Status};

use super::{Access, Clients};
use crate::subnet::{Needs, Sources};
use crate::wire::Message;

pub(super) const HOSTS: u16 = u16::MAX;

const MOST_OPEN: usize = 64;
const PATIENCE: Duration = Duration::from_millis(250);
const DOUBLINGS: u32 = 4;
const SETTLED: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Question {
    source: HostId,
    destination: HostId,
    tries: u32,
}

impl Question {
    fn patience(&self) -> Duration {
        PATIENCE * (1 << self.tries.min(DOUBLINGS))
    }
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    question: Question,
    manager: u16,
    until: Duration,
    /// Ends of the path, which identify the answer.
    lids: (Lid, Lid),
}

#[derive(Debug, Default)]
pub(crate) struct Questions {
    due: BTreeMap<(Duration, u64), Question>,
    open: BTreeMap<u64, Asked>,
    next: u64,
    pub answered: u64,
}

impl Questions {
    pub fn count(&self) -> usize {
        self.due.len() + self.open.len()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add(&mut self, source: HostId, destination: HostId, at: Duration) {
        let key = (at, self.number());
        let question = Question {
            source,
            destination,
            tries: 0,
        };
        self.due.insert(key, question);
    }

    fn again(&mut self, question: Question, at: Duration) {
        let key = (at, self.number());
        let tries = question.tries + 1;
        self.due.insert(key, Question { tries, ..question });
    }

    fn take_due(&mut self, now: Duration) -> Option<Question> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub fn manager_gone(&mut self, manager: u16, now: Duration) {
        self.give_up(|asked| asked.manager == manager, now);
    }

    fn expire(&mut self, now: Duration) {
        self.give_up(|asked| asked.until <= now, now);
    }

    fn give_up(&mut self, in_vain: impl Fn(&Asked) -> bool, now: Duration) {
        let open = self.open.iter().filter(|(_, asked)| in_vain(asked));
        let ended: Vec<u64> = open.map(|(&transaction, _)| transaction).collect();
        for transaction in ended {
            if let Some(asked) = self.open.remove(&transaction) {
                self.again(asked.question, now);
            }
        }
    }
}

impl Clients {
    pub(super) fn query_paths(&mut self) {
        let now = self.subnet.uptime;
        self.subnet.mark_paths_stale(SETTLED);
        for (source, destination) in self.subnet.plane.take_wanted_paths() {
            self.questions.add(source, destination, now);
        }
        if self.questions.count() == 0 {
            return;
        }
        self.questions.expire(now);
        let has_manager = self
            .clients
            .values()
            .any(|client| client.is_manager() && client.has_set);
        while self.questions.open.len() < MOST_OPEN {
            let Some(question) = self.questions.take_due(now) else {
                break;
            };
            if !has_manager {
                self.subnet
                    .plane
                    .open_path(question.source, question.destination);
            } else if !self.query_path(question) {
                self.questions.again(question, now + question.patience());
            }
        }
    }

    fn query_path(&mut self, question: Question) -> bool {
        let now = self.subnet.uptime;
        let node = self.subnet.fabric.node_of_host(question.source);
        let manager = self.subnet.own(node).info.master_sm_lid;
        if manager.as_u16() == 0 {
            return false;
        }
        let reached = self.subnet.follow_lid(node, manager, Needs::Active);
        let at = reached.and_then(|at| Some((at, self.sm_at(at.node)?)));
        let Some((at, client)) = at.filter(|(_, client)| self.clients[client].has_set) else {
            return false;
        };
        let lids = (
            self.subnet.host_lid(question.source),
            self.subnet.host_lid(question.destination),
        );
        let asked = SubnetAdministration::path(lids.0, lids.1);
        let mut mad = Mad::request(Method::GET, Body::Administration(asked));
        mad.transaction_id = self.questions.number();
        let asked = Asked {
            question,
            manager: client,
            until: now + question.patience(),
            lids,
        };
        self.questions.open.insert(mad.transaction_id, asked);
        if self.loses(node, at.node) {
            self.traffic.lost += 1;
            return true;
        }
        let mut message = Message::unasked(lids.0, manager, &mad.emit());
        message.set_queue_pairs(1);
        message.set_owner(HOSTS);
        let packet = Packet::new(*message.mad());
        message.extra.agent = match &self.clients[&client].access {
            Access::File(file) => file.responder(&packet).unwrap_or_default(),
            _ => 0,
        };
        self.traffic.forwarded += 1;
        self.send(client, message);
        true
    }

    pub(super) fn path_answer(&mut self, from: u16, mut message: Message) {
        let transaction = message.transaction();
        let asked = self.questions.open.get(&transaction);
        let Some(&asked) = asked.filter(|asked| asked.manager == from) else {
            self.traffic.dropped += 1;
            return;
        };
        let answer = Packet::new(*message.mad());
        let node = self.subnet.fabric.node_of_host(asked.question.source);
        let manager = self.clients[&from].node;
        if self.loses(manager, node) {
            self.traffic.lost += 1;
            return;
        }
        self.questions.open.remove(&transaction);
        match level(&answer, asked.lids) {
            Some(level) => {
                let Question {
                    source,
                    destination,
                    ..
                } = asked.question;
                self.questions.answered += 1;
                self.subnet
                    .plane
                    .engine
                    .set_path_sl(source, destination, level);
                self.subnet.plane.open_path(source, destination);
            }
            None => self.questions.again(asked.question, asked.until),
        }
    }

    /// Queries all paths from all hosts, or from one of every switch; returns their number.
    pub fn query_all_paths(&mut self, sources: Sources) -> Option<usize> {
        if !self.has_manager() {
            return None;
        }
        let now = self.subnet.uptime;
        let fabric = std::sync::Arc::clone(&self.subnet.fabric);
        let mut count = 0;
        for source in self.subnet.senders(sources).into_values().flatten() {
            for destination in fabric.host_ids().filter(|host| *host != source) {
                self.questions.add(source, destination, now);
                count += 1;
            }
        }
        Some(count)
    }
}

fn level(answer: &Packet<[u8; silvan_mad::MAD_LEN]>, lids: (Lid, Lid)) -> Option<Sl> {
    let mad = Mad::parse(answer).ok()?;
    let Body::Administration(SubnetAdministration {
        attribute:
            AdministrationAttribute::PathRecord(PathRecord {
                source,
                destination,
                sl,
                ..
            }),
        ..
    }) = mad.body
    else {
        return None;
    };
    (mad.status == Status::OK && (source, destination) == lids).then_some(sl)
}
