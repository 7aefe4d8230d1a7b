//! Congestion control as sans-IO state machines, and the hooks through which an engine drives them.
//!
//! No code here uses a clock, a thread, a queue or a packet's contents. A control receives events with their time
//! (`now` is always an argument), and answers. So the same code runs in a simulation, behind a live fabric's management
//! interface, and in a test that plays events by hand.
//!
//! [`hooks`] is the interface of a scheme: [`hooks::SwitchControl`] marks packets at the switches,
//! [`hooks::SourceControl`] decides at the adapters when a flow may send, and [`hooks::Controller`] reads counters and
//! changes [`hooks::Settings`]. [`workload`] is the interface of the load. [`schemes`] has a module for each scheme.
//! [`dcms`] serves simulations and the daemon of a real subnet.
//!
//! In this example of [`schemes::ib_cc`] a Port VL exceeds its threshold and a packet leaves marked. The notification
//! throttles the flow, and the timer releases it.
//!
//! ```
//! use silvan_cc::schemes::SwitchPort;
//! use silvan_cc::schemes::ib_cc::{IbParameters, ThresholdMap};
//! use silvan_cc::hooks::{
//!     Feedback, Flow, PacketView, PortVl, QueueView, SourceControl, SwitchControl,
//! };
//! use silvan_core::{HostId, PortId, PortNumber, Sl, Span, SwitchId, Time, Vl};
//!
//! let threshold_map = ThresholdMap::Linear { lowest_bytes: 6_222, highest_bytes: 65_536 };
//! let parameters = IbParameters::gran2012(1.0, threshold_map)?;
//!
//! // One switch port that leads to a host, one data VL, two hosts.
//! let port = SwitchPort {
//!     switch: SwitchId::new(0),
//!     number: PortNumber::new(1),
//!     to_host: true,
//!     peer: None,
//! };
//! let mut switch = parameters.build_switch(&[Some(port)], 1, 1)?;
//! let mut adapter = parameters.build_adapter(2, 1)?;
//!
//! // Three packets wait: the threshold of weight 15 is reached, and the one that leaves is marked.
//! let now = Time::ZERO + Span::from_us(10);
//! let queue = QueueView { queued_bytes: 3 * 2_074, has_credit: true };
//! let packet = PacketView {
//!     wire_bytes: 2_074,
//!     marked: false,
//!     input: PortId::new(0),
//!     vl: Vl::ZERO,
//! };
//! assert!(switch.on_departure(now, PortVl(0), queue, packet));
//!
//! // Its destination notifies the source, whose flow now leaves a gap of one packet time.
//! let flow = Flow { source: HostId::new(0), destination: HostId::new(1), sl: Sl::ZERO, queue: 0 };
//! adapter.on_feedback(now, flow, Feedback::Cnp);
//! assert_eq!(adapter.ccti(now, flow), 1);
//! let packet_time = Span::from_ns(1_037);
//! adapter.on_send(now, flow, packet_time, 2_048);
//! assert_eq!(adapter.release(now, flow), now + packet_time * 2);
//!
//! // One expiry of the timer (150 x 1.024 us) later the flow is free.
//! assert_eq!(adapter.ccti(now + Span::from_us(154), flow), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

extern crate self as silvan_cc;

#[macro_use]
pub mod hooks;

pub mod dcms;
pub mod flow_table;
pub mod notification;
pub mod schemes;
pub mod workload;

#[doc(hidden)]
pub use silvan_core as units;
