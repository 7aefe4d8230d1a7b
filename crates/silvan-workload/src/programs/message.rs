use silvan_core::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Eager,
    RequestToSend,
    ClearToSend,
    Data,
    /// Bytes for another rank's memory.
    Put,
    GetRequest,
    GetReply,
    /// The target has read the message.
    Finished,
}

impl Stage {
    fn is_backward(self) -> bool {
        matches!(self, Self::ClearToSend | Self::GetRequest | Self::Finished)
    }

    pub fn is_control(self) -> bool {
        matches!(
            self,
            Self::RequestToSend | Self::ClearToSend | Self::GetRequest | Self::Finished
        )
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub stage: Stage,
    pub source: u32,
    pub target: u32,
    pub tag: u32,
    pub bytes: u64,
    /// Identifiers of both ranks' operations.
    pub source_token: u32,
    pub target_token: u32,
    pub begin: Time,
    /// Missing parts of the stage.
    pub parts: u32,
    /// End of the memory transfers of both hosts.
    pub moved: Time,
    /// The target reads the bytes.
    pub is_read: bool,
    /// Adapters and switches send and receive it, without a processor.
    pub is_segment: bool,
}

impl Message {
    pub fn way(&self) -> (u32, u32) {
        if self.stage.is_backward() {
            (self.target, self.source)
        } else {
            (self.source, self.target)
        }
    }
}

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
