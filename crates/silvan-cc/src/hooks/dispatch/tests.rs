use std::cell::RefCell;

use silvan_core::{HostId, PortId, Sl, Span, Time, Vl};

use crate::hooks::{
    Feedback, Flow, LinkView, NoControl, PacketView, PortVl, QueueView, Resident, SettingChange,
    Settings, SourceControl, SwitchControl, UnknownSetting,
};
use crate::schemes::ib_cc::AdapterSetting;

const NOW: Time = Time::from_ps(7);
const HOST: HostId = HostId::new(3);
const LANE: PortVl = PortVl(5);
const CHANGE: SettingChange = SettingChange::Adapter {
    sl: Sl::ZERO,
    setting: AdapterSetting::CctiTimer(1),
};
const FLOW: Flow = Flow {
    source: HOST,
    destination: HostId::new(4),
    sl: Sl::ZERO,
    queue: 0,
};

/// Records its calls, and never answers as a scheme that leaves a method out would.
#[derive(Default)]
struct Noting(RefCell<Vec<&'static str>>);

impl SwitchControl for Noting {
    fn needs_buffer_full(&self) -> bool {
        true
    }
    fn needs_link(&self) -> bool {
        true
    }
    fn prefetch_packet(&self, output: PortVl) {
        assert_eq!(output, LANE);
        self.0.borrow_mut().push("packet expected");
    }
    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        assert_eq!((now, output, queue.queued_bytes), (NOW, LANE, 8));
        assert_eq!(packet.wire_bytes, 9);
        self.0.borrow_mut().push("queued");
    }
    fn on_departure(&mut self, _: Time, output: PortVl, _: QueueView, packet: PacketView) -> bool {
        assert_eq!((output, packet.marked), (LANE, true));
        self.0.borrow_mut().push("departure");
        true
    }
    fn on_discarded(&mut self, now: Time, output: PortVl) {
        assert_eq!((now, output), (NOW, LANE));
        self.0.borrow_mut().push("discarded");
    }
    fn on_link(&mut self, _: Time, output: PortVl, packet: LinkView) {
        assert_eq!((output, packet.source), (LANE, HOST));
        self.0.borrow_mut().push("link");
    }
    fn on_buffer_full<R: Resident>(&mut self, _: Time, input: PortId, vl: Vl, resident: &mut R) {
        resident.mark_input(input, vl);
        self.0.borrow_mut().push("full");
    }
    fn delays_credits(&self) -> bool {
        true
    }
    fn credit_return_delay(&self, input: PortId, occupied: u32, packet_time: Span) -> Span {
        assert_eq!((input, occupied), (PortId::new(2), 4));
        packet_time * 2
    }
    fn marked(&self, output: PortVl) -> u64 {
        u64::from(output.0)
    }
    fn congested_time(&self, now: Time, output: PortVl) -> Span {
        assert_eq!(output, LANE);
        now.since(Time::ZERO)
    }
}

impl SourceControl for Noting {
    fn needs_credit(&self) -> bool {
        true
    }
    fn prefetch_release(&self, host: HostId) {
        assert_eq!(host, HOST);
        self.0.borrow_mut().push("release expected");
    }
    fn prefetch_feedback(&self, flow: Flow) {
        assert_eq!(flow, FLOW);
        self.0.borrow_mut().push("feedback expected");
    }
    fn prefetch_feedback_data(&self, flow: Flow) {
        assert_eq!(flow, FLOW);
        self.0.borrow_mut().push("data expected");
    }
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        assert_eq!(flow, FLOW);
        now + Span::from_ps(1)
    }
    fn host_release(&mut self, now: Time, host: HostId) -> Time {
        assert_eq!(host, HOST);
        now + Span::from_ps(2)
    }
    fn on_flow_start(&mut self, now: Time, flow: Flow) {
        assert_eq!((now, flow), (NOW, FLOW));
        self.0.borrow_mut().push("start");
    }
    fn on_send(&mut self, _: Time, flow: Flow, wire_time: Span, payload: u32) {
        assert_eq!((flow, wire_time, payload), (FLOW, Span::from_ps(6), 10));
        self.0.borrow_mut().push("send");
    }
    fn on_feedback(&mut self, _: Time, flow: Flow, feedback: Feedback) -> bool {
        assert_eq!((flow, feedback), (FLOW, Feedback::Cnp));
        self.0.borrow_mut().push("feedback");
        true
    }
    fn on_credit(&mut self, _: Time, host: HostId, used: u32, capacity: u32) {
        assert_eq!((host, used, capacity), (HOST, 1, 2));
        self.0.borrow_mut().push("credit");
    }
}

impl Settings for Noting {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        assert_eq!(*change, CHANGE);
        self.0.borrow_mut().push("setting");
        Ok(())
    }
}

dispatch_switches! {
    enum Switch {
        None(NoControl),
        Noting(Noting),
    }
}

dispatch_sources! {
    enum Source {
        None(NoControl),
        Noting(Noting),
    }
}

/// A switch of which one buffer is marked.
#[derive(Default)]
struct Buffers(Vec<(PortId, Vl)>);

impl Resident for Buffers {
    fn occupied_blocks(&self, _: PortId, _: Vl) -> u32 {
        0
    }
    fn capacity_blocks(&self, _: PortId, _: Vl) -> u32 {
        0
    }
    fn queued_packets(&self, _: PortId, _: Vl) -> u32 {
        0
    }
    fn outputs_of(&self, _: PortId, _: Vl, _: &mut dyn FnMut(PortId)) {}
    fn sending_outputs(&self, _: PortId, _: &mut dyn FnMut(PortId)) {}
    fn mark_input(&mut self, input: PortId, vl: Vl) {
        self.0.push((input, vl));
    }
    fn mark_output(&mut self, _: PortId, _: Vl) {}
}

/// Plays every call; gives what was answered, and the buffers marked.
fn play_switch(switch: &mut Switch) -> (Vec<bool>, Vec<u64>, usize) {
    let queue = QueueView {
        queued_bytes: 8,
        has_credit: true,
    };
    let packet = PacketView {
        wire_bytes: 9,
        marked: true,
        input: PortId::new(0),
        vl: Vl::ZERO,
    };
    let link = LinkView {
        source: HOST,
        destination: HostId::new(4),
        sl: Sl::ZERO,
        wire_bytes: 9,
        fecn: false,
        becn: false,
        marked_here: false,
        waited: Span::ZERO,
    };
    let mut buffers = Buffers::default();
    switch.prefetch_packet(LANE);
    switch.on_queued(NOW, LANE, queue, packet);
    let marks = switch.on_departure(NOW, LANE, queue, packet);
    switch.on_discarded(NOW, LANE);
    switch.on_link(NOW, LANE, link);
    switch.on_buffer_full(NOW, PortId::new(2), Vl::ZERO, &mut buffers);
    let answers = vec![
        marks,
        switch.needs_buffer_full(),
        switch.needs_link(),
        switch.delays_credits(),
        switch.apply(NOW, &CHANGE).is_ok(),
    ];
    let delay = switch.credit_return_delay(PortId::new(2), 4, Span::from_ps(6));
    let numbers = vec![
        delay.as_ps(),
        switch.marked(LANE),
        switch.congested_time(NOW, LANE).as_ps(),
    ];
    (answers, numbers, buffers.0.len())
}

#[test]
fn the_scheme_in_use_answers_at_the_switches() {
    let mut switch = Switch::Noting(Noting::default());
    assert_eq!(play_switch(&mut switch), (vec![true; 5], vec![12, 5, 7], 1));
    let Switch::Noting(Noting(noted)) = switch else {
        panic!("the variant has changed");
    };
    let calls = [
        "packet expected",
        "queued",
        "departure",
        "discarded",
        "link",
        "full",
        "setting",
    ];
    assert_eq!(noted.into_inner(), calls);
    assert_eq!(
        play_switch(&mut Switch::None(NoControl)),
        (vec![false; 5], vec![0; 3], 0)
    );
}

fn play_source(source: &mut Source) -> (Vec<bool>, Vec<u64>) {
    source.prefetch_release(HOST);
    source.prefetch_feedback(FLOW);
    source.prefetch_feedback_data(FLOW);
    source.on_flow_start(NOW, FLOW);
    source.on_send(NOW, FLOW, Span::from_ps(6), 10);
    let moved = source.on_feedback(NOW, FLOW, Feedback::Cnp);
    source.on_credit(NOW, HOST, 1, 2);
    let answers = vec![
        moved,
        source.needs_credit(),
        source.apply(NOW, &CHANGE).is_ok(),
    ];
    let times = [source.release(NOW, FLOW), source.host_release(NOW, HOST)];
    (answers, times.map(Time::as_ps).to_vec())
}

#[test]
fn the_scheme_in_use_answers_at_the_hosts() {
    let mut source = Source::Noting(Noting::default());
    assert_eq!(play_source(&mut source), (vec![true; 3], vec![8, 9]));
    let Source::Noting(Noting(noted)) = source else {
        panic!("the variant has changed");
    };
    let calls = [
        "release expected",
        "feedback expected",
        "data expected",
        "start",
        "send",
        "feedback",
        "credit",
        "setting",
    ];
    assert_eq!(noted.into_inner(), calls);
    assert_eq!(
        play_source(&mut Source::None(NoControl)),
        (vec![false; 3], vec![7, 7])
    );
}
