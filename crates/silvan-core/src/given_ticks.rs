use std::collections::BTreeMap;
use std::fmt;

use crate::advice::parts;
use crate::document::nearest;
use crate::{DeviceId, Span};

/// Ticks of PortXmitWait that a user states: of all ports, of the ports of some devices, or both.
///
/// ```
/// use silvan_core::{DeviceId, GivenTicks, Span};
///
/// let given = GivenTicks::parse(["4 ns", "Quantum=0.32 ns"])?;
/// assert_eq!(given.of(Some(DeviceId::QUANTUM)), Some(Span::from_ps(320)));
/// assert_eq!(given.of(None), Some(Span::from_ns(4)));
/// # Ok::<(), silvan_core::GivenTickError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenTicks {
    all: Option<Span>,
    // OEMs put their own VendorID into devices, so that the DeviceID alone tells them apart.
    devices: BTreeMap<u32, Span>,
}

impl GivenTicks {
    /// A tick of all ports.
    pub fn of_all(tick: Span) -> Self {
        Self {
            all: Some(tick),
            devices: BTreeMap::new(),
        }
    }

    /// Reads `0.32 ns` for all ports, and `Quantum=0.32 ns` for a device's; an error is the first wrong text.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, GivenTickError> {
        let mut given = Self::default();
        for text in texts {
            match text.split_once('=') {
                Some((device, tick)) => given.add(device.trim(), above_zero(tick)?)?,
                None if given.all.is_some() => {
                    return Err(GivenTickError::new(
                        format!("{text:?}: the tick of all ports is given twice"),
                        "write DEVICE=TIME for the ports of one device",
                    ));
                }
                None => given.all = Some(above_zero(text)?),
            }
        }
        Ok(given)
    }

    /// States a device's tick, by name or DeviceID; it must be known and without one.
    pub fn add(&mut self, device: &str, tick: Span) -> Result<(), GivenTickError> {
        let id = device_id(device)?;
        match self.devices.insert(id, tick) {
            None => Ok(()),
            Some(_) => Err(GivenTickError::new(
                format!("the tick of device {device} is given twice"),
                "give one tick for each device",
            )),
        }
    }

    /// The tick of ports of a device, which may be unknown.
    pub fn of(&self, device: Option<DeviceId>) -> Option<Span> {
        self.of_device(device).or(self.all)
    }

    /// The tick of ports of a device, if one is stated for this device.
    pub fn of_device(&self, device: Option<DeviceId>) -> Option<Span> {
        self.devices.get(&device?.device).copied()
    }

    /// Returns true if each port has a stated tick.
    pub fn has_all(&self) -> bool {
        self.all.is_some()
    }

    /// Returns stated DeviceIDs that match none of these devices.
    pub fn absent<'a>(
        &'a self,
        devices: impl Iterator<Item = DeviceId> + Clone + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let stated = self.devices.keys().copied();
        stated.filter(move |id| devices.clone().all(|device| device.device != *id))
    }
}

/// A stated tick that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenTickError {
    message: String,
    hint: String,
}

impl GivenTickError {
    fn new(message: String, hint: impl Into<String>) -> Self {
        Self {
            message,
            hint: hint.into(),
        }
    }

    /// Hint: a text to write instead.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for GivenTickError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for GivenTickError {}

fn above_zero(text: &str) -> Result<Span, GivenTickError> {
    let hint = "write, for example, \"0.32 ns\"";
    let tick: Span = text.trim().parse().map_err(|error| {
        let (message, advice) = parts(&error);
        GivenTickError::new(message, advice.unwrap_or_else(|| hint.to_owned()))
    })?;
    match tick.is_zero() {
        false => Ok(tick),
        true => Err(GivenTickError::new(
            format!("{:?} is no time above 0", text.trim()),
            hint,
        )),
    }
}

fn device_id(text: &str) -> Result<u32, GivenTickError> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    // DeviceID has 16 bits.
    let number = number.filter(|id| *id <= u32::from(u16::MAX));
    let named = || DeviceId::named(text).map(|device| device.device);
    number.or_else(named).ok_or_else(|| {
        let names = DeviceId::NAMES.map(|(name, _)| name);
        let near = nearest(text, names).map(|name| format!("did you mean {name:?}?"));
        GivenTickError::new(
            format!(
                "there is no device {text:?}: {} and DeviceIDs from 0 to 65535 are supported",
                names.join(", ")
            ),
            near.unwrap_or_else(|| {
                "write a DeviceID as the file shows it, such as 0xd2f0 or 54000".to_owned()
            }),
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    fn ps(given: &GivenTicks, device: DeviceId) -> Option<u64> {
        given.of(Some(device)).map(Span::as_ps)
    }

    #[test]
    fn devices_are_named_or_numbered() {
        let texts = ["Quantum", "quantum", "0xd2f0", "0xD2F0", "54000"];
        for text in texts {
            let given = GivenTicks::parse([format!("{text}=0.32 ns").as_str()]).unwrap();
            assert_eq!(ps(&given, DeviceId::QUANTUM), Some(320), "{text}");
            assert_eq!(ps(&given, DeviceId::QUANTUM_2), None, "{text}");
            assert_eq!(given.of(None), None);
        }
        for text in ["SwitchX", "Switch-X", "switch x", "0xc738"] {
            let given = GivenTicks::parse([format!("{text} = 10.24 ns").as_str()]).unwrap();
            assert_eq!(ps(&given, DeviceId::SWITCH_X), Some(10_240), "{text}");
        }
        for (name, device) in DeviceId::NAMES {
            let given = GivenTicks::parse([format!("{name}=1 ns").as_str()]).unwrap();
            assert_eq!(ps(&given, device), Some(1_000), "{name}");
        }
    }

    #[test]
    fn device_goes_before_all_ports() {
        for texts in [["4 ns", "quantum=1 ns"], ["quantum=1 ns", "4 ns"]] {
            let given = GivenTicks::parse(texts).unwrap();
            assert!(given.has_all());
            assert_eq!(ps(&given, DeviceId::QUANTUM), Some(1_000));
            assert_eq!(ps(&given, DeviceId::QUANTUM_2), Some(4_000));
            let oem = DeviceId {
                vendor: 0x8f1,
                ..DeviceId::QUANTUM
            };
            assert_eq!(ps(&given, oem), Some(1_000));
        }
    }

    #[test]
    fn absent_devices_are_found() {
        let given = GivenTicks::parse(["quantum=1 ns", "53000=1 ns"]).unwrap();
        let found: Vec<u32> = given.absent([DeviceId::QUANTUM].into_iter()).collect();
        assert_eq!(found, [53_000]);
    }

    #[test]
    fn errors_name_text_and_cure() {
        let cases: [(&[&str], &str, &str); 9] = [
            (
                &["quantm=1 ns"],
                "there is no device \"quantm\": emulated, switch-x, switch-ib, switch-ib-2, quantum,",
                "did you mean \"quantum\"?",
            ),
            (&["spectrum=1 ns"], "there is no device", "write a DeviceID"),
            (&["0x1d2f0=1 ns"], "there is no device", "write a DeviceID"),
            (&["=1 ns"], "there is no device \"\"", "write a DeviceID"),
            (&["quantum=0 ns"], "\"0 ns\" is no time above 0", "write"),
            (&["quantum="], "invalid time span \"\"", "write"),
            (
                &["4"],
                "invalid time span \"4\": the unit is missing",
                "write",
            ),
            (
                &["4 ns", "5 ns"],
                "\"5 ns\": the tick of all ports is given twice",
                "write",
            ),
            (
                &["quantum=1 ns", "54000=1 ns"],
                "the tick of device 54000 is given twice",
                "give one",
            ),
        ];
        for (texts, message, hint) in cases {
            let error = GivenTicks::parse(texts.iter().copied()).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
            assert!(error.hint().starts_with(hint), "{error}: {}", error.hint());
        }
    }
}
