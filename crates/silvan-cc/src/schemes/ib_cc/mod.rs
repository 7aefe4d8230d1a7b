//! InfiniBand's congestion control (InfiniBand Architecture Specification, volume 1, annex A10).
//!
//! 1. The switch ([`IbSwitch`]) sets FECN in packets through a congested Port VL.
//! 2. The destination answers with a BECN, in an acknowledgement or a CNP; a
//!    [`Coalescer`](crate::notification::Coalescer) may limit them.
//! 3. The source ([`IbAdapter`]) raises the flow's index (CCTI) into the [`CongestionControlTable`]; a timer lowers it.

#[macro_use]
mod declare;

mod adapter;
mod cct;
mod changes;
mod error;
mod list;
mod log;
mod parameters;
mod scheme;
mod sections;
mod settings;
mod switch;
mod threshold;
mod variants;

pub use adapter::{AdapterCounters, AdapterParameters, IbAdapter};
pub use cct::{CctEntry, CongestionControlTable};
pub use error::ParameterError;
pub use list::{
    AdapterSection, AdapterSetting, CongestionEntry, EffectivePortSetting, MarkingSetting,
    PortGroup, PortOverride, PortSetting, SettingChangeEntry, StarvationSetting, SwitchSection,
};
pub use log::{CongestionLog, ThresholdEvent};
pub use parameters::IbParameters;
pub use sections::{CctSection, CctShape, IbCc};
pub use settings::{ControlLevel, MarkingMode, PortMask, PortSelection, SwitchCongestionSetting};
pub use switch::{IbSwitch, MarkingCounters, SwitchParameters};
pub(super) use variants::by_hosts;

pub use threshold::{ThresholdMap, ThresholdWeight};
