mod cdf;
mod mixes;

use std::fmt;
use std::sync::Arc;

use rand_core::RngCore;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use silvan_core::advice::Advised;
use silvan_core::{Bytes, schema};

use crate::traffic::error::Reason;
use crate::traffic::rng::Stream;
use cdf::Cdf;
pub use cdf::{CdfError, read_cdf};

const LARGEST: u64 = 1 << 40;

/// A size, and the part of flows that are at most as large, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CdfPoint(
    /// The size.
    #[schemars(with = "schema::BytesText")]
    pub Bytes,
    /// Percent of the flows that are at most as large.
    pub f64,
);

/// Sizes of flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", remote = "Self")]
#[schemars(extend("x-type" = "name of a distribution, or table with one key"))]
pub enum SizeMix {
    /// Web search: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010; as the artifact of HPCC has it.
    WebSearch,
    /// Hadoop at Facebook: Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015; as the artifact
    /// of HPCC has it.
    Hadoop,
    /// Block storage at Alibaba, 2019: the artifact of Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019.
    AliStorage,
    /// Clients that write checkpoints to a parallel file system: requests, and bulk transfers of 1, 4 and 16 MiB as of
    /// Lustre (its Operations Manual, `max_pages_per_rpc`). The shares are an assumption.
    Checkpoint,
    /// All of one size.
    #[schemars(with = "schema::BytesText")]
    Fixed(Bytes),
    /// Each size in a range, equally likely.
    Uniform {
        /// The smallest.
        #[schemars(with = "schema::BytesText")]
        from: Bytes,
        /// The largest.
        #[schemars(with = "schema::BytesText")]
        to: Bytes,
    },
    /// A Pareto distribution, cut off at a largest size.
    Pareto {
        /// The exponent, above 0: the smaller, the heavier the tail.
        shape: f64,
        /// The smallest.
        #[schemars(with = "schema::BytesText")]
        from: Bytes,
        /// The largest.
        #[schemars(with = "schema::BytesText")]
        to: Bytes,
    },
    /// Points of the cumulative distribution, with straight lines in between.
    Cdf(Vec<CdfPoint>),
    /// A file with such points: a size in bytes and a share in each line, in percent or as fractions; or a file of Homa or YAPS.
    File(SizeFile),
}

/// Unit of the sizes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeUnit {
    /// A byte.
    Bytes,
    /// A packet with 1,460 bytes of payload, as in pFabric's simulations.
    Packets,
}

impl SizeUnit {
    fn bytes(self) -> f64 {
        match self {
            Self::Bytes => 1.0,
            Self::Packets => 1460.0,
        }
    }
}

/// A file with sizes of flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-type" = "path, or table with path and unit"))]
pub enum SizeFile {
    /// Path of the file. Sizes are in packets in files of YAPS, and in bytes in others.
    Path(String),
    /// Path of the file, and the unit of its sizes.
    In(SizeFileIn),
}

/// A file with sizes of flows in a stated unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SizeFileIn {
    /// Path of the file.
    pub path: String,
    /// Unit of the file's sizes.
    pub unit: SizeUnit,
}

impl SizeFile {
    /// Path of the file.
    pub fn path(&self) -> &str {
        match self {
            Self::Path(path) | Self::In(SizeFileIn { path, .. }) => path,
        }
    }

    /// The stated unit of its sizes.
    pub fn unit(&self) -> Option<SizeUnit> {
        match self {
            Self::Path(_) => None,
            Self::In(file) => Some(file.unit),
        }
    }
}

impl<'de> Deserialize<'de> for SizeFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FileVisitor;

        impl<'de> Visitor<'de> for FileVisitor {
            type Value = SizeFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "the path of a file, or a table with path and unit";
                let hint =
                    "write e.g. \"sizes.cdf\" or { path = \"sizes.cdf\", unit = \"packets\" }";
                Advised { message, hint }.fmt(f)
            }

            fn visit_str<E: Error>(self, path: &str) -> Result<SizeFile, E> {
                Ok(SizeFile::Path(path.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SizeFile, A::Error> {
                SizeFileIn::deserialize(MapAccessDeserializer::new(map)).map(SizeFile::In)
            }
        }

        deserializer.deserialize_any(FileVisitor)
    }
}

impl Serialize for SizeMix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for SizeMix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MixVisitor;

        impl<'de> Visitor<'de> for MixVisitor {
            type Value = SizeMix;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "the name of a distribution, or a table";
                let hint = "write e.g. \"web-search\" or { fixed = \"64 KiB\" }";
                Advised { message, hint }.fmt(f)
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<SizeMix, E> {
                SizeMix::deserialize(name.into_deserializer())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SizeMix, A::Error> {
                if map.size_hint() == Some(0) {
                    return Err(A::Error::invalid_type(
                        Unexpected::Other("an empty table"),
                        &self,
                    ));
                }
                let mix = SizeMix::deserialize(MapAccessDeserializer::new(&mut map))?;
                match map.next_key::<String>()? {
                    None => Ok(mix),
                    Some(key) => {
                        let message = &format!("two distributions of sizes; the second is {key:?}");
                        let hint = "leave one of them, or write two entries";
                        Err(A::Error::custom(Advised { message, hint }))
                    }
                }
            }
        }

        deserializer.deserialize_any(MixVisitor)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Sizes {
    Fixed(u64),
    Uniform { from: u64, to: u64 },
    Pareto(Pareto),
    Cdf(Arc<Cdf>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pareto {
    shape: f64,
    from: f64,
    to: f64,
    range: f64,
}

impl SizeMix {
    pub(crate) fn sizes(&self) -> Result<Sizes, Reason> {
        Ok(match self {
            Self::WebSearch => Sizes::cdf(&mixes::points(mixes::WEB_SEARCH))?,
            Self::Hadoop => Sizes::cdf(&mixes::points(mixes::HADOOP))?,
            Self::AliStorage => Sizes::cdf(&mixes::points(mixes::ALI_STORAGE))?,
            Self::Checkpoint => Sizes::cdf(&mixes::points(mixes::CHECKPOINT))?,
            Self::Fixed(bytes) => Sizes::Fixed(size(*bytes)?),
            Self::Uniform { from, to } => {
                let (from, to) = range(*from, *to)?;
                Sizes::Uniform { from, to }
            }
            Self::Pareto { shape, from, to } => {
                let (from, to) = range(*from, *to)?;
                if !(shape.is_finite() && *shape > 0.0) {
                    return Err(Reason::ParetoShape(*shape));
                }
                let (from, to) = (from as f64, to as f64);
                Sizes::Pareto(Pareto {
                    shape: *shape,
                    from,
                    to,
                    range: libm::log(to / from),
                })
            }
            Self::Cdf(points) => Sizes::cdf(points)?,
            Self::File(file) => return Err(Reason::UnreadFile(file.path().to_owned())),
        })
    }
}

fn size(bytes: Bytes) -> Result<u64, Reason> {
    match bytes.as_u64() {
        0 => Err(Reason::ZeroBytes),
        bytes if bytes > LARGEST => Err(Reason::FlowTooLarge(Bytes::from_bytes(bytes))),
        bytes => Ok(bytes),
    }
}

fn range(from: Bytes, to: Bytes) -> Result<(u64, u64), Reason> {
    let range = (size(from)?, size(to)?);
    match range.0 < range.1 {
        true => Ok(range),
        false => Err(Reason::SizeRange { from, to }),
    }
}

impl Sizes {
    fn cdf(points: &[CdfPoint]) -> Result<Self, Reason> {
        Cdf::new(points)
            .map(|cdf| Self::Cdf(Arc::new(cdf)))
            .map_err(|error| Reason::Cdf(Box::new(error)))
    }

    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => *bytes as f64,
            Self::Uniform { from, to } => (*from as f64 + *to as f64) / 2.0,
            Self::Pareto(pareto) => pareto.mean(),
            Self::Cdf(cdf) => cdf.mean(),
        }
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform { from, to } => {
                let range = u128::from(to - from + 1);
                from + ((u128::from(stream.next_u64()) * range) >> 64) as u64
            }
            Self::Pareto(pareto) => pareto.draw(stream),
            Self::Cdf(cdf) => cdf.draw(stream),
        }
    }
}

/// The logarithm of a size, in units of `from`, has an exponential density up to `range`.
impl Pareto {
    /// Integral of x f(x) between the two sizes.
    fn mean(&self) -> f64 {
        self.from * decay(self.shape - 1.0, self.range) / decay(self.shape, self.range)
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        let uniform = f64::from(stream.next_u32()) / (f64::from(u32::MAX) + 1.0);
        let area = uniform * decay(self.shape, self.range);
        let size = self.from * libm::exp(decay_end(self.shape, area));
        libm::round(size.min(self.to)) as u64
    }
}

/// Below this, an exponent times its range does not change the integral.
const NEGLIGIBLE: f64 = f64::EPSILON / 8.0;

/// Integral of `exp(-rate t)` from 0 to `end`.
fn decay(rate: f64, end: f64) -> f64 {
    let exponent = rate * end;
    match exponent.abs() < NEGLIGIBLE {
        true => end,
        false => -libm::expm1(-exponent) / rate,
    }
}

fn decay_end(rate: f64, area: f64) -> f64 {
    let part = rate * area;
    match part.abs() < NEGLIGIBLE {
        true => area,
        false => -libm::log1p(-part) / rate,
    }
}
