//! Changes of Marking_Rate on switches, each in the journal before it is made.

use silvan_core::Lid;
use silvan_mad::congestion::{
    CongestionAttribute, CongestionKeyInfo, SwitchCongestionSetting, SwitchPortCongestionSetting,
    switch_control_map,
};
use silvan_mad::smp::NodeInfo;
use silvan_mad::{Method, Status};
use silvan_subnet::client::{Answer, Client, Failure, Query, RequestResult};
use silvan_subnet::key::CcKey;
use silvan_subnet::transport::{Transport, TransportError};

use crate::journal::{Change, Disk, Journal, JournalError, Setting, Target};

const BLOCK_PORTS: usize = 48;

/// Location of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Target of the change.
    pub target: Target,
    /// LID of the switch.
    pub lid: Lid,
    /// Ports of the switch, without port 0.
    pub port_count: u8,
}

/// Result of lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowered {
    /// The rate is low now.
    Done {
        /// The Marking_Rate that was in force.
        before: u16,
    },
    /// The rate was not above the low rate, so there was no change.
    AlreadyLow,
    /// The port does not mark packets at all: its Threshold is 0.
    Off,
    /// The port's setting is one of credit starvation.
    OtherControl,
    /// The switch did not answer, or refused. The setting in force is unknown.
    Failed(Failure),
}

/// Result of restoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The setting is restored.
    Done,
    /// The rate was not low any more: it was never set, or another tool has set it.
    NotLow,
    /// The switch did not answer, or refused. It stays in the journal.
    Failed(Failure),
}

/// Why a change cannot be tried.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Nothing can be sent.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Nothing can be remembered.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Reads and changes settings with a client.
pub struct Marker<'a, T> {
    client: &'a mut Client<T>,
    cc_key: Option<CcKey>,
}

impl<'a, T: Transport> Marker<'a, T> {
    /// A marker that knows the CC_Key.
    pub fn new(client: &'a mut Client<T>, cc_key: Option<CcKey>) -> Self {
        Self { client, cc_key }
    }

    fn ask(
        &mut self,
        lid: Lid,
        method: Method,
        attribute: CongestionAttribute,
        modifier: u32,
    ) -> Result<RequestResult, TransportError> {
        let key = self.cc_key.map_or(0, CcKey::reveal);
        self.client
            .query_one(Query::congestion(0, lid, method, key, attribute, modifier))
    }

    /// A subnet manager may have moved the LID since the last discovery.
    fn is_there(&mut self, location: Location) -> Result<Result<(), Failure>, TransportError> {
        let query = Query::subnet_get(0, location.lid, NodeInfo::default(), 0);
        Ok(self.client.query_one(query)?.and_then(|answer| {
            let guid = NodeInfo::parse(&answer.data()).node_guid;
            match guid == location.target.switch {
                true => Ok(()),
                false => Err(Failure::WrongNode),
            }
        }))
    }

    fn whole(&mut self, lid: Lid) -> Result<Result<Setting, Failure>, TransportError> {
        let attribute = SwitchCongestionSetting::default().into();
        let outcome = self.ask(lid, Method::GET, attribute, 0)?;
        Ok(outcome.map(|answer: Answer| {
            let setting = SwitchCongestionSetting::parse(&answer.data());
            Setting {
                valid: true,
                threshold: setting.threshold.get() as u8,
                packet_size: setting.packet_size,
                marking_rate: setting.marking_rate,
            }
        }))
    }

    fn block(
        &mut self,
        lid: Lid,
        port_count: u8,
        block: u32,
    ) -> Result<Result<SwitchPortCongestionSetting, Failure>, TransportError> {
        let attribute = SwitchPortCongestionSetting::default().into();
        let outcome = self.ask(lid, Method::GET, attribute, block)?;
        Ok(outcome.map(|answer: Answer| {
            let mut setting = SwitchPortCongestionSetting::parse(&answer.data());
            // Elements beyond the last port have no meaning and must not be sent back.
            let known = usize::from(port_count) + 1;
            let beyond = known.saturating_sub(block as usize * BLOCK_PORTS);
            for element in setting.ports.iter_mut().skip(beyond) {
                *element = Default::default();
            }
            setting
        }))
    }

    fn read(
        &mut self,
        location: Location,
    ) -> Result<Result<Option<Setting>, Failure>, TransportError> {
        let Some(port) = location.target.port else {
            return Ok(self.whole(location.lid)?.map(Some));
        };
        let (block, element) = position(port);
        let outcome = self.block(location.lid, location.port_count, block)?;
        Ok(outcome.map(|setting| Setting::of(&setting.ports[element])))
    }

    fn write(
        &mut self,
        location: Location,
        setting: Setting,
    ) -> Result<Result<Option<Setting>, Failure>, TransportError> {
        if let Err(failure) = self.is_there(location)? {
            return Ok(Err(failure));
        }
        let written = match location.target.port {
            None => {
                let attribute = SwitchCongestionSetting {
                    control_map: switch_control_map::MARKING_RATE,
                    marking_rate: setting.marking_rate,
                    ..SwitchCongestionSetting::default()
                };
                self.ask(location.lid, Method::SET, attribute.into(), 0)?
            }
            Some(port) => {
                let (block, element) = position(port);
                match self.block(location.lid, location.port_count, block)? {
                    Err(failure) => return Ok(Err(failure)),
                    Ok(mut all) => {
                        all.ports[element] = setting.element();
                        self.ask(location.lid, Method::SET, all.into(), block)?
                    }
                }
            }
        };
        match written {
            Ok(_) => self.read(location),
            Err(Failure::Unanswered) if self.is_key_wrong(location.lid)? => {
                Ok(Err(Failure::WrongKey))
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// A node drops Sets with a wrong CC_Key (annex A10.4.2), answers CongestionKeyInfo, and hides its key.
    fn is_key_wrong(&mut self, lid: Lid) -> Result<bool, TransportError> {
        let attribute = CongestionKeyInfo::default().into();
        let outcome = self.ask(lid, Method::GET, attribute, 0)?;
        Ok(outcome.is_ok_and(|answer| {
            let info = CongestionKeyInfo::parse(&answer.data());
            // With the protect bit, 0 means a hidden key.
            let has_none = info.cc_key == 0 && !info.protect;
            let sent = self.cc_key.map_or(0, CcKey::reveal);
            let is_right = sent != 0 && info.cc_key == sent;
            !has_none && !is_right
        }))
    }

    /// Lowers a Marking_Rate, after the change is in the journal. Errors: [`ChangeError`].
    pub fn lower<D: Disk>(
        &mut self,
        journal: &mut Journal<D>,
        location: Location,
        low: u16,
    ) -> Result<Lowered, ChangeError> {
        if let Err(failure) = self.is_there(location)? {
            return Ok(Lowered::Failed(failure));
        }
        let before = match self.read(location)? {
            Ok(Some(before)) => before,
            Ok(None) => return Ok(Lowered::OtherControl),
            Err(failure) => return Ok(Lowered::Failed(failure)),
        };
        let in_force = match before.valid {
            true => before,
            false => match self.whole(location.lid)? {
                Ok(whole) => whole,
                Err(failure) => return Ok(Lowered::Failed(failure)),
            },
        };
        if in_force.threshold == 0 {
            return Ok(Lowered::Off);
        }
        if in_force.marking_rate <= low {
            return Ok(Lowered::AlreadyLow);
        }
        let after = Setting {
            valid: true,
            marking_rate: low,
            ..in_force
        };
        let change = Change {
            before,
            after,
            rate: in_force.marking_rate,
            since: self.client.transport().unix_time(),
        };
        journal.add(location.target, change)?;
        Ok(match self.write(location, after)? {
            Ok(Some(now)) if now.marking_rate == low => Lowered::Done {
                before: in_force.marking_rate,
            },
            Ok(_) => Lowered::Failed(Failure::Refused(Status::INVALID_VALUE)),
            Err(failure) => Lowered::Failed(failure),
        })
    }

    /// Restores a setting unless another tool has set the rate since; without a failure, the journal can forget it.
    pub fn restore(
        &mut self,
        location: Location,
        change: Change,
    ) -> Result<Restored, TransportError> {
        let is_low =
            |setting: Setting| setting.valid && setting.marking_rate == change.after.marking_rate;
        // Another node at this LID would say that nothing is low.
        if let Err(failure) = self.is_there(location)? {
            return Ok(Restored::Failed(failure));
        }
        let now = match self.read(location)? {
            Ok(Some(now)) if is_low(now) => now,
            Ok(_) => return Ok(Restored::NotLow),
            Err(failure) => return Ok(Restored::Failed(failure)),
        };
        let explicit = Setting {
            marking_rate: change.rate,
            ..now
        };
        // If another tool has changed the rest of the setting, only the rate is restored.
        let wanted = if now == change.after {
            change.before
        } else {
            explicit
        };
        let seen = match self.write(location, wanted)? {
            // A switch that passes over settings that are not valid gets a valid one.
            Ok(Some(seen)) if is_low(seen) && !wanted.valid => self.write(location, explicit)?,
            other => other,
        };
        Ok(match seen {
            Ok(Some(seen)) if is_low(seen) => {
                Restored::Failed(Failure::Refused(Status::INVALID_VALUE))
            }
            Ok(_) => Restored::Done,
            Err(failure) => Restored::Failed(failure),
        })
    }
}

fn position(port: u8) -> (u32, usize) {
    let port = usize::from(port);
    ((port / BLOCK_PORTS) as u32, port % BLOCK_PORTS)
}
