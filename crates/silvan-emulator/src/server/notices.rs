use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MOST: usize = 256;

/// Notices of a server, shared with who reads them.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<String>,
    refused: BTreeSet<(Option<u32>, &'static str)>,
    has_disconnected: bool,
    was_crowded: bool,
}

impl Notices {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The notices since the last call, in order.
    pub fn take(&self) -> Vec<String> {
        self.lock().waiting.drain(..).collect()
    }

    pub(crate) fn refused(&self, user: Option<u32>, what: &'static str) {
        let mut inner = self.lock();
        if inner.refused.len() >= MOST || !inner.refused.insert((user, what)) {
            return;
        }
        let user = user.map_or_else(|| "of unknown id".to_owned(), |id| id.to_string());
        inner.push(format!("user {user} was refused: may not {what}"));
    }

    /// The client does not read; only the first is reported.
    pub(crate) fn disconnected(&self, process: u32) {
        let mut inner = self.lock();
        if !std::mem::replace(&mut inner.has_disconnected, true) {
            inner.push(format!(
                "the client of process {process} was disconnected: it does not read its answers; \
                 further ones are not reported"
            ));
        }
    }

    pub(crate) fn changed(&self, change: String) {
        self.lock().push(change);
    }

    pub(crate) fn crowded(&self, most: usize) {
        let mut inner = self.lock();
        if !std::mem::replace(&mut inner.was_crowded, true) {
            inner.push(format!(
                "{most} control connections are open: the one that was silent longest is closed; \
                 further ones are not reported"
            ));
        }
    }
}

impl Inner {
    fn push(&mut self, notice: String) {
        if self.waiting.len() == MOST {
            self.waiting.pop_front();
        }
        self.waiting.push_back(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the number of kinds; a client repeats each event 1,000 times.
    #[test]
    fn each_kind_of_event_is_one_notice() {
        let notices = Notices::default();
        for process in 0..1_000 {
            notices.disconnected(process);
            notices.crowded(64);
            notices.refused(Some(1000), "attach");
            notices.refused(Some(1000), "control the fabric");
        }
        let taken = notices.take();
        assert_eq!(taken.len(), 4, "{taken:?}");
        assert!(taken[0].contains("process 0 was disconnected"));
        notices.disconnected(7);
        assert!(notices.take().is_empty());
    }
}
