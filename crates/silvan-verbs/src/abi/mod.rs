//! The kernel's interface as bytes and as values: structures of `ib_user_verbs.h`, commands, and numbers of `ib_verbs.h`.

mod command;
pub mod connections;
mod layout;
pub mod structures;
pub mod values;

pub use command::{Command, HEADER, PostedSend, emit, header, parse};
pub use layout::Layout;
