use silvan_cc::schemes::ib_cc::{
    CctEntry, CongestionEntry, EffectivePortSetting, MarkingSetting, PortMask, StarvationSetting,
    SwitchCongestionSetting as Setting, ThresholdWeight,
};
use silvan_core::PortNumber;
use silvan_mad::Bits;
use silvan_mad::congestion::{
    CaCongestionEntry, CongestionControlTableEntry, PortBits, SwitchCongestionSetting,
    SwitchPortCongestionElement, switch_control_map,
};

pub(super) trait Wire<F> {
    fn to_wire(&self) -> F;
    fn from_wire(field: F) -> Self;
}

impl<T: Copy> Wire<T> for T {
    fn to_wire(&self) -> T {
        *self
    }

    fn from_wire(field: T) -> Self {
        field
    }
}

impl Wire<Bits<4>> for ThresholdWeight {
    fn to_wire(&self) -> Bits<4> {
        Bits::saturating(u64::from(self.as_u8()))
    }

    fn from_wire(field: Bits<4>) -> Self {
        Self::try_new(field.get() as u8).unwrap_or(Self::MAX)
    }
}

impl Wire<CongestionControlTableEntry> for CctEntry {
    fn to_wire(&self) -> CongestionControlTableEntry {
        CongestionControlTableEntry {
            shift: Bits::saturating(u64::from(self.shift())),
            multiplier: Bits::saturating(u64::from(self.multiplier())),
        }
    }

    fn from_wire(field: CongestionControlTableEntry) -> Self {
        Self::from_raw((field.shift.get() << 14 | field.multiplier.get()) as u16)
    }
}

impl Wire<u16> for CctEntry {
    fn to_wire(&self) -> u16 {
        self.as_raw()
    }

    fn from_wire(field: u16) -> Self {
        Self::from_raw(field)
    }
}

impl Wire<PortBits> for PortMask {
    fn to_wire(&self) -> PortBits {
        all_ports().filter(|&port| self.contains(port)).collect()
    }

    fn from_wire(field: PortBits) -> Self {
        all_ports().filter(|&port| field.contains(port)).collect()
    }
}

fn all_ports() -> impl Iterator<Item = PortNumber> {
    (0..=u8::MAX).map(PortNumber::new)
}

macro_rules! conversions {
    (
        marking: $marking:ident {
            $($field:ident = $whole:ident by $part:ident, $element:ident;)*
        }
        starvation: $starvation:ident {
            $($credit_field:ident = $credit_whole:ident by $credit_part:ident, $credit_element:ident;)*
        }
        masks { $($mask:ident = $mask_field:ident by $mask_part:ident;)* }
        adapter { $($entry:ident = $entry_field:ident;)* }
    ) => {
        pub(super) fn switch_to_wire(setting: &Setting) -> SwitchCongestionSetting {
            let mut whole = SwitchCongestionSetting::default();
            $(whole.$whole = setting.marking.$field.to_wire();)*
            $(whole.$credit_whole = setting.starvation.$credit_field.to_wire();)*
            $(whole.$mask_field = setting.$mask.to_wire();)*
            whole
        }

        pub(super) fn switch_from_wire(setting: &mut Setting, whole: &SwitchCongestionSetting) {
            $(setting.marking.$field = Wire::from_wire(whole.$whole);)*
            $(setting.starvation.$credit_field = Wire::from_wire(whole.$credit_whole);)*
            $(setting.$mask = Wire::from_wire(whole.$mask_field);)*
        }

        pub(super) fn take_selected(
            whole: &mut SwitchCongestionSetting,
            wanted: &SwitchCongestionSetting,
        ) {
            $(
                if wanted.control_map & switch_control_map::$part != 0 {
                    whole.$whole = wanted.$whole;
                }
            )*
            $(
                if wanted.control_map & switch_control_map::$credit_part != 0 {
                    whole.$credit_whole = wanted.$credit_whole;
                }
            )*
            $(
                if wanted.control_map & switch_control_map::$mask_part != 0 {
                    whole.$mask_field = wanted.$mask_field;
                }
            )*
        }

        pub(super) fn marking_element(own: &$marking) -> SwitchPortCongestionElement {
            let mut element = SwitchPortCongestionElement {
                valid: true,
                ..SwitchPortCongestionElement::default()
            };
            $(element.$element = own.$field.to_wire();)*
            element
        }

        /// Returns the settings of an element for congestion control, and for credit starvation.
        pub(super) fn element_settings(
            port: &EffectivePortSetting,
            element: &SwitchPortCongestionElement,
        ) -> ($marking, $starvation) {
            let (mut marking, mut starvation) = (port.marking, port.starvation);
            $(marking.$field = Wire::from_wire(element.$element);)*
            $(starvation.$credit_field = Wire::from_wire(element.$credit_element);)*
            (marking, starvation)
        }

        pub(super) fn entry_to_wire(entry: &CongestionEntry) -> CaCongestionEntry {
            CaCongestionEntry {
                $($entry_field: entry.$entry.to_wire(),)*
            }
        }

        pub(super) fn entry_from_wire(entry: &mut CongestionEntry, field: &CaCongestionEntry) {
            $(entry.$entry = Wire::from_wire(field.$entry_field);)*
        }
    };
}

silvan_cc::setting_datagrams! { conversions }
