//! Programs on small fabrics, against closed forms and second implementations.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod adapters;
mod alpha_beta;
mod collectives;
mod common;
mod determinism;
mod goal;
mod goal_law;
mod hpcc;
mod logp;
mod matching;
mod shares;
mod trace_law;
mod traces;
mod wrong;
