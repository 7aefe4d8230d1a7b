use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use silvan_core::schema::{LengthText, RateText, SpanText};
use silvan_core::{Length, PortId, Rate, Span};
use thiserror::Error;

/// A text that names no link width or speed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown link {what} {input:?} (known: {known})")]
pub struct ParseLinkError {
    what: &'static str,
    input: String,
    known: String,
}

macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        $name:ident ($what:literal) { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// All variants, from small to large.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The text that [`Display`](fmt::Display) prints and [`FromStr`] reads.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $what.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "enum": [$($text),+] })
            }
        }

        impl FromStr for $name {
            type Err = ParseLinkError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|variant| variant.name() == text)
                    .ok_or_else(|| ParseLinkError {
                        what: $what,
                        input: text.to_owned(),
                        known: [$($text),+].join(", "),
                    })
            }
        }
    };
}

named_enum! {
    /// The number of lanes of a link.
    Width ("width") {
        /// One lane.
        X1 = "1x",
        /// Two lanes.
        X2 = "2x",
        /// Four lanes, the usual width.
        X4 = "4x",
        /// Eight lanes.
        X8 = "8x",
        /// Twelve lanes.
        X12 = "12x",
    }
}

impl Width {
    /// The number of lanes.
    pub const fn lanes(self) -> u64 {
        match self {
            Self::X1 => 1,
            Self::X2 => 2,
            Self::X4 => 4,
            Self::X8 => 8,
            Self::X12 => 12,
        }
    }
}

named_enum! {
    /// The speed of one lane, by its InfiniBand name.
    Speed ("speed") {
        /// Single data rate: 2.5 Gbit/s a lane on the wire, 2 Gbit/s of data.
        Sdr = "SDR",
        /// Double data rate: 5 Gbit/s a lane on the wire, 4 Gbit/s of data.
        Ddr = "DDR",
        /// Quad data rate: 10 Gbit/s a lane on the wire, 8 Gbit/s of data.
        Qdr = "QDR",
        /// 10.3125 Gbit/s a lane on the wire, 10 Gbit/s of data.
        Fdr10 = "FDR10",
        /// Fourteen data rate: 14.0625 Gbit/s a lane on the wire, 13.64 Gbit/s of data.
        Fdr = "FDR",
        /// Enhanced data rate: 25.78125 Gbit/s a lane on the wire, 25 Gbit/s of data.
        Edr = "EDR",
        /// High data rate: 53.125 Gbit/s a lane on the wire, 50 Gbit/s of data.
        Hdr = "HDR",
        /// Next data rate: 106.25 Gbit/s a lane on the wire, 100 Gbit/s of data.
        Ndr = "NDR",
        /// Extended data rate: 212.5 Gbit/s a lane on the wire, 200 Gbit/s of data.
        Xdr = "XDR",
    }
}

impl Speed {
    /// Including line coding (IBA volume 2, chapter 5); from HDR on, the PAM4 symbol rate times two bits.
    const fn lane_signalling_bits_per_sec(self) -> u64 {
        match self {
            Self::Sdr => 2_500_000_000,
            Self::Ddr => 5_000_000_000,
            Self::Qdr => 10_000_000_000,
            Self::Fdr10 => 10_312_500_000,
            Self::Fdr => 14_062_500_000,
            Self::Edr => 25_781_250_000,
            Self::Hdr => 53_125_000_000,
            Self::Ndr => 106_250_000_000,
            Self::Xdr => 212_500_000_000,
        }
    }

    /// Data part of the signalling rate. 8b/10b up to QDR and 64b/66b up to EDR. HDR, NDR and XDR combine 256b/257b
    /// transcoding with a Reed-Solomon code (544, 514): 256/257 * 514/544 = 16/17.
    const fn coding(self) -> (u64, u64) {
        match self {
            Self::Sdr | Self::Ddr | Self::Qdr => (8, 10),
            Self::Fdr10 | Self::Fdr | Self::Edr => (64, 66),
            Self::Hdr | Self::Ndr | Self::Xdr => (16, 17),
        }
    }
}

/// Properties of a cable, without its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkKind {
    /// Number of lanes.
    pub width: Width,
    /// Speed of each lane.
    pub speed: Speed,
    /// Rate of data in each direction, if it is not that of width and speed.
    pub rate: Option<Rate>,
    /// Length of the cable.
    pub length: Length,
    /// Time that a signal needs from one end to the other, if it is not that of the length.
    pub latency: Option<Span>,
}

impl LinkKind {
    /// A cable with the rate of its width and speed, and the latency of its length.
    pub const fn new(width: Width, speed: Speed, length: Length) -> Self {
        Self {
            width,
            speed,
            rate: None,
            length,
            latency: None,
        }
    }

    /// The data rate after line coding, in each direction, in whole bit/s, rounded down; only FDR is not exact.
    pub const fn data_rate(self) -> Rate {
        if let Some(rate) = self.rate {
            return rate;
        }
        let (numerator, denominator) = self.speed.coding();
        let bits = self.width.lanes() * self.speed.lane_signalling_bits_per_sec();
        positive(bits * numerator / denominator)
    }

    /// The rate of bits on the wire of this width and speed, line coding included, in each direction; exact.
    pub const fn signalling_rate(self) -> Rate {
        positive(self.width.lanes() * self.speed.lane_signalling_bits_per_sec())
    }

    /// The time that a signal needs from one end to the other.
    pub const fn propagation(self) -> Span {
        match self.latency {
            Some(latency) => latency,
            None => self.length.propagation(),
        }
    }
}

/// The most that a cable carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CableLimit {
    /// Most lanes.
    pub width: Option<Width>,
    /// Highest speed of a lane.
    pub speed: Option<Speed>,
    /// Highest rate of data.
    pub rate: Option<Rate>,
}

impl CableLimit {
    /// The cable within this limit: full width or one lane; a cable's rate does not hold for another width or speed.
    pub fn of(self, cable: LinkKind) -> LinkKind {
        let width = match self.width {
            Some(most) if most < cable.width => Width::X1,
            _ => cable.width,
        };
        let speed = self.speed.map_or(cable.speed, |most| most.min(cable.speed));
        let is_unchanged = (width, speed) == (cable.width, cable.speed);
        let kind = LinkKind {
            width,
            speed,
            rate: cable.rate.filter(|_| is_unchanged),
            ..cable
        };
        let lower = self.rate.filter(|most| *most < kind.data_rate());
        LinkKind {
            rate: lower.or(kind.rate),
            ..kind
        }
    }
}

/// Differences of some cables from the section `link`: all keys are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(inline, extend("x-type" = "cable"))]
pub struct Cable {
    /// Number of lanes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
    /// Speed of each lane, which also decides the line coding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Data rate in each direction; overrides width and speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RateText>")]
    pub rate: Option<Rate>,
    /// Length; a signal needs 5 ns per metre.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<LengthText>")]
    pub length: Option<Length>,
    /// Time of a signal from one end to the other; overrides the length.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SpanText>")]
    pub latency: Option<Span>,
}

impl Cable {
    /// The cable with `link` in place of missing values.
    pub fn or(self, link: LinkKind) -> LinkKind {
        let same_lanes = self.width.is_none() && self.speed.is_none();
        let same_length = self.length.is_none();
        LinkKind {
            width: self.width.unwrap_or(link.width),
            speed: self.speed.unwrap_or(link.speed),
            rate: self.rate.or(link.rate.filter(|_| same_lanes)),
            length: self.length.unwrap_or(link.length),
            latency: self.latency.or(link.latency.filter(|_| same_length)),
        }
    }

    /// Returns true if nothing differs.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

const fn positive(bits_per_sec: u64) -> Rate {
    match Rate::from_bits_per_sec(bits_per_sec) {
        Some(rate) => rate,
        None => panic!("every width and speed has a positive rate"),
    }
}

/// A cable between two ports; both directions carry data at the same rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The first end.
    pub a: PortId,
    /// The other end.
    pub b: PortId,
    /// Width, speed and length.
    pub kind: LinkKind,
}

impl Link {
    /// The rate of data after line coding; see [`LinkKind::data_rate`].
    pub const fn data_rate(&self) -> Rate {
        self.kind.data_rate()
    }

    /// The rate of bits on the wire; see [`LinkKind::signalling_rate`].
    pub const fn signalling_rate(&self) -> Rate {
        self.kind.signalling_rate()
    }

    /// The time that a signal needs from one end to the other.
    pub const fn propagation(&self) -> Span {
        self.kind.propagation()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed parse is a failed test")]
mod tests {
    use super::*;

    fn gbit(width: &str, speed: &str) -> (u64, u64) {
        let (width, speed) = (width.parse().unwrap(), speed.parse().unwrap());
        let kind = LinkKind::new(width, speed, Length::ZERO);
        (
            kind.data_rate().bits_per_sec(),
            kind.signalling_rate().bits_per_sec(),
        )
    }

    /// InfiniBand roadmap at 4x: 10, 20, 40, 56, 100, 200, 400 and 800 Gbit/s.
    #[test]
    fn rates_are_the_published_ones() {
        assert_eq!(gbit("4x", "SDR"), (8_000_000_000, 10_000_000_000));
        assert_eq!(gbit("4x", "DDR"), (16_000_000_000, 20_000_000_000));
        assert_eq!(gbit("4x", "QDR"), (32_000_000_000, 40_000_000_000));
        assert_eq!(gbit("4x", "FDR10"), (40_000_000_000, 41_250_000_000));
        assert_eq!(gbit("4x", "FDR"), (54_545_454_545, 56_250_000_000));
        assert_eq!(gbit("4x", "EDR"), (100_000_000_000, 103_125_000_000));
        assert_eq!(gbit("4x", "HDR"), (200_000_000_000, 212_500_000_000));
        assert_eq!(gbit("4x", "NDR"), (400_000_000_000, 425_000_000_000));
        assert_eq!(gbit("4x", "XDR"), (800_000_000_000, 850_000_000_000));
        assert_eq!(gbit("1x", "FDR").0, 13_636_363_636);
        assert_eq!(gbit("2x", "HDR").0, 100_000_000_000);
        assert_eq!(gbit("8x", "NDR").0, 800_000_000_000);
        assert_eq!(gbit("12x", "QDR").0, 96_000_000_000);
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        assert_eq!(
            "3x".parse::<Width>().unwrap_err().to_string(),
            "unknown link width \"3x\" (known: 1x, 2x, 4x, 8x, 12x)"
        );
        assert_eq!(
            "ddr".parse::<Speed>().unwrap_err().to_string(),
            "unknown link speed \"ddr\" (known: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR)"
        );
    }

    /// Oracle: the InfiniBand roadmap for one lane and for the lower speed.
    #[test]
    fn limited_cable_has_one_lane_or_a_lower_speed() {
        let cable = LinkKind::new(Width::X4, Speed::Ndr, Length::from_mm(2_000));
        let rate = |limit: CableLimit, cable: LinkKind| limit.of(cable).data_rate().bits_per_sec();
        let none = CableLimit::default();
        assert_eq!(none.of(cable), cable);
        let narrow = |width| CableLimit {
            width: Some(width),
            ..none
        };
        assert_eq!(rate(narrow(Width::X1), cable), 100_000_000_000);
        assert_eq!(rate(narrow(Width::X2), cable), 100_000_000_000);
        assert_eq!(rate(narrow(Width::X8), cable), 400_000_000_000);
        let slow = CableLimit {
            speed: Some(Speed::Edr),
            ..none
        };
        assert_eq!(rate(slow, cable), 100_000_000_000);
        let capped = CableLimit {
            rate: "50 Gbit/s".parse().ok(),
            ..none
        };
        let ethernet = LinkKind {
            rate: "90 Gbit/s".parse().ok(),
            ..cable
        };
        assert_eq!(rate(capped, ethernet), 50_000_000_000);
        assert_eq!(rate(narrow(Width::X1), ethernet), 100_000_000_000);
        assert_eq!(capped.of(ethernet).propagation(), cable.propagation());
    }

    #[test]
    fn what_a_cable_states_replaces_the_link() {
        let link = LinkKind {
            rate: "3600 Gbit/s".parse().ok(),
            latency: "150 ns".parse().ok(),
            ..LinkKind::new(Width::X4, Speed::Ndr, Length::from_mm(2_000))
        };
        assert_eq!(link.data_rate().bits_per_sec(), 3_600_000_000_000);
        assert_eq!(link.propagation().as_ps(), 150_000);
        assert_eq!(Cable::default().or(link), link);
        let faster = Cable {
            speed: Some(Speed::Xdr),
            ..Cable::default()
        };
        assert_eq!(faster.or(link).data_rate().bits_per_sec(), 800_000_000_000);
        assert_eq!(faster.or(link).propagation(), link.propagation());
        let longer = Cable {
            length: Some(Length::from_mm(30_000)),
            ..Cable::default()
        };
        assert_eq!(longer.or(link).propagation().as_ps(), 150_000);
        assert_eq!(longer.or(link).data_rate(), link.data_rate());
    }
}
