//! Calls: a waiter leaves exactly once, at its deadline or before, whatever makes it leave.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_fuzz::Bytes;
use bowline_proto::session::{Calls, Recipient, Timeout};
use bowline_proto::wire::Id;

use crate::at;

/// A call in the model. Times are seconds; `None` is never.
struct Open {
    opened: u64,
    idle: Option<u64>,
    total: Option<u64>,
    deadline: Option<u64>,
}

struct Model {
    calls: Calls<i64>,
    /// By id, which is also the waiter.
    open: BTreeMap<i64, Open>,
    next: i64,
    now: u64,
}

pub(crate) fn drive(bytes: &mut Bytes<'_>) {
    let mut model = Model { calls: Calls::new(), open: BTreeMap::new(), next: 1, now: 100 };
    while !bytes.is_empty() {
        match bytes.below(8) {
            0 | 1 => model.open(bytes),
            2 => model.close(bytes),
            3 => model.touch(bytes),
            4 => model.abandon(bytes),
            5 => model.expire(),
            6 => model.now += u64::from(bytes.byte()),
            _ if bytes.byte() > 250 => model.drain(),
            _ => {}
        }
        model.check();
    }
    model.drain();
    model.check();
}

impl Model {
    fn open(&mut self, bytes: &mut Bytes<'_>) {
        let mut seconds = || match bytes.byte() {
            0 => (None, None),
            // Beyond any clock, so never.
            255 => (Some(Duration::MAX), None),
            some => (Some(Duration::from_secs(some.into())), Some(u64::from(some))),
        };
        let ((idle, model_idle), (total, model_total)) = (seconds(), seconds());
        let timeout = Timeout { idle, total };
        let id = self.calls.open(at(self.now), "ping", timeout, self.next);
        assert_eq!(id, Id::from(self.next));
        let mut open =
            Open { opened: self.now, idle: model_idle, total: model_total, deadline: None };
        open.deadline = open.deadline_if_heard(self.now);
        self.open.insert(self.next, open);
        self.next += 1;
    }

    fn close(&mut self, bytes: &mut Bytes<'_>) {
        let (id, number) = self.id(bytes);
        let answer = self.calls.close(&id);
        let expected = match number {
            Some(number) if self.open.remove(&number).is_some() => Recipient::Awaited(number),
            Some(number) if (1..self.next).contains(&number) => Recipient::Late,
            _ => Recipient::Unknown,
        };
        assert_eq!(answer, expected, "{id}");
    }

    fn touch(&mut self, bytes: &mut Bytes<'_>) {
        let (id, number) = self.id(bytes);
        let heard = self.now - u64::from(bytes.byte() % 4);
        let open = number.and_then(|number| self.open.get_mut(&number));
        assert_eq!(self.calls.touch(at(heard), &id), open.is_some());
        if let Some(open) = open {
            open.deadline = open.deadline.max(open.deadline_if_heard(heard));
        }
    }

    fn abandon(&mut self, bytes: &mut Bytes<'_>) {
        let (id, number) = self.id(bytes);
        let open = number.filter(|number| self.open.remove(number).is_some());
        assert_eq!(self.calls.abandon(&id), open);
    }

    fn expire(&mut self) {
        let now = self.now;
        let is_due = |open: &Open| open.deadline.is_some_and(|deadline| deadline <= now);
        let due = self.open.iter().filter(|(_, open)| is_due(open));
        let due: Vec<_> = due.map(|(number, open)| (*number, now - open.opened)).collect();
        let expired = self.calls.expire(at(now));
        let expired = expired.into_iter().map(|expired| {
            assert_eq!(expired.id, Id::from(expired.waiter));
            (expired.waiter, expired.age.as_secs())
        });
        assert!(expired.eq(due), "not the expired ones");
        self.open.retain(|_, open| !is_due(open));
        if let Some(next) = self.calls.next_deadline() {
            assert!(next > at(now), "the caller would spin");
        }
    }

    fn drain(&mut self) {
        let drained = self.calls.drain().into_iter().map(|(id, waiter)| {
            assert_eq!(id, Id::from(waiter));
            waiter
        });
        assert!(drained.eq(std::mem::take(&mut self.open).into_keys()));
        assert_eq!(self.calls.next_deadline(), None);
    }

    fn check(&self) {
        assert_eq!(self.calls.len(), self.open.len());
        assert_eq!(self.calls.is_empty(), self.open.is_empty());
        let pending = self.calls.pending(at(self.now));
        let pending = pending.iter().map(|call| (call.id.as_i64(), call.age.as_secs()));
        let open = self.open.iter().map(|(id, open)| (Some(*id), self.now - open.opened));
        assert!(pending.eq(open));
        let first = self.open.values().filter_map(|open| open.deadline).min();
        if let Some(first) = first {
            let next = self.calls.next_deadline();
            assert!(next.is_some_and(|next| next <= at(first)), "too late");
        }
    }

    /// An id, issued or not, and its number.
    fn id(&self, bytes: &mut Bytes<'_>) -> (Id, Option<i64>) {
        let number = i64::from(bytes.byte());
        match number {
            253 => (Id::from("1"), None),
            254 => (Id::from(u64::MAX), None),
            255 => (Id::from(-1_i64), Some(-1)),
            number => (Id::from(number), Some(number)),
        }
    }
}

impl Open {
    fn deadline_if_heard(&self, heard: u64) -> Option<u64> {
        let idle = self.idle.map(|idle| heard + idle);
        let total = self.total.map(|total| self.opened + total);
        idle.into_iter().chain(total).min()
    }
}
