//! Input buffers as their switch sees them, for schemes that read fill levels.

use silvan_cc::hooks::SwitchControl;

use crate::packet::Packet;
use crate::plane::Plane;
use crate::records::{Credits, Overflow};
use crate::table::Table;
use crate::variant::{CompiledFabric, EngineVariant};

#[derive(Clone, Debug)]
pub(crate) struct Buffers {
    lanes: Table<Credits>,
}

impl CompiledFabric {
    /// Keeps account of input buffers if a scheme reads them; call it before the choice of an engine.
    pub fn serve<S: SwitchControl>(&mut self, switch: &S) {
        if S::ACTIVE && (switch.needs_buffer_full() || switch.delays_credits()) {
            self.count_buffers();
        }
    }

    /// Keeps this account, for a scheme that may begin to delay credits during the run.
    pub fn count_buffers(&mut self) {
        self.0.count_buffers();
    }

    /// True if switches keep accounts: events in the order of time then cost more than windows save.
    pub fn counts_buffers(&self) -> bool {
        self.0.buffers.is_some()
    }
}

impl Plane {
    fn count_buffers(&mut self) {
        if self.buffers.is_none() && self.pauses.is_none() {
            let lanes = 0..self.fabric_ports * self.vls;
            let empty = |lane| Credits::new(self.input_capacity((lane / self.vls) as u32));
            let lanes: Vec<Credits> = lanes.map(empty).collect();
            self.buffers = Some(Box::new(Buffers {
                lanes: lanes.into(),
            }));
        }
    }

    /// `None` for the stage of an output buffer.
    #[inline(always)]
    fn account<F: EngineVariant>(
        &mut self,
        input: u32,
        vl: usize,
    ) -> Option<(&mut Credits, &mut Overflow)> {
        if F::PLAIN || input as usize >= self.fabric_ports {
            return None;
        }
        let lane = self.lane(input, vl);
        let buffers = self.buffers.as_mut()?;
        Some((&mut buffers.lanes[lane], &mut self.overflow))
    }

    #[inline(always)]
    pub fn take_room<F: EngineVariant>(&mut self, input: u32, packet: &Packet) {
        if let Some((account, _)) = self.account::<F>(input, packet.vl()) {
            account.in_hand -= packet.blocks();
        }
    }

    #[inline(always)]
    pub fn free_room<F: EngineVariant>(
        &mut self,
        now: u64,
        tail: u64,
        input: u32,
        packet: &Packet,
    ) {
        if let Some((account, overflow)) = self.account::<F>(input, packet.vl()) {
            account.post(overflow, now, tail, packet.blocks());
        }
    }

    /// In blocks; panics if no account is kept.
    pub fn room(&self, now: u64, input: u32, vl: usize) -> (i32, i32) {
        if self.pauses.is_some() {
            let upstream = self.ins[input as usize].upstream;
            return self.room_behind(now, self.lane(upstream, vl));
        }
        let free = self.free_blocks(now, input, vl);
        assert!(free.is_some(), "no account is kept of input buffers");
        (self.input_capacity(input), free.unwrap_or(0))
    }

    pub fn free_blocks(&self, now: u64, input: u32, vl: usize) -> Option<i32> {
        let account = &self.buffers.as_ref()?.lanes[self.lane(input, vl)];
        Some(account.at(&self.overflow, now))
    }

    pub fn is_full<F: EngineVariant>(&mut self, now: u64, input: u32, vl: usize) -> bool {
        if F::PFC && self.pauses.is_some() {
            let upstream = self.ins[input as usize].upstream;
            return self.pauses_sender(now, self.lane(upstream, vl));
        }
        let blocks = self.mtu_blocks;
        self.account::<F>(input, vl)
            .is_some_and(|(account, overflow)| !account.has(overflow, now, blocks))
    }

    pub fn collect_freed(&mut self, now: u64) {
        if let Some(buffers) = &mut self.buffers {
            for account in buffers.lanes.iter_mut() {
                account.collect_arrived(&mut self.overflow, now);
            }
        }
    }

    /// Blocks of an input buffer that are free, or will be as far as tails have a time to leave.
    pub fn accounted_blocks(&self, input: u32, vl: usize) -> Option<i32> {
        let account = &self.buffers.as_ref()?.lanes[self.lane(input, vl)];
        Some(account.in_hand + account.pending(&self.overflow))
    }
}

impl Buffers {
    pub fn bytes(&self) -> usize {
        self.lanes.capacity() * size_of::<Credits>()
    }
}
