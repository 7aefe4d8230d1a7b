/// Payload and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Payload in bytes.
    pub bytes: f64,
    /// Packets that carry it.
    pub packets: f64,
}

impl Demand {
    pub(crate) fn of_messages(bytes: f64, message: f64, mtu: u32) -> Self {
        let message = message.max(1.0);
        let packets = (message / f64::from(mtu.max(1))).ceil();
        Self {
            bytes,
            packets: bytes / message * packets,
        }
    }

    /// Adds another demand.
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.packets += other.packets;
    }

    /// A part or a multiple of it.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            bytes: self.bytes * factor,
            packets: self.packets * factor,
        }
    }
}
