//! Any scheme, as one type for the switches and one for the hosts.

use silvan_cc::hooks::Chain;
use silvan_cc::hooks::NoControl;
use silvan_cc::schemes::callbacks::Callbacks;
use silvan_cc::schemes::ecn::{EcnSource, EcnSwitch};
use silvan_cc::schemes::ib_cc::{IbAdapter, IbSwitch};
use silvan_cc::schemes::pft::PftSource;
use silvan_cc::schemes::{OwnSource, OwnSwitch};

silvan_cc::dispatch_switches! {
    /// What runs at the switches.
    pub enum AnySwitch {
        /// Nothing.
        None(NoControl),
        /// InfiniBand's congestion control.
        Ib(IbSwitch),
        /// The marking of santos2003.
        Ecn(EcnSwitch),
        /// One of the registered schemes.
        Own(OwnSwitch),
        /// Functions of another language.
        Callbacks(Callbacks),
    }
}

silvan_cc::dispatch_sources! {
    /// What runs at the hosts.
    pub enum AnySource {
        /// Nothing.
        None(NoControl),
        /// InfiniBand's congestion control.
        Ib(IbAdapter),
        /// The same, and throttling on the host's own credits (pft2021).
        IbAndPft(Chain<IbAdapter, PftSource>),
        /// Throttling alone.
        Pft(PftSource),
        /// Rates and windows (santos2003).
        Ecn(EcnSource),
        /// One of the registered schemes.
        Own(OwnSource),
        /// Functions of another language.
        Callbacks(Callbacks),
    }
}
