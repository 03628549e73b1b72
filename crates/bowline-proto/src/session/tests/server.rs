//! A server made of the parts under test, with the habits of servers seen in the wild.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::link::Packet;
use super::random::Random;
use crate::error::{ErrorCode, ErrorObject};
use crate::revision::{Offer, Revision};
use crate::session::{
    Admission, Calls, Class, Facts, Inbound, Kind, Lifecycle, Phase, Reaction, Recipient, Rules,
    SameId, Sessions, Ticket, Timeout, Transport, classify,
};
use crate::wire::{self, Id, Message, Notification, Request};

/// What a server does about `server/discover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    Honest,
    Code(i64),
    Silent,
    Garbage,
    Nonsense,
    Dies,
}

pub(super) struct Server {
    transport: Transport,
    rules: Rules,
    habit: Habit,
    pub(super) lifecycle: Lifecycle,
    inbound: Inbound<()>,
    working: Vec<(Instant, Ticket, Packet)>,
    pub(super) calls: Calls<()>,
    /// How often each request was answered, and whether it was cancelled before.
    pub(super) ledger: HashMap<Id, (u32, bool)>,
    pub(super) is_alive: bool,
}

impl Server {
    pub(super) fn new(transport: Transport, offer: Offer, habit: Habit) -> Self {
        Self {
            transport,
            rules: Rules { offer, sessions: Sessions::Required },
            habit,
            lifecycle: Lifecycle::new(offer),
            inbound: Inbound::new(SameId::Refuse, 64),
            working: Vec::new(),
            calls: Calls::new(),
            ledger: HashMap::new(),
            is_alive: true,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let work = self.working.iter().map(|(end, ..)| *end);
        work.chain(self.calls.next_deadline()).min()
    }

    /// Gives out what is due: answers that are ready and may still be sent.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<Packet> {
        let mut out = Vec::new();
        while let Some(index) = self.working.iter().position(|(end, ..)| *end <= now) {
            let (_, ticket, packet) = self.working.swap_remove(index);
            let id = ticket.id().clone();
            if self.inbound.finish(ticket) {
                self.ledger.entry(id).or_default().0 += 1;
                out.push(packet);
            }
        }
        self.calls.expire(now);
        out
    }

    pub(super) fn handle(
        &mut self,
        now: Instant,
        random: &mut Random,
        packet: &Packet,
    ) -> Vec<Packet> {
        match Message::parse(&packet.frame).expect("a client of ours sends messages") {
            Message::Request(request) => self.handle_request(now, random, packet, &request),
            Message::Notification(notification) => self.handle_notification(now, &notification),
            Message::Response(response) => {
                assert_ne!(self.calls.close(&response.id), Recipient::Unknown);
                Vec::new()
            }
            Message::Fault(error) => panic!("a client never sends {error}"),
        }
    }

    fn handle_request(
        &mut self,
        now: Instant,
        random: &mut Random,
        packet: &Packet,
        request: &Request<'_>,
    ) -> Vec<Packet> {
        if request.method == "server/discover"
            && let Some(out) = self.misbehave(&request.id)
        {
            return out;
        }
        let outcome = match self.admit(packet, request) {
            Ok(Admission::Initialize) => self.initialize(request),
            Ok(Admission::Modern(revision)) => Ok((
                Some(revision),
                json!({
                    "resultType": "complete",
                    "supportedVersions": self.listed(),
                }),
            )),
            Ok(Admission::Legacy(revision)) => Ok((Some(revision), json!({}))),
            Err(refused) => Err(refused),
        };
        match outcome {
            Ok((_, result)) => {
                let delay = match request.method.as_ref() {
                    "tools/call" => random.below(3000),
                    _ => 0,
                };
                let ticket = self.inbound.begin(request.id.clone(), &request.method, ());
                let ticket = ticket.expect("a client of ours counts, and asks little");
                let mut answer = self.answer(&request.id, 200);
                wire::encode_response(&mut answer.frame, &request.id, &result).unwrap();
                self.working.push((now + Duration::from_millis(delay), ticket, answer));
                self.poll(now)
            }
            Err((status, error)) => vec![self.refusal(&request.id, status, &error)],
        }
    }

    fn admit(
        &mut self,
        packet: &Packet,
        request: &Request<'_>,
    ) -> Result<Admission, (u16, ErrorObject)> {
        if self.transport == Transport::Stream {
            let admission = self.lifecycle.handle_request(&request.method, &request.params);
            return admission.map_err(|error| (200, error));
        }
        let facts = Facts {
            transport: Transport::Http,
            kind: Kind::Request(&request.method),
            claim: request.params.claim(),
            in_batch: false,
            header: packet.header.map(Revision::as_str),
            has_session_id: packet.has_session_id,
        };
        match classify(&self.rules, &facts) {
            Class::Modern(revision) => Ok(Admission::Modern(revision)),
            Class::LegacyInitialize => {
                self.lifecycle = Lifecycle::new(self.rules.offer);
                Ok(Admission::Initialize)
            }
            Class::LegacySession => {
                let admitted = self.lifecycle.handle_legacy_request(&request.method);
                admitted.map(Admission::Legacy).map_err(|error| (404, error))
            }
            Class::LegacyStateless(revision) => Ok(Admission::Legacy(revision)),
            Class::Refused(refusal) => Err((refusal.status.as_u16(), refusal.error)),
        }
    }

    fn initialize(
        &mut self,
        request: &Request<'_>,
    ) -> Result<(Option<Revision>, serde_json::Value), (u16, ErrorObject)> {
        let params: serde_json::Value =
            serde_json::from_str(request.params.raw().expect("initialize has params").get())
                .unwrap();
        let requested = params["protocolVersion"].as_str().unwrap();
        let revision = self.lifecycle.handle_initialize(requested);
        let revision = revision.map_err(|error| (400, error))?;
        Ok((Some(revision), json!({ "protocolVersion": revision })))
    }

    fn handle_notification(&mut self, now: Instant, told: &Notification<'_>) -> Vec<Packet> {
        match (self.lifecycle.handle_notification(&told.method), told.method.as_ref()) {
            (Reaction::Ready, _) => {
                assert!(self.lifecycle.may_send("roots/list"));
                let timeout = Timeout::fixed(Duration::from_secs(2));
                let id = self.calls.open(now, "ping", timeout, ());
                let mut packet = Packet::default();
                wire::encode_request::<()>(&mut packet.frame, &id, "ping", None).unwrap();
                vec![packet]
            }
            (Reaction::Serve, "notifications/cancelled") => {
                let params: HashMap<String, Id> =
                    serde_json::from_str(told.params.unwrap().get()).unwrap();
                let id = &params["requestId"];
                if self.inbound.cancel(id).is_some() {
                    self.ledger.entry(id.clone()).or_default().1 = true;
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn misbehave(&mut self, id: &Id) -> Option<Vec<Packet>> {
        match self.habit {
            Habit::Honest => None,
            Habit::Code(code) => {
                let error = ErrorObject::new(ErrorCode(code), "what?");
                Some(vec![self.refusal(id, 400, &error)])
            }
            Habit::Silent => Some(Vec::new()),
            Habit::Garbage => {
                let mut packet = self.answer(id, 200);
                packet.frame.extend_from_slice(b"<html>");
                Some(vec![packet])
            }
            Habit::Nonsense => {
                let mut packet = self.answer(id, 200);
                wire::encode_response(&mut packet.frame, id, &json!({ "ok": true })).unwrap();
                Some(vec![packet])
            }
            Habit::Dies => {
                self.is_alive = false;
                Some(Vec::new())
            }
        }
    }

    fn refusal(&mut self, id: &Id, status: u16, error: &ErrorObject) -> Packet {
        self.ledger.entry(id.clone()).or_default().0 += 1;
        let mut packet = self.answer(id, status);
        wire::encode_error(&mut packet.frame, id, error);
        packet
    }

    fn answer(&self, id: &Id, status: u16) -> Packet {
        match self.transport {
            Transport::Stream => Packet::default(),
            Transport::Http => {
                Packet { status: Some(status), exchange: Some(id.clone()), ..Packet::default() }
            }
        }
    }

    fn listed(&self) -> Vec<Revision> {
        self.rules.offer.listed().iter().collect()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.inbound.is_empty() && self.working.is_empty() && self.calls.is_empty()
    }

    pub(super) fn has_answered_or_cancelled_each_once(&self) -> bool {
        self.ledger.values().all(|(answers, cancelled)| answers + u32::from(*cancelled) <= 1)
    }

    pub(super) fn is_shaken(&self) -> bool {
        !matches!(self.lifecycle.phase(), Phase::ExpectInitialize)
    }
}
