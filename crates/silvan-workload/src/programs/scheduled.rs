use silvan_core::{Span, Time};

use crate::programs::matching::Posted;
use crate::programs::rank::{ScheduleRun, Task, Work};
use crate::programs::ranks::{Programs, TimerKind};
use crate::programs::record::Mark;
use crate::programs::schedule::Action;

impl Programs {
    fn run_of(&mut self, rank: u32) -> &mut ScheduleRun {
        match &mut self.ranks[rank as usize].work {
            Work::Schedule(run) => run,
            Work::Sequence(_) | Work::External => {
                unreachable!("only ranks with a schedule come here")
            }
        }
    }

    pub(crate) fn start_schedule(&mut self, rank: u32, now: Time) {
        let run = self.run_of(rank);
        if run.is_empty() {
            self.rank_done(rank, now);
            return;
        }
        let schedule = run.schedule.clone();
        self.ready
            .extend(schedule.first_ready().map(|op| (rank, op)));
        self.do_ready(now);
        self.account_waiting(rank, now);
    }

    fn account_waiting(&mut self, rank: u32, now: Time) {
        let run = self.run_of(rank);
        let waits = run.left > 0 && run.cpus.iter().all(|cpu| cpu.task.is_none());
        match run.waiting_since {
            None if waits => run.waiting_since = Some(now),
            Some(since) if !waits => {
                run.waiting_since = None;
                self.ranks[rank as usize].totals.waiting += now.since(since);
            }
            _ => {}
        }
    }

    /// Iterative, because a chain may be as long as a trace.
    fn do_ready(&mut self, now: Time) {
        while let Some((rank, op)) = self.ready.pop_front() {
            self.ready(rank, op, now);
            self.account_waiting(rank, now);
        }
    }

    fn ready(&mut self, rank: u32, op: u32, now: Time) {
        let run = self.run_of(rank);
        let entry = run.schedule.ops()[op as usize];
        let Action::Receive { from, bytes, tag } = entry.action else {
            self.enqueue(rank, entry.cpu, Task::Do(op), now);
            return;
        };
        self.op_started(rank, op, now);
        let posted = Posted {
            from,
            tag,
            token: op,
            bytes,
        };
        self.receive(rank, posted, now);
    }

    fn op_started(&mut self, rank: u32, op: u32, now: Time) {
        let run = self.run_of(rank);
        run.times[op as usize].0 = Some(now);
        let schedule = run.schedule.clone();
        for later in schedule.after_start(op) {
            self.one_less(rank, later);
        }
    }

    fn op_ended(&mut self, rank: u32, op: u32, now: Time) {
        let run = self.run_of(rank);
        run.times[op as usize].1 = Some(now);
        run.left -= 1;
        if let Some(rounds) = run.rounds.as_mut().filter(|_| op == 0) {
            rounds.begun = now;
        }
        let is_last = run.left == 0;
        let schedule = run.schedule.clone();
        let first = self.first_of(rank);
        for (other, later) in schedule.remote_after_end(op) {
            self.one_less(first + other, later);
        }
        if is_last {
            let round = self.run_of(rank).end_round();
            if let Some((begin, index, goes_on)) = round {
                self.marks.push(Mark {
                    rank,
                    label: 0,
                    index,
                    begin,
                    end: now,
                });
                if goes_on {
                    let first = schedule.first_ready().map(|op| (rank, op));
                    self.ready.extend(first);
                    return;
                }
            }
            self.rank_done(rank, now);
            return;
        }
        for later in schedule.after_end(op) {
            self.one_less(rank, later);
        }
    }

    fn one_less(&mut self, rank: u32, op: u32) {
        let waits = &mut self.run_of(rank).waits[op as usize];
        *waits -= 1;
        if *waits == 0 {
            self.ready.push_back((rank, op));
        }
    }

    fn enqueue(&mut self, rank: u32, cpu: u32, task: Task, now: Time) {
        let processor = &mut self.run_of(rank).cpus[cpu as usize];
        processor.queue.push_back(task);
        if processor.task.is_none() {
            self.next_task(rank, cpu, now);
        }
    }

    /// Every task ends by a timer, because recursion would be as deep as a schedule is long.
    fn next_task(&mut self, rank: u32, cpu: u32, now: Time) {
        let overhead = self.messaging.overhead;
        let run = self.run_of(rank);
        let processor = &mut run.cpus[cpu as usize];
        processor.task = processor.queue.pop_front();
        let Some(task) = processor.task else {
            return;
        };
        let span: Span = match task {
            Task::Receive(_, span) => span,
            Task::Leave(..) => unreachable!("a send goes on to this task by itself"),
            Task::Do(op) => match run.schedule.ops()[op as usize].action {
                Action::Calc(span) => self.ranks[rank as usize].computing(span),
                Action::Delay(span) => span,
                Action::Send { .. } | Action::Receive { .. } | Action::Put { .. } => overhead,
            },
        };
        self.set_timer(rank, now + span, TimerKind::Task(cpu));
        if let Task::Do(op) = task {
            if let Action::Calc(_) = self.run_of(rank).schedule.ops()[op as usize].action {
                self.ranks[rank as usize].start_computing(now, span);
            }
            self.op_started(rank, op, now);
        }
    }

    pub(crate) fn task_done(&mut self, rank: u32, cpu: u32, now: Time) {
        let run = self.run_of(rank);
        let done = run.cpus[cpu as usize].task.take();
        match done {
            Some(Task::Receive(op, _) | Task::Leave(op, true)) => self.op_ended(rank, op, now),
            Some(Task::Leave(_, false)) => {}
            Some(Task::Do(op)) => match run.schedule.ops()[op as usize].action {
                Action::Calc(_) | Action::Delay(_) => self.op_ended(rank, op, now),
                Action::Send { to, bytes, tag } => {
                    let ends = self.send(rank, op, to, bytes, tag, now);
                    let span = self.messaging.bytes_overhead(bytes);
                    if !span.is_zero() {
                        let processor = &mut self.run_of(rank).cpus[cpu as usize];
                        processor.task = Some(Task::Leave(op, ends));
                        self.set_timer(rank, now + span, TimerKind::Task(cpu));
                    } else if ends {
                        self.op_ended(rank, op, now);
                    }
                }
                Action::Put { to, bytes } => self.access(rank, op, to, bytes, false, now),
                Action::Receive { .. } => unreachable!("a receive is no task of a processor"),
            },
            None => unreachable!("a processor ends the task that it has"),
        }
        self.do_ready(now);
        if self.run_of(rank).cpus[cpu as usize].task.is_none() {
            self.next_task(rank, cpu, now);
        }
        self.account_waiting(rank, now);
    }

    pub(crate) fn schedule_complete(
        &mut self,
        rank: u32,
        op: u32,
        received: Option<Span>,
        now: Time,
    ) {
        if let Some(overhead) = received {
            let cpu = self.run_of(rank).schedule.ops()[op as usize].cpu;
            self.enqueue(rank, cpu, Task::Receive(op, overhead), now);
        } else {
            self.op_ended(rank, op, now);
            self.do_ready(now);
        }
        self.account_waiting(rank, now);
    }
}
