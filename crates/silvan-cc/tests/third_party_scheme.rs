//! A scheme from outside the crate, written against the hooks alone, on a small fabric played by
//! hand.
//!
//! It combines window limits at the sources and naive marking of full buffers, the two ends of the
//! design space of santos2003 (its sections III and IV).

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;

use silvan_cc::hooks::{
    Feedback, Flow, PacketView, PortVl, QueueView, Resident, SettingChange, Settings,
    SourceControl, SwitchControl, UnknownSetting,
};
use silvan_cc::schemes::ib_cc::AdapterSetting;
use silvan_core::{HostId, PortId, Sl, Span, Time, Vl};

/// Marks all packets in an input buffer that is full ("naive"), or also all packets that compete
/// with them for their outputs (santos2003's proposal).
struct FullBufferMarking {
    competitors: bool,
    outputs: Vec<PortId>,
}

impl SwitchControl for FullBufferMarking {
    #[inline]
    fn needs_buffer_full(&self) -> bool {
        true
    }

    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}

    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        false
    }

    fn on_buffer_full<R: Resident>(&mut self, _: Time, input: PortId, vl: Vl, resident: &mut R) {
        if !self.competitors {
            return resident.mark_input(input, vl);
        }
        let outputs = &mut self.outputs;
        outputs.clear();
        resident.outputs_of(input, vl, &mut |output| outputs.push(output));
        for &output in &self.outputs {
            resident.mark_output(output, vl);
        }
    }
}

/// At most a window of bytes per flow without acknowledgement. A marked acknowledgement also
/// doubles the pause between packets, an unmarked one ends it.
struct Window {
    bytes: u32,
    flows: BTreeMap<Flow, FlowState>,
}

#[derive(Clone, Copy, Default)]
struct FlowState {
    outstanding: u32,
    pause: Span,
    release: Time,
}

impl SourceControl for Window {
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.flows.get(&flow) {
            Some(state) if state.outstanding >= self.bytes => Time::MAX,
            Some(state) => state.release,
            None => now,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let state = self.flows.entry(flow).or_default();
        state.outstanding += payload;
        state.release = now + wire_time + state.pause;
    }

    fn on_feedback(&mut self, _: Time, flow: Flow, feedback: Feedback) -> bool {
        let Feedback::Ack { bytes, becn } = feedback else {
            return false;
        };
        let state = self.flows.entry(flow).or_default();
        let closed = state.outstanding >= self.bytes;
        state.outstanding -= bytes;
        state.pause = if becn {
            (state.pause + Span::from_ns(1)) * 2
        } else {
            Span::ZERO
        };
        closed && state.outstanding < self.bytes
    }
}

/// The window is a parameter, but none that a manager could name.
impl Settings for Window {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

/// A switch of single-block packets on one VL; a packet is its input and output.
#[derive(Default)]
struct MockSwitch {
    packets: Vec<(PortId, PortId, bool)>,
}

const CAPACITY: u32 = 3;

impl MockSwitch {
    /// Puts a packet into the buffer of `input` and tells the control if that fills it.
    fn arrive<S: SwitchControl>(
        &mut self,
        control: &mut S,
        now: Time,
        input: usize,
        output: usize,
    ) {
        let input = PortId::new(input);
        self.packets.push((input, PortId::new(output), false));
        if control.needs_buffer_full() && self.occupied_blocks(input, Vl::ZERO) == CAPACITY {
            control.on_buffer_full(now, input, Vl::ZERO, self);
        }
    }

    fn marked(&self) -> Vec<(usize, usize)> {
        let marked = self.packets.iter().filter(|packet| packet.2);
        marked
            .map(|&(input, output, _)| (input.index(), output.index()))
            .collect()
    }
}

impl Resident for MockSwitch {
    fn occupied_blocks(&self, input: PortId, _: Vl) -> u32 {
        self.packets
            .iter()
            .filter(|packet| packet.0 == input)
            .count() as u32
    }

    fn capacity_blocks(&self, _: PortId, _: Vl) -> u32 {
        CAPACITY
    }

    fn queued_packets(&self, output: PortId, _: Vl) -> u32 {
        self.packets
            .iter()
            .filter(|packet| packet.1 == output)
            .count() as u32
    }

    fn outputs_of(&self, input: PortId, _: Vl, each: &mut dyn FnMut(PortId)) {
        let mut outputs: Vec<PortId> = self
            .packets
            .iter()
            .filter(|packet| packet.0 == input)
            .map(|packet| packet.1)
            .collect();
        outputs.sort_unstable();
        outputs.dedup();
        outputs.into_iter().for_each(each);
    }

    /// Packets leave at once.
    fn sending_outputs(&self, _: PortId, _: &mut dyn FnMut(PortId)) {}

    fn mark_input(&mut self, input: PortId, _: Vl) {
        for packet in self.packets.iter_mut().filter(|packet| packet.0 == input) {
            packet.2 = true;
        }
    }

    fn mark_output(&mut self, output: PortId, _: Vl) {
        for packet in self.packets.iter_mut().filter(|packet| packet.1 == output) {
            packet.2 = true;
        }
    }
}

/// Input 0 fills with packets for outputs 8 and 9; input 1 holds packets for 9 and 7.
fn fill(competitors: bool) -> MockSwitch {
    let mut control = FullBufferMarking {
        competitors,
        outputs: Vec::new(),
    };
    let mut switch = MockSwitch::default();
    for (input, output) in [(1, 9), (1, 7), (0, 9), (0, 8)] {
        switch.arrive(&mut control, Time::ZERO, input, output);
        assert!(switch.marked().is_empty(), "no buffer is full yet");
    }
    switch.arrive(&mut control, Time::ZERO, 0, 9);
    switch
}

/// santos2003, section IV: the naive scheme marks only what is in the full buffer, which
/// spares the flows that share its output; the proposal marks these, too.
#[test]
fn full_buffers_mark() {
    assert_eq!(fill(false).marked(), [(0, 9), (0, 8), (0, 9)]);
    assert_eq!(fill(true).marked(), [(1, 9), (0, 9), (0, 8), (0, 9)]);
}

#[test]
fn windows_hold_flows_back_until_acknowledged() {
    let flow = |destination| Flow {
        source: HostId::new(0),
        destination: HostId::new(destination),
        sl: Sl::ZERO,
        queue: 0,
    };
    let mut window = Window {
        bytes: 4_096,
        flows: BTreeMap::new(),
    };
    let wire_time = Span::from_ns(1_037);
    let mut now = Time::ZERO;
    let send = |window: &mut Window, now| window.on_send(now, flow(1), wire_time, 2_048);

    // Two packets fill the window of this flow and no other's.
    for _ in 0..2 {
        assert!(window.release(now, flow(1)) <= now);
        send(&mut window, now);
        now += wire_time;
    }
    assert_eq!(window.release(now, flow(1)), Time::MAX);
    assert_eq!(window.release(now, flow(2)), now);

    // The first acknowledgement opens it, and says so, the second finds it open.
    let ack = |becn| Feedback::Ack { bytes: 2_048, becn };
    assert!(window.on_feedback(now, flow(1), ack(false)));
    assert!(window.release(now, flow(1)) <= now);
    assert!(!window.on_feedback(now, flow(1), ack(true)));

    // The mark of the second makes the flow pause behind its next packet.
    send(&mut window, now);
    assert_eq!(
        window.release(now, flow(1)),
        now + wire_time + Span::from_ns(2)
    );
    assert!(!window.on_feedback(now, flow(1), Feedback::Cnp));

    let change = SettingChange::Adapter {
        sl: Sl::ZERO,
        setting: AdapterSetting::CctiTimer(1),
    };
    let error = window.apply(now, &change).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the congestion control in use has no setting for Adapter { sl: Sl(0), setting: CctiTimer(1) }"
    );
}

/// The engine omits hooks that a scheme does not request.
#[test]
fn optional_hooks_are_off_by_default() {
    use silvan_cc::hooks::NoControl;
    use silvan_cc::schemes::ib_cc::IbSwitch;

    const {
        assert!(<IbSwitch as SwitchControl>::ACTIVE && !<NoControl as SwitchControl>::ACTIVE);
    }
    assert!(!SwitchControl::needs_buffer_full(&NoControl) && !NoControl.needs_link());
    assert!(!NoControl.needs_credit());
    let control = FullBufferMarking {
        competitors: false,
        outputs: Vec::new(),
    };
    assert!(control.needs_buffer_full() && !control.needs_link());
    assert_eq!(control.congested_time(Time::ZERO, PortVl(0)), Span::ZERO);
    let mut window = Window {
        bytes: 1,
        flows: BTreeMap::new(),
    };
    assert!(!window.needs_credit());
    let now = Time::from_ps(5);
    assert_eq!(window.host_release(now, HostId::new(0)), now);
}
