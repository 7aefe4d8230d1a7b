//! The typed scenario: fabric, links, traffic, control, measurement; and the runner.
mod build;
mod de;
mod effective;
mod error;
pub mod parsed;
mod path;
mod reference;
mod runner;
mod scenario;
mod schema;
mod source;
mod table;

pub use build::control::IbControl;
pub use error::ScenarioError;
pub use path::{KeyPath, Step};
pub use reference::reference_markdown;
pub use runner::{Progress, RunError, RunOutput, Summary, run, run_controlled};
pub use scenario::Scenario;
pub use schema::json_schema;
pub use source::Override;
pub use table::{Column, ColumnData, Table};
