use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::Span;
use silvan_model::BuildError;

use crate::CompiledFabric;
use crate::engine::Engine;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl CompiledFabric {
    /// True if grants are known before their window, or hosts send none.
    pub fn knows_grants<C: SourceControl>(&self, source: &C) -> bool {
        let grants =
            source.needs_receive() || source.needs_started() || source.needs_answer_grant();
        !grants || self.0.grants_later() && !self.brings_into_order()
    }

    fn brings_into_order(&self) -> bool {
        self.0.reordering.is_some() && self.0.config.host.in_order
    }

    /// True if negative acknowledgements arrive after the discard's instant, or no switch discards.
    pub fn knows_discards<S: SwitchControl>(&self, switch: &S) -> bool {
        let is_later = self.0.config.feedback.delay_past_fabric() != Some(Span::ZERO);
        !switch.needs_select_discard() || is_later && !self.brings_into_order()
    }

    /// Returns true if messages between switches are known before the window of their arrival.
    pub fn knows_messages<S: SwitchControl>(&self, switch: &S) -> bool {
        switch.message_delay().is_none_or(|delay| {
            let window = self.0.window();
            window.is_some_and(|window| delay.as_ps() >= window)
        })
    }

    /// True if reads of input buffers are exact within a window; under PFC the lane upstream may lag.
    pub fn knows_buffers<S: SwitchControl>(&self, switch: &S) -> bool {
        self.0.config.pfc.is_none() || !switch.needs_buffer_full()
    }

    /// True if windows save time on one thread: not if switches count buffers or discard packets.
    pub fn gains_on_one_thread<S: SwitchControl>(&self, switch: &S) -> bool {
        !self.counts_buffers() && !switch.needs_select_discard()
    }

    /// Checks links and hosts for a scheme. Errors: [`BuildError::PfcScheme`] if it reads or delays credits under PFC,
    /// [`BuildError::RetryScheme`] if it chooses paths or lanes of packets that hosts send again.
    pub fn check_scheme<S: SwitchControl, C: SourceControl>(
        &self,
        switch: &S,
        source: &C,
    ) -> Result<(), BuildError> {
        let chooses = switch.needs_select_next_vl()
            || switch.needs_select_discard()
            || switch.needs_select_output()
            || source.needs_select_vl()
            || source.needs_select_path();
        if chooses && self.0.transport.is_some() {
            return Err(BuildError::RetryScheme);
        }
        match self.0.config.pfc.is_some() && (switch.delays_credits() || source.needs_credit()) {
            true => Err(BuildError::PfcScheme),
            false => Ok(()),
        }
    }
}

/// Constant answers of the `needs_*` queries: a scheme chosen at run time would dispatch every call.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is for one hook; they are independent"
)]
pub struct Needs {
    pub queues: bool,
    pub buffer_full: bool,
    pub link: bool,
    pub stamps: bool,
    pub select_output: bool,
    pub credit: bool,
    pub ack: bool,
    pub receive: bool,
    pub select_path: bool,
    pub select_vl: bool,
    pub select_next_vl: bool,
    pub select_discard: bool,
    pub holds_head: bool,
    pub host_vl: bool,
    pub started: bool,
    pub answer_grant: bool,
    pub exchange: bool,
    pub separates_flows: bool,
    pub keeps_lanes: bool,
}

impl Needs {
    pub fn of<S: SwitchControl, C: SourceControl>(switch: &S, source: &C, vls: usize) -> Self {
        let select_next_vl = vls > 1 && switch.needs_select_next_vl();
        let select_discard = switch.needs_select_discard();
        Self {
            queues: switch.watches_queues(),
            buffer_full: switch.needs_buffer_full(),
            link: switch.needs_link(),
            stamps: switch.needs_stamps(),
            select_output: switch.needs_select_output(),
            credit: source.needs_credit(),
            ack: source.needs_ack(),
            receive: source.needs_receive(),
            select_path: source.needs_select_path(),
            // A packet to send again is kept like a packet whose lane has no credits.
            select_vl: source.needs_select_vl() || select_next_vl || select_discard,
            select_next_vl,
            select_discard,
            holds_head: vls > 1 && switch.needs_holds_head(),
            host_vl: select_next_vl && switch.needs_host_vl(),
            started: source.needs_started(),
            answer_grant: source.needs_answer_grant(),
            exchange: switch.needs_exchange(),
            separates_flows: source.separates_flows(),
            keeps_lanes: source.keeps_lanes(),
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(always)]
    pub(crate) fn watches_queues(&self) -> bool {
        S::ACTIVE && (!S::IS_DISPATCHED || self.needs.queues)
    }

    #[inline(always)]
    pub(crate) fn needs_link(&self) -> bool {
        S::ACTIVE && self.needs.link && self.switch.needs_link()
    }

    #[inline(always)]
    pub(crate) fn needs_stamps(&self) -> bool {
        S::ACTIVE && self.needs.stamps && self.switch.needs_stamps()
    }

    #[inline(always)]
    pub(crate) fn needs_buffer_full(&self) -> bool {
        S::ACTIVE && self.needs.buffer_full && self.switch.needs_buffer_full()
    }

    #[inline(always)]
    pub(crate) fn needs_select_discard(&self) -> bool {
        S::ACTIVE && self.needs.select_discard && self.switch.needs_select_discard()
    }

    #[inline(always)]
    pub(crate) fn needs_started(&self) -> bool {
        C::ACTIVE && self.needs.started && self.source.needs_started()
    }

    #[inline(always)]
    pub(crate) fn needs_answer_grant(&self) -> bool {
        C::ACTIVE && self.needs.answer_grant && self.source.needs_answer_grant()
    }

    #[inline(always)]
    pub(crate) fn needs_holds_head(&self) -> bool {
        S::ACTIVE && self.needs.holds_head && self.switch.needs_holds_head()
    }

    #[inline(always)]
    pub(crate) fn needs_host_vl(&self) -> bool {
        S::ACTIVE && self.needs.host_vl && self.switch.needs_host_vl()
    }

    #[inline(always)]
    pub(crate) fn needs_select_vl(&self) -> bool {
        self.needs.select_vl && may_select_vl(&self.switch, &self.source)
    }
}

#[inline(always)]
pub fn may_select_vl<S: SwitchControl, C: SourceControl>(switch: &S, source: &C) -> bool {
    let by_switch = S::ACTIVE && (switch.needs_select_next_vl() || switch.needs_select_discard());
    by_switch || C::ACTIVE && source.needs_select_vl()
}
