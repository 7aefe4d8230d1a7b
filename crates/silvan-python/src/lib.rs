//! Thin Python bindings.
