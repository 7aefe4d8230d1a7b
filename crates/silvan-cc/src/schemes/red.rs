//! Random marks by an output's queue over all input buffers: 0 up to Kmin, Pmax at Kmax, 1 beyond (Zhu et al. 2015,
//! figure 5).

use silvan_core::{Bytes, Time};

use crate::hooks::{PacketView, PerPortVl, PortVl, QueueView, Settings, SwitchControl};
use crate::schemes::Setup;
use silvan_core::stream::SplitMix64;

#[derive(Clone, Debug)]
pub struct RedMarker {
    k_min: f64,
    slope: f64,
    k_max: u64,
    streams: Vec<SplitMix64>,
    marked: Vec<u64>,
}

impl RedMarker {
    pub(super) fn off(setup: &Setup<'_>) -> Self {
        Self {
            k_min: f64::INFINITY,
            slope: 0.0,
            k_max: u64::MAX,
            streams: Vec::new(),
            marked: vec![0; setup.ports.len() * usize::from(setup.data_vls)],
        }
    }

    pub(super) fn new(k_min: Bytes, k_max: Bytes, p_max: f64, setup: &Setup<'_>) -> Self {
        let port_vls = setup.ports.len() * usize::from(setup.data_vls);
        Self {
            k_min: k_min.as_u64() as f64,
            slope: p_max / (k_max.as_u64() - k_min.as_u64()) as f64,
            k_max: k_max.as_u64(),
            streams: (0..port_vls as u64)
                .map(|port_vl| SplitMix64::for_stream(setup.switch_seed(), port_vl))
                .collect(),
            marked: vec![0; port_vls],
        }
    }
}

impl SwitchControl for RedMarker {
    #[inline]
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}

    #[inline]
    fn on_departure(&mut self, _: Time, output: PortVl, queue: QueueView, _: PacketView) -> bool {
        let queued = f64::from(queue.queued_bytes);
        if queued <= self.k_min {
            return false;
        }
        let output = output.0 as usize;
        let mark = u64::from(queue.queued_bytes) >= self.k_max
            || self.streams[output].part() < (queued - self.k_min) * self.slope;
        self.marked[output] += u64::from(mark);
        mark
    }

    fn marked(&self, output: PortVl) -> u64 {
        self.marked[output.0 as usize]
    }
}

impl Settings for RedMarker {}

impl PerPortVl for RedMarker {}
