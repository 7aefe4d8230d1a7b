//! Congestion control as sans-IO state machines, and the seam through which the engine drives them.
