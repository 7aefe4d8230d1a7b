use silvan_core::prefetch::prefetch;

use crate::packet::Packet;

#[derive(Clone, Debug, Default)]
pub(super) struct PacketSlab {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl PacketSlab {
    pub fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = packet;
            return slot;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    pub fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.packets[slot as usize]
    }

    pub fn get(&self, slot: u32) -> &Packet {
        &self.packets[slot as usize]
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.packets[slot as usize]
    }

    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        prefetch(&self.packets, slot as usize);
    }
}
