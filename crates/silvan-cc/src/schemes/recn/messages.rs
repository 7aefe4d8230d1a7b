use silvan_core::{HostId, PortId, Sl, Time};

use super::lines::Sender;
use crate::hooks::{Flow, PortMessage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// To the output upstream: set a queue aside for packets through a root.
    SetAside { sender: Sender, root: PortId },
    /// To the sender: the queue is freed, or no queue was free.
    Freed(Sender),
    /// To the output upstream: free the queue of this sender if no packet uses it.
    FreeUnused(Sender),
    /// To the output upstream: no packet of a lane waits for this output; the number of packets that have left.
    Emptied {
        output: PortId,
        lane: u8,
        packets: u32,
    },
}

const SET_ASIDE: u8 = 0;
const FREED: u8 = 1;
const FREE_UNUSED: u8 = 2;
const EMPTIED: u8 = 3;

impl Content {
    pub fn message(self, arrives: Time, to: PortId) -> PortMessage {
        let of = |kind: u8, sender: Sender, number: u32| {
            let place = u32::from_le_bytes([kind, sender.lane, sender.input, 0]);
            let content = [place, sender.output.index() as u32, number];
            (sender.destination, content)
        };
        let (destination, content) = match self {
            Self::SetAside { sender, root } => of(SET_ASIDE, sender, root.index() as u32),
            Self::Freed(sender) => of(FREED, sender, 0),
            Self::FreeUnused(sender) => of(FREE_UNUSED, sender, 0),
            Self::Emptied {
                output,
                lane,
                packets,
            } => {
                let place = u32::from_le_bytes([EMPTIED, lane, 0, 0]);
                (HostId::new(0), [place, output.index() as u32, packets])
            }
        };
        PortMessage {
            arrives,
            to,
            flow: Flow {
                source: HostId::new(0),
                destination,
                sl: Sl::ZERO,
                queue: 0,
            },
            content,
        }
    }

    pub fn of(message: &PortMessage) -> Option<Self> {
        let [place, output, number] = message.content;
        let [kind, lane, input, _] = place.to_le_bytes();
        let sender = Sender {
            output: PortId::new(output as usize),
            lane,
            input,
            destination: message.flow.destination,
        };
        Some(match kind {
            SET_ASIDE => Self::SetAside {
                sender,
                root: PortId::new(number as usize),
            },
            FREED => Self::Freed(sender),
            FREE_UNUSED => Self::FreeUnused(sender),
            EMPTIED => Self::Emptied {
                output: sender.output,
                lane,
                packets: number,
            },
            _ => return None,
        })
    }
}
