use thiserror::Error;

/// A parameter that has no meaning. Nothing has been built.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EcnError {
    /// The decrease factor does not decrease.
    #[error("a decrease factor of {0}; it must be above 1 and at most 256")]
    DecreaseFactor(f64),
    /// The smallest rate is not a fraction.
    #[error("a smallest rate of {0} of the link; it must be above 0 and below 1")]
    MinRate(f64),
    /// The first rate is below the smallest or above that of the link.
    #[error("an initial rate of {rate} of the link; it must be {min} to 1")]
    InitialRate {
        /// The rate.
        rate: f64,
        /// Rmin.
        min: f64,
    },
    /// The window never opens, or its bounds are in the wrong order.
    #[error("a window of {min} to {max} packets; it must be at least 1, the larger bound last")]
    Window {
        /// Smallest window.
        min: u16,
        /// Largest window.
        max: u16,
    },
    /// A lookup table has the wrong length.
    #[error("{table} has {found} entries, one for each of the 256 inter-packet delays is needed")]
    TableLength {
        /// Name of the table.
        table: &'static str,
        /// Number of entries of the table.
        found: usize,
    },
    /// An entry of a lookup table goes the wrong way.
    #[error("{table} entry {ipd} leads to an inter-packet delay of {next}, which is {fault}")]
    TableEntry {
        /// Name of the table.
        table: &'static str,
        /// Inter-packet delay that the entry is for.
        ipd: u8,
        /// Inter-packet delay that it leads to.
        next: u8,
        /// The fault of the entry.
        fault: &'static str,
    },
    /// More hosts than a flow's key has room for.
    #[error("{0} hosts; at most 268435455 are supported")]
    TooManyHosts(usize),
}
