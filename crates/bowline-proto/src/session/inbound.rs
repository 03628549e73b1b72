//! Requests of a peer that are in progress.
//!
//! Each request ends in exactly one of two ways: its answer is sent, or it is cancelled and nothing
//! is sent. [`Inbound`] is where the two race. The owner of a running request holds a [`Ticket`]
//! and exchanges it for the right to answer; a cancellation revokes that right and returns the
//! handle that stops the work.
//!
//! Real clients send `"id":1` with every HTTP POST, several at a time. There each answer goes back
//! on its own exchange, so equal ids are harmless and [`SameId::Serve`] accepts them. On a stream
//! the id is all that ties an answer to its question, so [`SameId::Refuse`] is the only choice.

use std::collections::HashMap;

use crate::error::ErrorObject;
use crate::wire::Id;

/// What to do with a request whose id is in use by another one in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameId {
    /// Reject it, because answers share one stream.
    Refuse,
    /// Serve both, because each has its own exchange. Neither can then be cancelled by id.
    Serve,
}

/// The requests of one peer, each with a handle to stop it.
///
/// **Invariant:** for each request, either [`Inbound::finish`] returns `true` or
/// [`Inbound::cancel`] returns the handle, once; or neither, if all were drained.
#[derive(Debug)]
pub struct Inbound<H> {
    limit: usize,
    same_id: SameId,
    next: u64,
    working: HashMap<Id, Working<H>>,
    /// Requests with an id that is already in `working`. Empty for peers that count their ids.
    doubles: Vec<(Id, Working<H>)>,
}

#[derive(Debug)]
struct Working<H> {
    number: u64,
    cancel: Cancel,
    handle: H,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancel {
    Allowed,
    Forbidden,
}

/// The duty to answer one request. It cannot be copied, because it is used once.
#[derive(Debug)]
#[must_use = "a request without an answer keeps its place for ever"]
pub struct Ticket {
    id: Id,
    number: u64,
}

impl Ticket {
    /// The id that the answer must carry.
    pub fn id(&self) -> &Id {
        &self.id
    }
}

/// Why a request is not started.
#[derive(Debug, Clone, PartialEq)]
pub enum BeginError {
    /// Answer it with this error.
    Refused(ErrorObject),
    /// Too many requests are in progress. On a stream, stop reading until one is finished.
    Full,
}

impl<H> Inbound<H> {
    /// The default limit on requests in progress.
    pub const LIMIT: usize = 128;

    /// Creates an empty set of requests.
    pub fn new(same_id: SameId, limit: usize) -> Self {
        Self { limit, same_id, next: 0, working: HashMap::new(), doubles: Vec::new() }
    }

    /// Adds a request; `handle` stops it.
    ///
    /// # Errors
    /// When its id is in use, or too many requests are in progress.
    pub fn begin(&mut self, id: Id, method: &str, handle: H) -> Result<Ticket, BeginError> {
        let is_double = self.working.contains_key(&id);
        if is_double && self.same_id == SameId::Refuse {
            let message = format!("{method}: id {id} is already in use by a request in progress");
            return Err(BeginError::Refused(ErrorObject::invalid_request(message)));
        }
        if self.is_full() {
            return Err(BeginError::Full);
        }
        self.next += 1;
        let number = self.next;
        // All revisions, basic/utilities/cancellation: initialize must not be cancelled.
        let cancel = match method {
            "initialize" => Cancel::Forbidden,
            _ => Cancel::Allowed,
        };
        let working = Working { number, cancel, handle };
        if is_double {
            self.doubles.push((id.clone(), working));
        } else {
            self.working.insert(id.clone(), working);
        }
        Ok(Ticket { id, number })
    }

    /// Handles a cancellation. The request whose handle is returned must be stopped, and is not
    /// answered.
    ///
    /// Returns nothing for a request that is finished, unknown, already cancelled or `initialize`,
    /// nor if two requests share the id.
    pub fn cancel(&mut self, id: &Id) -> Option<H> {
        if self.doubles.iter().any(|(double, _)| double == id) {
            return None;
        }
        let working = self.working.get(id)?;
        if working.cancel == Cancel::Forbidden {
            return None;
        }
        self.working.remove(id).map(|working| working.handle)
    }

    /// The handle of a request.
    pub fn find_mut(&mut self, is_it: impl Fn(&H) -> bool) -> Option<&mut H> {
        let doubles = self.doubles.iter_mut().map(|(_, double)| &mut double.handle);
        let mut handles = self.working.values_mut().map(|it| &mut it.handle).chain(doubles);
        handles.find(|handle| is_it(handle))
    }

    /// How many requests have such a handle.
    pub fn count(&self, is_it: impl Fn(&H) -> bool) -> usize {
        let doubles = self.doubles.iter().map(|(_, double)| double);
        self.working.values().chain(doubles).filter(|it| is_it(&it.handle)).count()
    }

    /// Cancels a request that is known by its handle, whatever its id.
    pub fn cancel_where(&mut self, is_it: impl Fn(&H) -> bool) -> Option<H> {
        let double = self.doubles.iter().position(|(_, double)| is_it(&double.handle));
        if let Some(index) = double {
            return Some(self.doubles.swap_remove(index).1.handle);
        }
        let found = self.working.iter().find(|(_, working)| is_it(&working.handle));
        let id = found.map(|(id, _)| id.clone())?;
        self.working.remove(&id).map(|working| working.handle)
    }

    /// Ends a request. Returns whether its answer may be sent, which is not so after a
    /// cancellation.
    #[must_use = "an answer after a cancellation must not be sent"]
    pub fn finish(&mut self, ticket: Ticket) -> bool {
        let Ticket { id, number } = ticket;
        let is_first = |working: &Working<H>| working.number == number;
        if self.working.get(&id).is_some_and(is_first) {
            self.working.remove(&id);
            return true;
        }
        let double = self.doubles.iter().position(|(_, double)| is_first(double));
        match double {
            Some(index) => {
                self.doubles.swap_remove(index);
                true
            }
            None => false,
        }
    }

    /// Removes all requests and returns their handles, when the peer has disconnected.
    pub fn drain(&mut self) -> impl Iterator<Item = H> + use<H> {
        let working = std::mem::take(&mut self.working).into_values();
        let doubles = std::mem::take(&mut self.doubles).into_iter();
        working.chain(doubles.map(|(_, double)| double)).map(|working| working.handle)
    }

    /// Whether a request with this id is in progress.
    pub fn contains(&self, id: &Id) -> bool {
        self.working.contains_key(id)
    }

    /// The number of requests in progress.
    pub fn len(&self) -> usize {
        self.working.len() + self.doubles.len()
    }

    /// Whether no request is in progress.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.len() >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_found_by_its_handle() {
        let mut inbound = Inbound::new(SameId::Serve, 9);
        let mut begin = |handle| inbound.begin(Id::from(1_i64), "ping", handle).unwrap();
        let (one, two) = (begin("one"), begin("two"));
        assert_eq!(inbound.find_mut(|it| *it == "two"), Some(&mut "two"));
        assert_eq!(inbound.cancel_where(|it| *it == "two"), Some("two"));
        assert_eq!(inbound.cancel_where(|it| *it == "two"), None);
        assert!(!inbound.finish(two), "it was cancelled");
        assert!(inbound.finish(one));
    }
    use crate::error::ErrorCode;

    fn id(number: i64) -> Id {
        Id::from(number)
    }

    /// Runs `begin`, `finish` and `cancel` of id 1 in the order of the letters; the outcome says,
    /// for each, whether it was granted.
    fn check(same_id: SameId, method: &str, steps: &str, granted: &str) {
        let mut inbound = Inbound::new(same_id, 8);
        let mut tickets = Vec::new();
        let mut found = String::new();
        for step in steps.chars() {
            let yes = match step {
                'b' => inbound.begin(id(1), method, ()).map(|t| tickets.push(t)).is_ok(),
                'f' => inbound.finish(tickets.remove(0)),
                'c' => inbound.cancel(&id(1)).is_some(),
                other => panic!("no step {other}"),
            };
            found.push(if yes { 'y' } else { 'n' });
        }
        assert_eq!(found, granted, "{method}: {steps}");
        assert!(tickets.is_empty() && inbound.is_empty(), "{method}: {steps}");
    }

    #[test]
    fn a_request_is_answered_or_cancelled() {
        let call = "tools/call";
        check(SameId::Refuse, call, "bf", "yy");
        check(SameId::Refuse, call, "bfc", "yyn");
        check(SameId::Refuse, call, "bcf", "yyn");
        check(SameId::Refuse, call, "bccf", "yynn");
        check(SameId::Refuse, call, "cbf", "nyy");
        check(SameId::Refuse, "initialize", "bcf", "yny");
        // The id is free again after a cancellation, though the work on the first has not ended.
        check(SameId::Refuse, call, "bcbff", "yyyny");
        check(SameId::Refuse, call, "bbf", "yny");
    }

    #[test]
    fn equal_ids_on_exchanges_of_their_own_are_all_answered() {
        let call = "tools/call";
        check(SameId::Serve, call, "bbff", "yyyy");
        check(SameId::Serve, call, "bbbfff", "yyyyyy");
        check(SameId::Serve, call, "bbcff", "yynyy");
        check(SameId::Serve, call, "bbfbcff", "yyyynyy");
        check(SameId::Serve, call, "bbffbcf", "yyyyyyn");
    }

    #[test]
    fn refusals_tell_their_reason() {
        let mut inbound = Inbound::new(SameId::Refuse, 2);
        let first = inbound.begin(id(1), "tools/list", 'a').unwrap();
        let Err(BeginError::Refused(error)) = inbound.begin(id(1), "tools/call", 'b') else {
            panic!("served twice");
        };
        assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
        assert!(error.message.contains("id 1 "), "{error}");
        let second = inbound.begin(Id::from("1"), "tools/call", 'c').unwrap();
        assert_eq!(second.id(), &Id::from("1"));
        assert_eq!(inbound.begin(id(2), "x", 'd').unwrap_err(), BeginError::Full);
        assert!(inbound.finish(first));
        assert!(inbound.begin(id(2), "x", 'e').is_ok());
        let mut handles: Vec<char> = inbound.drain().collect();
        handles.sort_unstable();
        assert_eq!(handles, ['c', 'e']);
        assert!(!inbound.finish(second));
    }
}
