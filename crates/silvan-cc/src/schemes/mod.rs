//! All congestion-control schemes, a module each, and their list.
//!
//! A type that implements [`Scheme`] has parts for switches and hosts in terms of [hooks](crate::hooks).
//! [`parameters!`](crate::parameters) declares its parameters, and a line at the end of this file registers it for
//! `control.scheme`, `[control.NAME]`, its [variants](Variant), reference, schema and [`SchemeName::build`]. The
//! guide's page "How to add a congestion-control scheme" builds one.
//!
//! ```
//! use silvan_cc::schemes::SchemeName;
//!
//! assert!(SchemeName::ALL.iter().any(|scheme| scheme.as_str() == "dcqcn"));
//! assert_eq!(SchemeName::default().as_str(), "none");
//! ```

pub mod callbacks;
mod choice;
mod expected;
mod flows;
pub mod parameter;
mod red;
#[macro_use]
mod register;
mod scheme;
mod stamping;
pub mod variant;

use silvan_core::document::KeyPath;

use crate::hooks::{Chain, NoControl, PerHost, PerPortVl, Settings, SourceControl, SwitchControl};
pub use choice::SchemeChoice;
pub use parameter::{Bounds, Declared, ParameterInfo, ParameterValue, Search, SearchValues};
pub use scheme::{Changes, DataPlane, Defaults, Scheme, SchemeError, Setup, SwitchPort, Switches};
pub use variant::{FabricFacts, OtherRoutes, Unsuited, Variant};

/// Both parts of a scheme.
pub struct Control {
    /// Control of the switches.
    pub switch: AnySwitch,
    /// Control of the hosts.
    pub source: AnySource,
}

impl Control {
    /// No congestion control.
    pub const NONE: Self = Self {
        switch: AnySwitch::None(NoControl),
        source: AnySource::None(NoControl),
    };
}

/// Both parts of a scheme that is separate for each Port VL and each host.
#[derive(Debug)]
pub struct Separate {
    /// Part at the switches.
    pub switch: SeparateSwitch,
    /// Part at the hosts.
    pub source: SeparateSource,
}

impl Separate {
    /// The parts of a scheme; `None` if it is not separate.
    pub fn of(control: Control) -> Option<Self> {
        control.with_engine(Parts)
    }
}

struct Parts;

impl EngineChoice for Parts {
    type Engine = Option<Separate>;

    fn none(self) -> Self::Engine {
        let none = NoControl;
        self.separate(SeparateSwitch::None(none), SeparateSource::None(none))
    }

    fn own<S, C>(self, switch: S, source: C) -> Self::Engine
    where
        S: PerPortVl + Settings + Into<SeparateSwitch> + 'static,
        C: PerHost + Settings + Into<SeparateSource> + 'static,
    {
        self.separate(switch.into(), source.into())
    }

    fn separate(self, switch: SeparateSwitch, source: SeparateSource) -> Self::Engine {
        Some(Separate { switch, source })
    }

    fn shared(self, _: AnySwitch, _: AnySource) -> Self::Engine {
        None
    }
}

/// Starts the engine for a scheme: [`Control::with_engine`] calls one of the methods.
pub trait EngineChoice {
    /// Type of a started engine.
    type Engine;

    /// No congestion control.
    fn none(self) -> Self::Engine;

    /// Another scheme that an engine is compiled for alone; it has a part of its own for each Port VL and each host.
    fn own<S, C>(self, switch: S, source: C) -> Self::Engine
    where
        S: PerPortVl + Settings + Into<SeparateSwitch> + 'static,
        C: PerHost + Settings + Into<SeparateSource> + 'static;

    /// Another scheme with such parts.
    fn separate(self, switch: SeparateSwitch, source: SeparateSource) -> Self::Engine;

    /// Any other scheme.
    fn shared(self, switch: AnySwitch, source: AnySource) -> Self::Engine;
}

impl Default for SchemeName {
    fn default() -> Self {
        Self::ALL[0]
    }
}

/// The variants of all schemes on a fabric, each with its scheme, in the order in which comparisons list them.
pub fn variants(facts: &FabricFacts<'_>) -> Vec<(SchemeName, Variant)> {
    let mut schemes = SchemeName::ALL.to_vec();
    schemes.sort_by_key(|scheme| scheme.family());
    let of_scheme = |scheme: SchemeName| {
        let variants = scheme.variants(facts).into_iter();
        variants.map(move |variant| (scheme, variant))
    };
    schemes.into_iter().flat_map(of_scheme).collect()
}

impl SchemeName {
    /// The declared parameters that searches draw values of, in their order, with the name of their tables within `[control]`.
    pub fn searched(self) -> Vec<(&'static str, ParameterInfo)> {
        let of_part = |part: &Self| {
            let mut searched = part.parameters();
            searched.retain(|(_, parameter)| parameter.search.is_some());
            searched.sort_by_key(|(_, parameter)| parameter.search.map(|search| search.is_late));
            searched
        };
        self.parts().iter().flat_map(of_part).collect()
    }

    /// Returns true if this scheme is in force, alone or in a chain.
    pub fn includes(self, part: Self) -> bool {
        self.parts().contains(&part)
    }

    /// The scheme without a part: the other part of a chain, no scheme for the part itself, or the whole scheme without that part.
    pub fn besides(self, part: Self) -> Self {
        if !self.includes(part) {
            return self;
        }
        let others = self.parts().iter().filter(|&&other| other != part);
        others.copied().next().unwrap_or_default()
    }
}

register! {
    schemes {
        none::None = "none", "No congestion control.";
        ib_cc::IbCc = "ib-cc", "InfiniBand congestion control (IBA annex A10).";
        ecn::Ecn = "ecn", "Marks by full input buffers, answered by rates and windows (santos2003).";
        pft::Pft = "pft", "Throttling by the host's own credits, without notifications (pft2021).";
        dcqcn::Dcqcn = "dcqcn", "DCQCN: marks at random by queue length, rates at the hosts (Zhu et al. 2015).";
        timely::Timely = "timely", "TIMELY: rates by the gradient of the round trip (Mittal et al. 2015).";
        hpcc::Hpcc = "hpcc", "HPCC: windows by the load that each switch writes into packets (Li et al. 2019).";
        swift::Swift = "swift", "Swift: windows by the delay of the round trip (Kumar et al. 2020).";
        nscc::Nscc = "nscc", "NSCC of Ultra Ethernet: windows by marks and delay (UE Specification 1.0).";
        rccc::Rccc = "rccc", "RCCC of Ultra Ethernet: the receiver gives credit at the rate of its link (UE Specification 1.0).";
        srp::Srp = "srp", "SRP, SMSRP and LHRP: speculative packets that switches discard, and reservations (Jiang et al. 2012, 2015).";
        reps::Reps = "reps", "REPS: packets take paths again that have delivered unmarked packets (Bonato et al. 2025).";
        vl_mapping::VlMapping = "vl-mapping", "A virtual lane by destination or output, without control (vFtree, DBBM, Flow2SL, VOQnet, OBQA, VOQsw).";
        dftree::Dftree = "dftree", "dFtree: flows to a hotspot move to a separate lane (Guay et al. 2011).";
        congestion_isolation::CongestionIsolation = "congestion-isolation", "Congestion isolation: congesting flows move to a separate lane, hop by hop (IEEE 802.1Qcz).";
        recn::Recn = "recn", "RECN and FBICM: packets through a congested point move to a queue that is set aside, hop by hop (Duato et al. 2005).";
        pair_backpressure::PairBackpressure = "pair-backpressure", "Backpressure on pairs that congest an endpoint, in the manner of Slingshot (De Sensi et al. 2020).";
        half::Half = "half", "The worked example of the guide: a mark halves a flow's rate.";
        python::Python = "python", "Functions of a Python file.";
    }
    chains {
        IbCcPft: ib_cc::IbCc, pft::Pft
            = "ib-cc+pft", "`ib-cc` and `pft` together: a packet starts when both allow it.", pft::with_ib_cc;
        NsccReps: nscc::Nscc, reps::Reps
            = "nscc+reps", "`nscc` and `reps` together: windows and paths by the same marks.", reps::with_nscc;
        SwiftReps: swift::Swift, reps::Reps
            = "swift+reps", "`swift` and `reps` together: windows by delay, paths by the marks of `reps`.", reps::with_swift;
    }
    engines { ib_cc::IbCc }
    separate {
        ecn::Ecn, pft::Pft, dcqcn::Dcqcn, timely::Timely, hpcc::Hpcc, swift::Swift, nscc::Nscc, reps::Reps,
        rccc::Rccc, srp::Srp, vl_mapping::VlMapping, dftree::Dftree,
        pair_backpressure::PairBackpressure, congestion_isolation::CongestionIsolation, recn::Recn, half::Half,
    }
    separate_chains {
        IbCcPft: ib_cc::IbCc, pft::Pft;
        NsccReps: nscc::Nscc, reps::Reps;
        SwiftReps: swift::Swift, reps::Reps;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use silvan_core::{Bytes, Rate};

    use super::*;

    const DATA_PLANE: DataPlane = DataPlane {
        mtu: Bytes::from_bytes(2_048),
        header: Bytes::from_bytes(26),
        switch_buffer: Bytes::from_bytes(65_536),
        link_rate: Rate::from_bits_per_sec(100_000_000_000).unwrap(),
    };

    #[test]
    fn names_and_summaries_are_distinct_and_whole() {
        for scheme in SchemeName::ALL {
            assert!(scheme.summary().ends_with('.'), "{}", scheme.as_str());
        }
        let mut names = SchemeName::NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SchemeName::ALL.len());
    }

    #[test]
    fn a_chain_includes_both_its_schemes() {
        let chain = SchemeName::IbCcPft;
        for part in [SchemeName::IbCc, SchemeName::Pft] {
            assert!(chain.includes(part) && part.includes(part) && !part.includes(chain));
        }
        assert!(chain.acts() && !SchemeName::None.acts());
    }

    #[test]
    fn besides_a_part_there_is_the_rest() {
        let ib_cc = SchemeName::IbCc;
        assert_eq!(SchemeName::IbCcPft.besides(ib_cc), SchemeName::Pft);
        assert_eq!(ib_cc.besides(ib_cc), SchemeName::None);
        for scheme in [SchemeName::None, SchemeName::Hpcc, SchemeName::NsccReps] {
            assert_eq!(scheme.besides(ib_cc), scheme);
        }
    }

    /// The effective scenario has all defaults as values, and must read back as it was.
    #[test]
    fn defaults_are_filled_in_once_and_survive_text() {
        let mut parameters = Parameters::default();
        parameters.fill_in(&DATA_PLANE);
        let filled_in = parameters.clone();
        parameters.fill_in(&DataPlane {
            switch_buffer: Bytes::from_bytes(1 << 20),
            ..DATA_PLANE
        });
        assert_eq!(parameters, filled_in);
        let text = serde_json::to_string(&parameters.ib_cc).unwrap();
        assert_eq!(
            serde_json::from_str::<ib_cc::IbCc>(&text).unwrap(),
            parameters.ib_cc
        );
    }
}
