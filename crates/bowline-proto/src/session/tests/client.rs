//! A client made of the parts under test. It connects, makes some calls, and gives some up.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::link::Packet;
use crate::revision::{Revision, Revisions};
use crate::session::{
    Action, Calls, Connect, ConnectError, Event, Question, Recipient, Rejection, Timeout, Transport,
};
use crate::wire::{self, Id, Message, Response};

/// How many calls the client makes once connected.
pub(super) const CALLS: usize = 6;
/// Their bound, in all.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    Discover,
    Initialize,
    Call(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Answered,
    TimedOut,
    Abandoned,
    Closed,
}

/// What the world must do for the client.
pub(super) enum Effect {
    Send(Packet),
    Respawn,
}

pub(super) struct Client {
    transport: Transport,
    connect: Connect,
    pub(super) calls: Calls<Waiter>,
    pub(super) outcome: Option<Result<Revision, ConnectError>>,
    /// How each call ended, and when.
    pub(super) ends: [Option<(End, Instant)>; CALLS],
    ids: Vec<(Id, Instant)>,
}

impl Client {
    pub(super) fn new(transport: Transport, ours: Revisions) -> Self {
        Self {
            transport,
            connect: Connect::new(transport, ours).with_probe_timeout(Duration::from_secs(1)),
            calls: Calls::new(),
            outcome: None,
            ends: [None; CALLS],
            ids: Vec::new(),
        }
    }

    pub(super) fn open(&mut self, now: Instant, known: Option<Revision>) -> Vec<Effect> {
        let action = self.connect.open(known);
        self.act(now, action)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let abandon = self.ids.iter().map(|(_, when)| *when);
        abandon.chain(self.calls.next_deadline()).min()
    }

    pub(super) fn poll(&mut self, now: Instant) -> Vec<Effect> {
        let mut out = Vec::new();
        while let Some(index) = self.ids.iter().position(|(_, when)| *when <= now) {
            let (id, _) = self.ids.swap_remove(index);
            if let Some(waiter) = self.calls.abandon(&id) {
                self.end(now, waiter, End::Abandoned);
                out.push(self.cancellation(&id));
            }
        }
        for expired in self.calls.expire(now) {
            let question = match expired.waiter {
                Waiter::Discover => Question::Discover,
                Waiter::Initialize => Question::Initialize,
                Waiter::Call(_) => {
                    self.end(now, expired.waiter, End::TimedOut);
                    out.push(self.cancellation(&expired.id));
                    continue;
                }
            };
            out.extend(self.feed(now, Event::TimedOut(question)));
        }
        out
    }

    pub(super) fn handle(&mut self, now: Instant, packet: &Packet) -> Vec<Effect> {
        match Message::parse(&packet.frame) {
            Ok(Message::Response(response)) => self.handle_response(now, packet, &response),
            Ok(Message::Request(request)) => {
                let revision = self.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
                assert!(
                    revision.is_some_and(|revision| !revision.is_modern()),
                    "a server asks only after a handshake"
                );
                let mut answer = self.packet();
                wire::encode_response(&mut answer.frame, &request.id, &json!({})).unwrap();
                vec![Effect::Send(answer)]
            }
            Ok(other) => panic!("a server of ours does not send {other:?}"),
            // On a stream nobody knows whose answer that was; the deadline tells.
            Err(_) => match packet.exchange.as_ref().map(|id| self.calls.close(id)) {
                Some(Recipient::Awaited(Waiter::Discover)) => {
                    self.feed(now, Event::Malformed(Question::Discover))
                }
                _ => Vec::new(),
            },
        }
    }

    pub(super) fn handle_exit(&mut self, now: Instant) -> Vec<Effect> {
        for (_, waiter) in self.calls.drain() {
            self.end(now, waiter, End::Closed);
        }
        self.feed(now, Event::Exited)
    }

    fn handle_response(
        &mut self,
        now: Instant,
        packet: &Packet,
        response: &Response<'_>,
    ) -> Vec<Effect> {
        let waiter = match self.calls.close(&response.id) {
            Recipient::Awaited(waiter) => waiter,
            Recipient::Late => return Vec::new(),
            Recipient::Unknown => panic!("an answer to {} that we never asked", response.id),
        };
        let question = match waiter {
            Waiter::Discover => Question::Discover,
            Waiter::Initialize => Question::Initialize,
            Waiter::Call(_) => {
                self.end(now, waiter, End::Answered);
                return Vec::new();
            }
        };
        let result = match &response.outcome {
            Ok(result) => result.get(),
            Err(error) => {
                let error = Some(error.clone());
                let rejection = Rejection { status: packet.status, error };
                return self.feed(now, Event::Refused(question, rejection));
            }
        };
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Discovered {
            supported_versions: Vec<String>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Initialized {
            protocol_version: String,
        }
        match question {
            Question::Discover => match serde_json::from_str::<Discovered>(result) {
                Ok(found) => self.feed(now, Event::Discovered(&found.supported_versions)),
                Err(_) => self.feed(now, Event::Malformed(question)),
            },
            _ => match serde_json::from_str::<Initialized>(result) {
                Ok(found) => self.feed(now, Event::Initialized(&found.protocol_version)),
                Err(_) => self.feed(now, Event::Malformed(question)),
            },
        }
    }

    fn feed(&mut self, now: Instant, event: Event<'_>) -> Vec<Effect> {
        let action = self.connect.handle_event(event);
        self.act(now, action)
    }

    fn act(&mut self, now: Instant, action: Action) -> Vec<Effect> {
        match action {
            Action::Discover { revision, timeout } => {
                let timeout = timeout.map_or_else(|| Timeout::fixed(TIMEOUT), Timeout::fixed);
                vec![self.ask(now, timeout, Waiter::Discover, Some(revision))]
            }
            Action::Initialize(revision) => vec![self.initialize(now, revision)],
            Action::Respawn(revision) => vec![Effect::Respawn, self.initialize(now, revision)],
            Action::OpenSse => {
                let rejection = Rejection { status: Some(405), error: None };
                self.feed(now, Event::Refused(Question::Endpoint, rejection))
            }
            Action::Wait => Vec::new(),
            Action::Done(revision) => {
                self.outcome = Some(Ok(revision));
                self.begin(now, revision)
            }
            Action::Failed(error) => {
                self.outcome = Some(Err(error));
                Vec::new()
            }
        }
    }

    /// Connected: the last message of the handshake, then some calls, of which every third is
    /// given up while it may still be answered.
    fn begin(&mut self, now: Instant, revision: Revision) -> Vec<Effect> {
        let mut out = Vec::new();
        let modern = Some(revision).filter(|revision| revision.is_modern());
        if modern.is_none() {
            let mut packet = self.packet();
            let method = "notifications/initialized";
            wire::encode_notification::<()>(&mut packet.frame, method, None).unwrap();
            out.push(Effect::Send(packet));
        }
        for index in 0..CALLS {
            let timeout = Timeout::fixed(TIMEOUT);
            let waiter = Waiter::Call(index);
            out.push(self.ask(now, timeout, waiter, modern));
            if index % 3 == 0 {
                let id = self.calls.pending(now).pop().expect("it was just opened").id;
                let patience = Duration::from_millis(700 * (1 + index as u64));
                self.ids.push((id, now + patience));
            }
        }
        out
    }

    fn initialize(&mut self, now: Instant, revision: Revision) -> Effect {
        let timeout = Timeout::fixed(TIMEOUT);
        let id = self.calls.open(now, "initialize", timeout, Waiter::Initialize);
        let mut packet = Packet::default();
        let params = json!({ "protocolVersion": revision });
        wire::encode_request(&mut packet.frame, &id, "initialize", Some(&params)).unwrap();
        Effect::Send(packet)
    }

    fn ask(
        &mut self,
        now: Instant,
        timeout: Timeout,
        waiter: Waiter,
        claim: Option<Revision>,
    ) -> Effect {
        let method = match waiter {
            Waiter::Discover => "server/discover",
            Waiter::Initialize => "initialize",
            Waiter::Call(_) => "tools/call",
        };
        let id = self.calls.open(now, method, timeout, waiter);
        let params = match claim {
            Some(revision) => json!({ "_meta": {
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": {},
            } }),
            None => json!({}),
        };
        let mut packet = self.packet();
        if self.transport == Transport::Http && claim.is_some() {
            packet.header = claim;
        }
        wire::encode_request(&mut packet.frame, &id, method, Some(&params)).unwrap();
        Effect::Send(packet)
    }

    fn cancellation(&self, id: &Id) -> Effect {
        let mut packet = self.packet();
        let params = json!({ "requestId": id });
        let method = "notifications/cancelled";
        wire::encode_notification(&mut packet.frame, method, Some(&params)).unwrap();
        Effect::Send(packet)
    }

    /// An empty packet, with the headers that go with what is agreed so far.
    fn packet(&self) -> Packet {
        let agreed = match (self.transport, &self.outcome) {
            (Transport::Http, Some(Ok(revision))) => Some(*revision),
            _ => None,
        };
        let has_session_id = agreed.is_some_and(|revision| !revision.is_modern());
        Packet { header: agreed, has_session_id, ..Packet::default() }
    }

    fn end(&mut self, now: Instant, waiter: Waiter, end: End) {
        if let Waiter::Call(index) = waiter {
            let before = self.ends[index].replace((end, now));
            assert_eq!(before, None, "call {index} ends twice");
        }
    }
}
