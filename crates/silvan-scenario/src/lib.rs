//! The typed scenario: fabric, links, traffic, control, measurement; and the runner.
mod de;
mod effective;
mod error;
pub mod parsed;
mod path;
mod reference;
mod schema;
mod source;

pub use error::ScenarioError;
pub use path::{KeyPath, Step};
pub use reference::reference_markdown;
pub use schema::json_schema;
pub use source::Override;
