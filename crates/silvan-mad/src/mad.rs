use std::borrow::Borrow;
use std::fmt;

use crate::administration::{AdministrationAttribute, SubnetAdministration};
use crate::congestion::CongestionControl;
use crate::packet::field;
use crate::performance::PerformanceAttribute;
use crate::smp::{DirectedRoute, Smp, SmpAttribute, SmpRoute};
use crate::{Class, Field, MAD_LEN, MadError, Method, Packet, Status};

/// A management datagram as a value (volume 1, section 13.4.2): class, class version and attribute id follow from the
/// body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad {
    /// Method.
    pub method: Method,
    /// Status; a directed route keeps 15 bits of it.
    pub status: Status,
    /// TransactionID.
    pub transaction_id: u64,
    /// AttributeModifier.
    pub modifier: u32,
    /// Content of the class after the common header.
    pub body: Body,
}

/// Content of a management class after the common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// Subnet management, class version 1.
    Smp(Smp),
    /// Performance management, class version 1.
    Performance(PerformanceAttribute),
    /// Congestion control, class version 2.
    CongestionControl(CongestionControl),
    /// Subnet administration, class version 2.
    Administration(SubnetAdministration),
    /// Any other class or version, as it came.
    Other(Other),
}

/// A datagram of a class or class version that this crate does not know; only parsing makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    class: Class,
    class_version: u8,
    class_specific: u16,
    attribute_id: u16,
    payload: [u8; Self::LEN],
}

impl Other {
    /// Bytes after the common header.
    pub const LEN: usize = MAD_LEN - field::PAYLOAD / 8;

    /// MgmtClass.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// ClassVersion.
    pub const fn class_version(&self) -> u8 {
        self.class_version
    }

    /// AttributeID.
    pub const fn attribute_id(&self) -> u16 {
        self.attribute_id
    }

    /// All bytes after the common header.
    pub const fn payload(&self) -> &[u8; Self::LEN] {
        &self.payload
    }
}

impl Mad {
    const VERSION_1: u8 = 1;
    const VERSION_2: u8 = 2;

    /// A request of this method for this body, everything else zero.
    pub fn request(method: Method, body: Body) -> Self {
        Self {
            method,
            status: Status::OK,
            transaction_id: 0,
            modifier: 0,
            body,
        }
    }

    /// Reads a datagram. Errors if the base version is not 1, or a directed route is longer than its path.
    pub fn parse<B: Borrow<[u8; MAD_LEN]>>(packet: &Packet<B>) -> Result<Self, MadError> {
        if packet.base_version() != 1 {
            return Err(MadError::BaseVersion(packet.base_version()));
        }
        Ok(Self {
            method: packet.method(),
            status: packet.status(),
            transaction_id: packet.transaction_id(),
            modifier: packet.attribute_modifier(),
            body: Body::parse(packet)?,
        })
    }

    /// Writes the datagram, reserved bits zero.
    pub fn emit(&self) -> [u8; MAD_LEN] {
        let mut bytes = [0; MAD_LEN];
        1u8.write(&mut bytes, field::BASE_VERSION);
        self.class().write(&mut bytes, field::CLASS);
        self.class_version().write(&mut bytes, field::CLASS_VERSION);
        self.method.write(&mut bytes, field::METHOD);
        self.status.as_u16().write(&mut bytes, field::STATUS);
        self.transaction_id.write(&mut bytes, field::TRANSACTION_ID);
        self.attribute_id().write(&mut bytes, field::ATTRIBUTE_ID);
        self.modifier.write(&mut bytes, field::ATTRIBUTE_MODIFIER);
        self.body.emit(&mut bytes);
        bytes
    }

    /// MgmtClass.
    pub const fn class(&self) -> Class {
        match &self.body {
            Body::Smp(Smp {
                route: SmpRoute::Lid,
                ..
            }) => Class::SUBNET_LID,
            Body::Smp(Smp {
                route: SmpRoute::Directed(_),
                ..
            }) => Class::SUBNET_DIRECTED,
            Body::Performance(_) => Class::PERFORMANCE,
            Body::CongestionControl(_) => Class::CONGESTION_CONTROL,
            Body::Administration(_) => Class::SUBNET_ADMINISTRATION,
            Body::Other(other) => other.class,
        }
    }

    /// ClassVersion.
    pub const fn class_version(&self) -> u8 {
        match &self.body {
            Body::Smp(_) | Body::Performance(_) => Self::VERSION_1,
            Body::CongestionControl(_) | Body::Administration(_) => Self::VERSION_2,
            Body::Other(other) => other.class_version,
        }
    }

    /// AttributeID.
    pub const fn attribute_id(&self) -> u16 {
        match &self.body {
            Body::Smp(smp) => smp.attribute.id(),
            Body::Performance(attribute) => attribute.id(),
            Body::CongestionControl(control) => control.attribute.id(),
            Body::Administration(asked) => asked.attribute.id(),
            Body::Other(other) => other.attribute_id,
        }
    }
}

impl Mad {
    fn show_attribute(
        &self,
        f: &mut fmt::Formatter<'_>,
        attribute: &impl fmt::Display,
    ) -> fmt::Result {
        if self.method == Method::GET {
            return Ok(());
        }
        let text = attribute.to_string();
        if text.is_empty() {
            Ok(())
        } else {
            write!(f, " {text}")
        }
    }
}

impl Body {
    fn parse<B: Borrow<[u8; MAD_LEN]>>(packet: &Packet<B>) -> Result<Self, MadError> {
        let bytes = packet.bytes();
        let id = packet.attribute_id();
        Ok(match (packet.class(), packet.class_version()) {
            (Class::SUBNET_LID, Mad::VERSION_1) => Self::Smp(Smp {
                m_key: packet.key(),
                route: SmpRoute::Lid,
                attribute: SmpAttribute::parse(id, &Field::read(bytes, field::DATA)),
            }),
            (Class::SUBNET_DIRECTED, Mad::VERSION_1) => Self::Smp(Smp {
                m_key: packet.key(),
                route: SmpRoute::Directed(
                    DirectedRoute::parse(packet)
                        .ok_or_else(|| MadError::HopCount(packet.hop_count()))?,
                ),
                attribute: SmpAttribute::parse(id, &Field::read(bytes, field::DATA)),
            }),
            (Class::PERFORMANCE, Mad::VERSION_1) => Self::Performance(PerformanceAttribute::parse(
                id,
                &Field::read(bytes, field::DATA),
            )),
            (Class::CONGESTION_CONTROL, Mad::VERSION_2) => {
                Self::CongestionControl(CongestionControl::parse(packet))
            }
            (Class::SUBNET_ADMINISTRATION, Mad::VERSION_2) => {
                Self::Administration(SubnetAdministration::parse(packet))
            }
            (class, class_version) => Self::Other(Other {
                class,
                class_version,
                class_specific: Field::read(bytes, field::CLASS_SPECIFIC),
                attribute_id: id,
                payload: Field::read(bytes, field::PAYLOAD),
            }),
        })
    }

    fn emit(&self, bytes: &mut [u8; MAD_LEN]) {
        match self {
            Self::Smp(smp) => {
                smp.m_key.write(bytes, field::KEY);
                let mut data = [0; SmpAttribute::DATA_LEN];
                smp.attribute.emit(&mut data);
                data.write(bytes, field::DATA);
                if let SmpRoute::Directed(route) = &smp.route {
                    route.emit(bytes);
                }
            }
            Self::Performance(attribute) => {
                let mut data = [0; PerformanceAttribute::DATA_LEN];
                attribute.emit(&mut data);
                data.write(bytes, field::DATA);
            }
            Self::CongestionControl(control) => control.emit(bytes),
            Self::Administration(asked) => asked.emit(bytes),
            Self::Other(other) => {
                other.class_specific.write(bytes, field::CLASS_SPECIFIC);
                other.payload.write(bytes, field::PAYLOAD);
            }
        }
    }
}

/// One line: `SubnDRGet(NodeInfo) tid=0x1 path=[1, 3]`. The attribute of a Get has no meaning (libibmad's stack) and is left
/// out.
impl fmt::Display for Mad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}(", self.class(), self.method)?;
        let id = self.attribute_id();
        let name = match &self.body {
            Body::Smp(_) => SmpAttribute::name_of(id),
            Body::Performance(_) => PerformanceAttribute::name_of(id),
            Body::CongestionControl(_) => CongestionControl::name_of(id),
            Body::Administration(_) => AdministrationAttribute::name_of(id),
            Body::Other(_) => None,
        };
        match name {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{id:#06x}")?,
        }
        if self.modifier != 0 {
            write!(f, " {:#x}", self.modifier)?;
        }
        write!(f, ") tid={:#x}", self.transaction_id)?;
        if self.status != Status::OK || self.method.is_response() {
            write!(f, " status={}", self.status)?;
        }
        match &self.body {
            Body::Smp(smp) => {
                if let SmpRoute::Directed(route) = &smp.route {
                    write!(f, " path={:?}", route.ports())?;
                }
                if smp.m_key != 0 {
                    write!(f, " m_key={:#x}", smp.m_key)?;
                }
                self.show_attribute(f, &smp.attribute)
            }
            Body::Performance(attribute) => self.show_attribute(f, attribute),
            Body::CongestionControl(control) => {
                if control.cc_key != 0 {
                    write!(f, " cc_key={:#x}", control.cc_key)?;
                }
                self.show_attribute(f, &control.attribute)
            }
            // In this class, the attribute of a request states the query.
            Body::Administration(asked) => {
                if asked.component_mask != 0 {
                    write!(f, " component_mask={:#x}", asked.component_mask)?;
                }
                let text = asked.attribute.to_string();
                if text.is_empty() {
                    Ok(())
                } else {
                    write!(f, " {text}")
                }
            }
            Body::Other(other) => {
                write!(f, " version={} ", other.class_version)?;
                other.payload.show(f, true)
            }
        }
    }
}
