use silvan_core::{Span, Time};

use crate::programs::matching::Posted;
use crate::programs::op::Op;
use crate::programs::rank::{Sequence, State, Work};
use crate::programs::ranks::{Programs, TimerKind};
use crate::programs::record::Mark;

impl Programs {
    fn sequence(&mut self, rank: u32) -> &mut Sequence {
        match &mut self.ranks[rank as usize].work {
            Work::Sequence(sequence) => sequence,
            Work::Schedule(_) | Work::External => unreachable!("only sequential ranks come here"),
        }
    }

    pub(crate) fn go_on(&mut self, rank: u32, now: Time) {
        self.sequence(rank).state = State::Ready;
        if self.detail.is_some() {
            self.end_step(rank, now);
        }
        loop {
            let Some(op) = self.sequence(rank).peek(now) else {
                self.end_step(rank, now);
                self.sequence(rank).state = State::Done;
                self.rank_done(rank, now);
                return;
            };
            if self.detail.is_some() {
                self.follow_step(rank, op, now);
            }
            let takes_time = match op {
                Op::Compute(span) => {
                    let span = self.ranks[rank as usize].computing(span);
                    self.ranks[rank as usize].start_computing(now, span);
                    self.sequence(rank).advance();
                    self.be_busy(rank, now, span, TimerKind::GoOn)
                }
                Op::Pause(span) => {
                    self.sequence(rank).advance();
                    self.be_busy(rank, now, span, TimerKind::GoOn)
                }
                Op::Send { .. } | Op::Put { .. } | Op::Get { .. } => {
                    let overhead = self.messaging.overhead;
                    self.be_busy(rank, now, overhead, TimerKind::Start) || self.start(rank, op, now)
                }
                Op::Receive { from, bytes, tag } => {
                    let sequence = self.sequence(rank);
                    sequence.advance();
                    sequence.outstanding += 1;
                    let token = sequence.taken;
                    let posted = Posted {
                        from,
                        tag,
                        token,
                        bytes,
                    };
                    self.receive(rank, posted, now);
                    false
                }
                Op::Segment { to, bytes, tag } => {
                    self.sequence(rank).advance();
                    self.send_segment(rank, to, bytes, tag, now);
                    false
                }
                Op::Wait => self.wait(rank, 0, now),
                Op::WaitFor(most) => self.wait(rank, most, now),
                Op::Begin => {
                    let sequence = self.sequence(rank);
                    sequence.begun = now;
                    sequence.advance();
                    false
                }
                Op::Mark {
                    label,
                    index,
                    begin,
                } => {
                    self.sequence(rank).advance();
                    self.marks.push(Mark {
                        rank,
                        label,
                        index,
                        begin,
                        end: now,
                    });
                    false
                }
                Op::End { label, index } => {
                    let sequence = self.sequence(rank);
                    let begin = std::mem::replace(&mut sequence.begun, now);
                    sequence.advance();
                    self.marks.push(Mark {
                        rank,
                        label,
                        index,
                        begin,
                        end: now,
                    });
                    false
                }
            };
            if takes_time {
                return;
            }
        }
    }

    fn end_step(&mut self, rank: u32, now: Time) {
        let ended = self.sequence(rank).at.go_on(rank, now);
        if let (Some(step), Some(detail)) = (ended, &mut self.detail) {
            detail.add_step(step);
        }
    }

    fn follow_step(&mut self, rank: u32, op: Op, now: Time) {
        self.end_step(rank, now);
        let step = &mut self.sequence(rank).at;
        match op {
            Op::Send { .. }
            | Op::Receive { .. }
            | Op::Put { .. }
            | Op::Get { .. }
            | Op::Segment { .. } => {
                step.start(now);
            }
            Op::Wait => step.wait(),
            Op::WaitFor(_) | Op::Mark { .. } => {}
            Op::Begin | Op::End { .. } => step.restart(),
            Op::Compute(_) | Op::Pause(_) => {}
        }
    }

    fn be_busy(&mut self, rank: u32, now: Time, span: Span, then: TimerKind) -> bool {
        if span.is_zero() {
            return false;
        }
        self.sequence(rank).state = State::Busy;
        self.set_timer(rank, now + span, then);
        true
    }

    pub(crate) fn start_paid(&mut self, rank: u32, now: Time) {
        let next = self.sequence(rank).peek(now);
        if !next.is_some_and(|op| self.start(rank, op, now)) {
            self.go_on(rank, now);
        }
    }

    fn start(&mut self, rank: u32, op: Op, now: Time) -> bool {
        let sequence = self.sequence(rank);
        sequence.advance();
        let token = sequence.taken;
        match op {
            Op::Send { to, bytes, tag } => {
                if !self.send(rank, token, to, bytes, tag, now) {
                    self.sequence(rank).outstanding += 1;
                }
                let span = self.messaging.bytes_overhead(bytes);
                self.be_busy(rank, now, span, TimerKind::GoOn)
            }
            Op::Put { to: other, bytes } | Op::Get { from: other, bytes } => {
                sequence.outstanding += 1;
                let read = matches!(op, Op::Get { .. });
                self.access(rank, token, other, bytes, read, now);
                false
            }
            _ => unreachable!("only what has an overhead comes here"),
        }
    }

    fn wait(&mut self, rank: u32, most: u32, now: Time) -> bool {
        let sequence = self.sequence(rank);
        sequence.advance();
        let to_pay = std::mem::take(&mut sequence.unpaid);
        sequence.paid_at = now + to_pay;
        if sequence.outstanding <= most {
            return self.be_busy(rank, now, to_pay, TimerKind::GoOn);
        }
        sequence.state = State::Waiting;
        sequence.wait_for = most;
        sequence.waiting_since = now;
        true
    }

    pub(crate) fn sequence_complete(&mut self, rank: u32, received: Option<Span>, now: Time) {
        let sequence = self.sequence(rank);
        sequence.outstanding -= 1;
        if sequence.state != State::Waiting {
            sequence.unpaid += received.unwrap_or(Span::ZERO);
            return;
        }
        if let Some(overhead) = received {
            sequence.paid_at = sequence.paid_at.max(now) + overhead;
        }
        if sequence.outstanding > sequence.wait_for {
            return;
        }
        let (paid_at, since) = (sequence.paid_at, sequence.waiting_since);
        self.ranks[rank as usize].totals.waiting += now.since(since);
        if paid_at > now {
            self.be_busy(rank, now, paid_at.since(now), TimerKind::GoOn);
        } else {
            self.go_on(rank, now);
        }
    }
}
