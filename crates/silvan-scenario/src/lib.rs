//! The typed scenario: fabric, links, traffic, control, measurement; and the runner.
