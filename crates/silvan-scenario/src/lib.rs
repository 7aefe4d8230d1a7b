//! The typed scenario: fabric, links, traffic, control, measurement.
//!
//! A scenario file (TOML) describes a run completely. It has two forms: [`parsed`] is the file as written; in a
//! [`Scenario`], all names are resolved and all values checked. `silvan-sim` runs a [`Scenario`] with a seed and
//! returns tables.
//!
//! A fault of a file is a [`ScenarioError`] on one line: place (file and line, or the `--set`), key path, message, and
//! usually a hint. [`Override`] and sweeps use the same key paths.
//!
//! The [JSON schema](json_schema), the [reference of keys](reference_markdown) and the [effective
//! scenario](Scenario::effective_toml) are all made from the parsed types, so there is one list of keys.
//!
//! ```
//! use silvan_scenario::{Override, Scenario};
//!
//! let text = r#"
//! [fabric]
//! generator = "single-switch"
//! hosts = 8
//! [[traffic.incast]]
//! to = "host-0000"
//! "#;
//! let overrides = [Override::new("run.duration", "100 us")];
//! let scenario = Scenario::from_toml(text, "incast.toml", &overrides)?;
//! assert_eq!(scenario.fabric().host_count(), 8);
//! assert_eq!(scenario.duration(), silvan_core::Span::from_us(100));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checks;
mod effective;
mod elsewhere;
mod estimate;
pub mod faults;
mod given;
mod graph;
mod layout;
pub mod parsed;
mod reference;
mod sampling;
mod scenario;
mod schema;
mod topology;
mod variants;

pub use checks::buffers::InputBuffers;
pub use checks::control::switch_ports;
pub use checks::limits::read_scenario;
pub use estimate::Estimate;
pub use reference::reference_markdown;
pub use sampling::{Sampling, Spread};
pub use scenario::Scenario;
pub use schema::json_schema;
pub use silvan_core::document::{DocumentError as ScenarioError, KeyPath, Override, PathStep};
pub use variants::scheme_searches;
