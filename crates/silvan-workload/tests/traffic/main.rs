//! The traffic behind its public interface, polled by a mock engine whose gates throttle and close
//! at random.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up must fail at once"
)]

mod caps;
mod cdf_law;
mod contributors;
mod determinism;
mod errors;
mod flow_lines;
mod flow_lines_law;
mod flows;
mod live;
mod many_flows;
mod mock;
mod patterns;
mod queue_pairs;
mod rates;
mod send_queue;
mod uniform;
