//! Tests of the crate by its public interface.

mod chaos;
mod datagrams;
mod header;
mod hostile;
mod law;
mod objects;
mod reliable;
mod states;
mod world;
