//! The tick of PortXmitWait and PortXmitTimeCong, by device.
//!
//! | device | PortSamplesControl.Tick | tick |
//! |---|---|---|
//! | Quantum, Quantum-2, Quantum-3 | 7 | 8 bytes at the data rate of the port |
//! | SwitchX, Switch-IB, Switch-IB 2 | 31 | 32 bytes at the data rate of a lane |
//! | emulated switch | 4 ns in symbols, less 1 | as many symbols of a lane as 4 ns have |
//!
//! Source: NVIDIA's ibdiagnet manual 2.13, "Congestion Assessment on InfiniBand Links" (switches only).

use crate::Span;
use crate::counters::EMULATED_TICK;

/// VendorID and DeviceID of NodeInfo (IBA volume 1, 14.2.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// VendorID.
    pub vendor: u32,
    /// DeviceID.
    pub device: u32,
}

impl DeviceId {
    /// The vendor of Mellanox's and NVIDIA's devices.
    pub const MELLANOX: u32 = 0x2c9;
    /// Emulated switches and adapters, unless they show another device.
    pub const EMULATED: Self = Self {
        vendor: 0,
        device: 1,
    };
    /// SwitchX.
    pub const SWITCH_X: Self = Self::mellanox(0xc738);
    /// Switch-IB.
    pub const SWITCH_IB: Self = Self::mellanox(0xcb20);
    /// Switch-IB 2.
    pub const SWITCH_IB_2: Self = Self::mellanox(0xcf08);
    /// Quantum.
    pub const QUANTUM: Self = Self::mellanox(0xd2f0);
    /// Quantum-2.
    pub const QUANTUM_2: Self = Self::mellanox(0xd2f2);
    /// Quantum-3.
    pub const QUANTUM_3: Self = Self::mellanox(0xd2f4);

    /// Devices that have a name in options and configurations.
    pub const NAMES: [(&str, Self); 7] = [
        ("emulated", Self::EMULATED),
        ("switch-x", Self::SWITCH_X),
        ("switch-ib", Self::SWITCH_IB),
        ("switch-ib-2", Self::SWITCH_IB_2),
        ("quantum", Self::QUANTUM),
        ("quantum-2", Self::QUANTUM_2),
        ("quantum-3", Self::QUANTUM_3),
    ];

    /// The device of a name. Case, spaces, hyphens and underscores do not matter.
    pub fn named(name: &str) -> Option<Self> {
        let letters = |text: &str| -> String {
            let kept = text
                .chars()
                .filter(|letter| !matches!(letter, ' ' | '-' | '_'));
            kept.map(|letter| letter.to_ascii_lowercase()).collect()
        };
        let wanted = letters(name);
        let found = Self::NAMES
            .iter()
            .find(|(known, _)| letters(known) == wanted);
        found.map(|(_, device)| *device)
    }

    const fn mellanox(device: u32) -> Self {
        Self {
            vendor: Self::MELLANOX,
            device,
        }
    }
}

/// Rule for the tick of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickRule {
    /// A symbol is a byte at the data rate of the port.
    Port,
    /// A symbol is a byte at the data rate of a lane.
    Lane,
    /// Like `Lane`, with about the same tick on each link.
    Emulated,
}

impl TickRule {
    /// The rule of a device, by its DeviceID; `None` for devices that the manual does not list.
    pub fn of_device(id: DeviceId) -> Option<Self> {
        const PORT: [u32; 3] = [
            DeviceId::QUANTUM.device,
            DeviceId::QUANTUM_2.device,
            DeviceId::QUANTUM_3.device,
        ];
        const LANE: [u32; 3] = [
            DeviceId::SWITCH_X.device,
            DeviceId::SWITCH_IB.device,
            DeviceId::SWITCH_IB_2.device,
        ];
        match id {
            DeviceId::EMULATED => Some(Self::Emulated),
            // OEMs put their own VendorID into these devices.
            DeviceId { device, .. } if PORT.contains(&device) => Some(Self::Port),
            DeviceId { device, .. } if LANE.contains(&device) => Some(Self::Lane),
            _ => None,
        }
    }

    /// The rule of an unlisted device: a Tick counts symbols of a lane (IBA volume 1, 16.1.3.2).
    pub fn of_code(code: u8) -> Self {
        match code {
            Self::PORT_CODE => Self::Port,
            _ => Self::Lane,
        }
    }

    const PORT_CODE: u8 = 7;
    const LANE_CODE: u8 = 31;

    /// PortSamplesControl.Tick of a port whose link carries `bits_per_second` of data over so many lanes.
    pub fn code(self, bits_per_second: u64, lanes: u64) -> u8 {
        match self {
            Self::Port => Self::PORT_CODE,
            Self::Lane => Self::LANE_CODE,
            Self::Emulated => {
                let per_second = u128::from(bits_per_second / lanes.max(1) / 8);
                let symbols = per_second * u128::from(EMULATED_TICK.as_ps()) / PS_PER_SECOND;
                u8::try_from(symbols.max(1) - 1).unwrap_or(u8::MAX)
            }
        }
    }

    /// Length of a tick of a port with this PortSamplesControl.Tick.
    pub fn tick(self, code: u8, bits_per_second: u64, lanes: u64) -> Span {
        let symbol_rate = match self {
            Self::Port => bits_per_second,
            Self::Lane | Self::Emulated => bits_per_second / lanes.max(1),
        };
        let bits = (u128::from(code) + 1) * 8;
        let ps = bits * PS_PER_SECOND / u128::from(symbol_rate.max(1));
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX).max(1))
    }
}

const PS_PER_SECOND: u128 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn ps(device: DeviceId, gbps: u64, lanes: u64) -> Option<u64> {
        let rate = gbps * 1_000_000_000;
        let rule = TickRule::of_device(device)?;
        Some(rule.tick(rule.code(rate, lanes), rate, lanes).as_ps())
    }

    /// Oracle: the manual's rule by hand, and ticks 0, 1 and 3 of a fixed 250 MHz clock at SDR, DDR and QDR. The
    /// kernel's driver for QLogic adapters returns these (qib, `QIB_IB_CFG_PMA_TICKS`).
    #[test]
    fn ticks_are_those_of_the_manual_and_of_a_fixed_clock() {
        assert_eq!(ps(DeviceId::QUANTUM, 200, 4), Some(320));
        assert_eq!(ps(DeviceId::QUANTUM, 100, 2), Some(640));
        assert_eq!(ps(DeviceId::QUANTUM_2, 400, 4), Some(160));
        assert_eq!(ps(DeviceId::QUANTUM_3, 800, 4), Some(80));
        assert_eq!(ps(DeviceId::SWITCH_IB, 100, 4), Some(10_240));
        assert_eq!(ps(DeviceId::SWITCH_IB_2, 25, 1), Some(10_240));
        for (lane, code) in [(2, 0), (4, 1), (8, 3), (50, 24), (100, 49), (200, 99)] {
            assert_eq!(ps(DeviceId::EMULATED, 4 * lane, 4), Some(4_000), "{lane}");
            assert_eq!(TickRule::Emulated.code(4 * lane * 1_000_000_000, 4), code);
        }
        let unknown = DeviceId {
            vendor: 1,
            device: 2,
        };
        assert_eq!(TickRule::of_device(unknown), None);
        assert_eq!(TickRule::of_code(7), TickRule::Port);
        assert_eq!(TickRule::of_code(0), TickRule::Lane);
    }
}
