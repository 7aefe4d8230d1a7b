//! The lossless data plane: packets, ports, buffers, credits, arbitration, events.

pub mod workload;
