//! A flit-by-flit reference model of the data plane: slow and simple on purpose.
