//! Management datagrams (MADs) as bytes and as values, byte-exact both ways.
//!
//! InfiniBand is managed by datagrams of 256 bytes: subnet managers set up ports and tables with
//! them, tools read counters with them, congestion control is configured with them. The crate reads
//! and writes those of subnet management ([`smp`]), [`performance`] management, [`congestion`]
//! control, and of subnet [`administration`] what senders need to ask; it does no I/O and knows no
//! fabric. Chapters and sections are those of the InfiniBand Architecture Specification, volume 1.
//!
//! There are two layers:
//!
//! - [`Packet`] is a view of 256 bytes that reads and writes any of them without judging.
//! - [`Mad`] is a value that can only be legal: numbers have the width of their field, class and
//!   attribute id follow from the body. Whatever 256 bytes are parsed, there is a value or a
//!   [`MadError`], never a panic; attributes and classes that the crate does not know stay bytes.
//!
//! Reserved bits are ignored when parsed and zero when emitted; on all other bits, emitting what was
//! parsed gives the same bytes, and parsing what was emitted the same value.
//!
//! ```
//! use silvan_mad::smp::{DirectedRoute, NodeInfo, NodeType, Smp, SmpAttribute, SmpRoute};
//! use silvan_mad::{Body, Mad, Method, Packet, Status};
//!
//! // What ibnetdiscover asks the node behind port 3 of the switch behind its own port 1.
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
//! // What an agent does with it.
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
