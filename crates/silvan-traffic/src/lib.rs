//! Who sends what to whom, when: V, C and B nodes, permutations, incast, explicit flows.
