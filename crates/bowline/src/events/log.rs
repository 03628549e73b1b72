//! The latest events, which everyone reads from a position of their own: no subscriber has a queue,
//! and a slow one holds nobody up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::EventLimits;
use crate::tasks::iso;
use crate::{clock, random};

/// The latest events.
pub(super) struct Log {
    most: usize,
    most_bytes: usize,
    /// Part of all cursors: those of an earlier process mean nothing here.
    boot: String,
    kept: Mutex<Kept>,
    /// The position after the last event.
    end: watch::Sender<u64>,
}

#[derive(Default)]
struct Kept {
    /// The position of the first event that is still kept.
    start: u64,
    events: VecDeque<Arc<Occurrence>>,
    bytes: usize,
}

/// An event that has happened.
pub(super) struct Occurrence {
    pub(super) position: u64,
    pub(super) id: String,
    pub(super) name: Arc<str>,
    pub(super) data: Value,
    /// In milliseconds since 1970.
    pub(super) time: u64,
    size: usize,
}

/// An event as subscribers see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told<'a> {
    event_id: &'a str,
    name: &'a str,
    timestamp: String,
    data: &'a Value,
    cursor: String,
}

/// Events from a position on.
pub(super) struct Page {
    pub(super) events: Vec<Arc<Occurrence>>,
    /// Where to go on.
    pub(super) next: u64,
    /// Whether events before them are lost.
    pub(super) is_truncated: bool,
    pub(super) has_more: bool,
}

impl Log {
    pub(super) fn new(limits: &EventLimits) -> Self {
        Self {
            most: limits.kept.max(1),
            most_bytes: limits.kept_bytes,
            boot: random::token()[..8].to_owned(),
            kept: Mutex::default(),
            end: watch::Sender::new(0),
        }
    }

    /// Adds an event. Returns its id.
    pub(super) fn add(&self, name: Arc<str>, data: Value, size: usize) -> String {
        let id = format!("evt_{}", random::token());
        let (time, returned) = (clock::unix_millis(), id.clone());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let position = kept.start + kept.events.len() as u64;
        kept.bytes += size;
        kept.events.push_back(Arc::new(Occurrence { position, id, name, data, time, size }));
        while kept.events.len() > self.most || kept.bytes > self.most_bytes {
            let Some(oldest) = kept.events.pop_front() else { break };
            kept.bytes -= oldest.size;
            kept.start += 1;
        }
        self.end.send_replace(position + 1);
        returned
    }

    /// The position after the last event.
    pub(super) fn end(&self) -> u64 {
        *self.end.borrow()
    }

    /// Waits until there is an event at a position.
    pub(super) async fn reach(&self, position: u64) {
        // The sender is here, so it does not fail.
        let _ = self.end.subscribe().wait_for(|end| *end > position).await;
    }

    /// Events from a position on, as far as they are wanted.
    pub(super) fn read(
        &self,
        from: u64,
        most: usize,
        is_wanted: impl Fn(&Occurrence) -> bool,
    ) -> Page {
        let (start, rest) = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let skipped = usize::try_from(from.saturating_sub(kept.start)).unwrap_or(usize::MAX);
            let rest: Vec<_> = kept.events.iter().skip(skipped).cloned().collect();
            (kept.start, rest)
        };
        let mut next = rest.last().map_or_else(|| from.max(start), |last| last.position + 1);
        let mut wanted = rest.into_iter().filter(|event| is_wanted(event));
        let events: Vec<_> = wanted.by_ref().take(most).collect();
        let more = wanted.next();
        if let Some(more) = &more {
            next = more.position;
        }
        Page { events, next, is_truncated: from < start, has_more: more.is_some() }
    }

    pub(super) fn cursor(&self, position: u64) -> String {
        format!("{}-{position:x}", self.boot)
    }

    /// The position of a cursor, and whether events before it are lost.
    ///
    /// # Errors
    /// When it is not a cursor.
    pub(super) fn position(&self, cursor: Option<&str>) -> Result<(u64, bool), &'static str> {
        let Some(cursor) = cursor else { return Ok((self.end(), false)) };
        let (boot, position) = cursor.split_once('-').ok_or(NOT_OURS)?;
        let position = u64::from_str_radix(position, 16).map_err(|_| NOT_OURS)?;
        if boot == self.boot && position <= self.end() {
            return Ok((position, false));
        }
        // Of an earlier process: everything that is kept happened later.
        match boot.len() == self.boot.len() && boot != self.boot {
            true => Ok((0, true)),
            false => Err(NOT_OURS),
        }
    }

    pub(super) fn told<'a>(&self, event: &'a Occurrence) -> Told<'a> {
        Told {
            event_id: &event.id,
            name: &event.name,
            timestamp: iso(event.time),
            data: &event.data,
            cursor: self.cursor(event.position + 1),
        }
    }
}

const NOT_OURS: &str = "params.cursor was not issued by this server";

#[cfg(test)]
mod tests {
    use super::*;

    fn log(kept: usize, kept_bytes: usize) -> Log {
        let limits = EventLimits { kept, kept_bytes, ..EventLimits::default() };
        let log = Log::new(&limits);
        for number in 0..5 {
            log.add("n".into(), number.into(), 10);
        }
        log
    }

    #[test]
    fn readers_go_on_where_they_were_and_hear_what_is_lost() {
        let log = log(3, 1_000);
        let read = |from: u64, most: usize| {
            let page = log.read(from, most, |event| event.data != 3);
            let data: Vec<_> = page.events.iter().map(|it| it.data.as_u64().unwrap()).collect();
            (data, page.next, page.is_truncated, page.has_more)
        };
        assert_eq!(read(0, 9), (vec![2, 4], 5, true, false));
        assert_eq!(read(2, 1), (vec![2], 4, false, true));
        assert_eq!(read(3, 9), (vec![4], 5, false, false));
        assert_eq!(read(5, 9), (vec![], 5, false, false));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let page = log(100, 25).read(0, 9, |_| true);
        assert_eq!(page.events.len(), 2);
        assert!(page.is_truncated);
    }

    #[test]
    fn cursors_of_earlier_processes_say_that_something_is_lost() {
        let (log, other) = (log(9, 1_000), log(9, 1_000));
        assert_eq!(log.position(None), Ok((5, false)));
        assert_eq!(log.position(Some(&log.cursor(2))), Ok((2, false)));
        assert_eq!(log.position(Some(&other.cursor(2))), Ok((0, true)));
        let ahead = log.cursor(6);
        for bad in ["", "x", "1-2", "0123456789-1", ahead.as_str()] {
            assert_eq!(log.position(Some(bad)), Err(NOT_OURS), "{bad}");
        }
    }
}
