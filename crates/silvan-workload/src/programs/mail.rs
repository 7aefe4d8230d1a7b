//! Mail between ranks and the queues of their hosts, and ownership of the ranks.
//!
//! A run has one set of ranks. The queues belong to hosts, so threads with parts of the fabric need not share queues.
//! Ranks put messages to send into the mail of the sending host; the host puts sent messages into it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use silvan_core::{HostId, Time};

use crate::programs::flows::Sent;
use crate::programs::ranks::Programs;
use crate::programs::senders::Launch;

/// Mail between a host and the ranks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    /// Messages to send, in the order of time.
    launched: VecDeque<Launch>,
    /// Completely sent messages that the ranks have not processed.
    sent: Vec<Sent>,
}

impl Mail {
    /// Notes a message that has been sent completely.
    pub fn note_sent(&mut self, sent: Sent) {
        self.sent.push(sent);
    }

    /// Takes the next message that is to be sent by now.
    pub fn take_launched(&mut self, now: Time) -> Option<Launch> {
        let is_due = self.launched.front().is_some_and(|launch| launch.at <= now);
        is_due.then(|| self.launched.pop_front()).flatten()
    }
}

/// Ranks, and the mail of all hosts.
#[derive(Debug)]
pub(crate) enum Ranks {
    /// Ranks of a fabric in one part.
    Own {
        programs: Box<Programs>,
        mail: Vec<Mail>,
    },
    /// Ranks of a fabric whose parts share them.
    Shared {
        /// The programs while they are not lent, in one of the parts.
        kept: Option<Box<Programs>>,
        shared: Arc<Shared>,
    },
}

/// Data shared by the parts.
#[derive(Debug)]
pub(crate) struct Shared {
    lent: Mutex<Option<Box<Programs>>>,
    mail: Vec<Mutex<Mail>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ranks {
    /// The ranks of a fabric in one part, with this many hosts.
    pub fn new(programs: Programs, hosts: usize) -> Self {
        Self::Own {
            programs: Box::new(programs),
            mail: vec![Mail::default(); hosts],
        }
    }

    /// Converts the ranks for parts that share them: each part gets a copy of the result.
    pub fn shared(self) -> Self {
        match self {
            Self::Own { programs, mail } => Self::Shared {
                kept: None,
                shared: Arc::new(Shared {
                    lent: Mutex::new(Some(programs)),
                    mail: mail.into_iter().map(Mutex::new).collect(),
                }),
            },
            shared @ Self::Shared { .. } => shared,
        }
    }

    /// The share of a further part; `None` if this is not shared.
    pub fn share(&self) -> Option<Self> {
        match self {
            Self::Own { .. } => None,
            Self::Shared { shared, .. } => Some(Self::Shared {
                kept: None,
                shared: Arc::clone(shared),
            }),
        }
    }

    /// Lends the programs to all parts.
    pub fn lend(&mut self) {
        let Self::Shared { kept, shared } = self else {
            return;
        };
        if let Some(programs) = kept.take() {
            *lock(&shared.lent) = Some(programs);
        }
    }

    /// Takes them back, so that they can be read.
    pub fn take_back(&mut self) {
        if let Self::Shared { kept, shared } = self {
            *kept = lock(&shared.lent).take();
        }
    }

    /// The programs, unless they are lent.
    pub fn programs(&self) -> Option<&Programs> {
        match self {
            Self::Own { programs, .. } => Some(programs),
            Self::Shared { kept, .. } => kept.as_deref(),
        }
    }

    #[inline]
    pub fn with_mail<T>(&mut self, host: HostId, with: impl FnOnce(&mut Mail) -> T) -> T {
        match self {
            Self::Own { mail, .. } => with(&mut mail[host.index()]),
            Self::Shared { shared, .. } => with(&mut lock(&shared.mail[host.index()])),
        }
    }

    /// The instant of the next timer.
    pub fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Own { programs, .. } => programs.next_timer(),
            Self::Shared { shared, .. } => lock(&shared.lent).as_ref()?.next_timer(),
        }
    }

    /// Lets the ranks continue and collects their new messages.
    ///
    /// First the ranks process the messages that a host has sent by an instant (`sent`). New messages go into the mail, and
    /// their hosts are added to `wake`.
    pub fn change(
        &mut self,
        sent: Option<(HostId, Time)>,
        wake: &mut Vec<HostId>,
        change: impl FnOnce(&mut Programs),
    ) {
        match self {
            Self::Own { programs, mail } => {
                if let Some((host, now)) = sent {
                    programs.note_sent(&mut mail[host.index()].sent, now);
                }
                change(programs);
                for (host, launch) in programs.launched.drain(..) {
                    mail[host.index()].launched.push_back(launch);
                    wake.push(host);
                }
            }
            Self::Shared { shared, .. } => {
                let mut programs = lock(&shared.lent);
                let programs = programs.as_mut().expect("programs that are lent");
                if let Some((host, now)) = sent {
                    programs.note_sent(&mut lock(&shared.mail[host.index()]).sent, now);
                }
                change(programs);
                for (host, launch) in programs.launched.drain(..) {
                    lock(&shared.mail[host.index()]).launched.push_back(launch);
                    wake.push(host);
                }
            }
        }
    }
}
