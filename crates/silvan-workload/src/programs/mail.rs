//! Mail between ranks and queues: threads share the ranks of a run, and queues belong to hosts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use silvan_core::{HostId, Time};

use crate::programs::external::SendQueue;
use crate::programs::flows::Sent;
use crate::programs::ranks::Programs;
use crate::programs::senders::Launch;

/// News for the queues of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Letter {
    Launch(Launch),
    Withdraw {
        at: Time,
        /// The sending rank.
        from: u32,
        queue: SendQueue,
    },
}

impl Letter {
    fn at(&self) -> Time {
        match self {
            Self::Launch(Launch { at, .. }) | Self::Withdraw { at, .. } => *at,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    launched: VecDeque<Letter>,
    /// Not processed by the ranks yet.
    sent: Vec<Sent>,
}

impl Mail {
    pub fn note_sent(&mut self, sent: Sent) {
        self.sent.push(sent);
    }

    pub fn take_launched(&mut self, now: Time) -> Option<Letter> {
        let is_due = self
            .launched
            .front()
            .is_some_and(|letter| letter.at() <= now);
        is_due.then(|| self.launched.pop_front()).flatten()
    }
}

#[derive(Debug)]
pub(crate) enum Ranks {
    Own {
        programs: Box<Programs>,
        mail: Vec<Mail>,
    },
    Shared {
        /// The programs, unless lent, in one of the parts.
        kept: Option<Box<Programs>>,
        shared: Arc<Shared>,
    },
}

#[derive(Debug)]
pub(crate) struct Shared {
    lent: Mutex<Option<Box<Programs>>>,
    mail: Vec<Mutex<Mail>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ranks {
    pub fn new(programs: Programs, hosts: usize) -> Self {
        Self::Own {
            programs: Box::new(programs),
            mail: vec![Mail::default(); hosts],
        }
    }

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

    pub fn share(&self) -> Option<Self> {
        match self {
            Self::Own { .. } => None,
            Self::Shared { shared, .. } => Some(Self::Shared {
                kept: None,
                shared: Arc::clone(shared),
            }),
        }
    }

    pub fn lend(&mut self) {
        let Self::Shared { kept, shared } = self else {
            return;
        };
        if let Some(programs) = kept.take() {
            *lock(&shared.lent) = Some(programs);
        }
    }

    pub fn take_back(&mut self) {
        if let Self::Shared { kept, shared } = self {
            *kept = lock(&shared.lent).take();
        }
    }

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

    pub fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Own { programs, .. } => programs.next_timer(),
            Self::Shared { shared, .. } => lock(&shared.lent).as_ref()?.next_timer(),
        }
    }

    /// Lets the ranks continue after `sent` messages; new messages go into the mail, their hosts to `wake`.
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
                for (host, letter) in programs.launched.drain(..) {
                    mail[host.index()].launched.push_back(letter);
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
                for (host, letter) in programs.launched.drain(..) {
                    lock(&shared.mail[host.index()]).launched.push_back(letter);
                    wake.push(host);
                }
            }
        }
    }
}
