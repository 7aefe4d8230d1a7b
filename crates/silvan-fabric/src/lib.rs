//! What is cabled to what, and the forwarding tables: generators, routing, checks.
