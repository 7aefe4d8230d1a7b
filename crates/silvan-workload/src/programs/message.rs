//! Messages in progress.

use silvan_core::Time;

/// Current stage of a message. A message with a handshake goes through several stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The whole message, unasked.
    Eager,
    /// May I send?
    RequestToSend,
    /// You may.
    ClearToSend,
    /// The message that was asked for.
    Data,
    /// Bytes for another rank's memory.
    Put,
    GetRequest,
    /// Requested data.
    GetReply,
    /// The target has read the message.
    Finished,
}

impl Stage {
    /// Returns true if the stage travels from the destination of the bytes to their source.
    fn is_backward(self) -> bool {
        matches!(self, Self::ClearToSend | Self::GetRequest | Self::Finished)
    }

    /// Returns true if the stage carries no bytes of the message.
    pub fn is_control(self) -> bool {
        matches!(
            self,
            Self::RequestToSend | Self::ClearToSend | Self::GetRequest | Self::Finished
        )
    }
}

/// A message, from its start to its end. Ranks are numbered over all jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub stage: Stage,
    /// The rank that has the bytes.
    pub source: u32,
    /// The rank that gets them.
    pub target: u32,
    pub tag: u32,
    pub bytes: u64,
    /// The two ranks' identifiers of their operations.
    pub source_token: u32,
    pub target_token: u32,
    /// Time at which the rank started to send or request the message.
    pub begin: Time,
    /// Parts of the stage that have not arrived.
    pub parts: u32,
    /// When the memories of both hosts have moved the bytes of the stage.
    pub moved: Time,
    /// True for a send whose bytes the target reads.
    pub is_read: bool,
}

impl Message {
    /// Returns the sending and the receiving rank of the stage.
    pub fn way(&self) -> (u32, u32) {
        if self.stage.is_backward() {
            (self.target, self.source)
        } else {
            (self.source, self.target)
        }
    }
}

/// All messages, with room used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages {
    slots: Vec<Message>,
    free: Vec<u32>,
}

impl Messages {
    pub fn add(&mut self, message: Message) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = message;
                slot
            }
            None => {
                self.slots.push(message);
                self.slots.len() as u32 - 1
            }
        }
    }

    pub fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    pub fn at(&self, slot: u32) -> &Message {
        &self.slots[slot as usize]
    }

    #[inline]
    pub fn at_mut(&mut self, slot: u32) -> &mut Message {
        &mut self.slots[slot as usize]
    }
}
