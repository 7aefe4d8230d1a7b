//! Management datagrams (MADs) as bytes and as values, byte-exact both ways.
//!
//! InfiniBand is managed by datagrams of 256 bytes, for ports and tables, counters, and congestion control. The crate
//! reads and writes datagrams of subnet management ([`smp`]), [`performance`] management, [`congestion`] control, and
//! the queries of subnet [`administration`] that senders need. It does no I/O and knows no fabric. Chapters and
//! sections are those of the InfiniBand Architecture Specification, volume 1.
//!
//! There are two layers:
//!
//! - [`Packet`] is a view of 256 bytes that reads and writes any of them without checks.
//! - [`Mad`] is a value that can only be legal: numbers have the width of their field, class and attribute id follow
//!   from the body. Any 256 bytes parse to a value or a [`MadError`], never a panic; unknown attributes and classes
//!   stay bytes.
//!
//! Reserved bits are ignored when parsed and zero when emitted. On all other bits, parsing and emitting are inverse to
//! each other.
//!
//! ```
//! use silvan_mad::smp::{DirectedRoute, NodeInfo, NodeType, Smp, SmpAttribute, SmpRoute};
//! use silvan_mad::{Body, Mad, Method, Packet, Status};
//!
//! // The request of ibnetdiscover for the node behind port 3 of the switch behind its port 1.
//! let route = DirectedRoute::request(&[1, 3]).ok_or("too many hops")?;
//! let request = Mad::request(
//!     Method::GET,
//!     Body::Smp(Smp {
//!         m_key: 0,
//!         route: SmpRoute::Directed(route),
//!         attribute: NodeInfo::default().into(),
//!     }),
//! );
//! assert_eq!(request.to_string(), "SubnDRGet(NodeInfo) tid=0x0 path=[1, 3]");
//!
//! // The answer of the agent.
//! let bytes = request.emit();
//! let mut answer = Mad::parse(&Packet::new_checked(&bytes)?)?;
//! answer.method = Method::GET_RESPONSE;
//! answer.status = Status::OK;
//! if let Body::Smp(smp) = &mut answer.body {
//!     smp.attribute = NodeInfo { node_type: NodeType::SWITCH, num_ports: 36, ..NodeInfo::default() }.into();
//! }
//! assert_eq!(
//!     answer.to_string(),
//!     "SubnDRGetResp(NodeInfo) tid=0x0 status=ok path=[1, 3] node_type=switch num_ports=36",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod administration;
pub mod capture;
mod class_port_info;
pub mod congestion;
mod field;
mod mad;
mod packet;
pub mod performance;
pub mod smp;

pub use class_port_info::{
    ClassPortInfo, CounterCapabilities, performance_capability, performance_capability2,
};
pub use field::{Bits, Field, FieldLocation, RawAttribute};
pub use mad::{Body, Mad, Other};
pub use packet::{ATTRIBUTE_BYTE, Class, LOG_BYTE, MAD_LEN, MadError, Method, Packet, Status};
