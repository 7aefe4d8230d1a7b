#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
