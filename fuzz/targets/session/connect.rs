//! Negotiating a revision: every request is one we may send, every response leads on, and it ends
//! soon.

use bowline_fuzz::Bytes;
use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::revision::{Era, Revision, Revisions};
use bowline_proto::session::{
    Action, Connect, ConnectError, Event, Preference, Question, Rejection, Transport,
};
use serde_json::json;

use crate::revisions;

/// Three probes, a handshake per legacy revision, and the three things that are tried once; plus
/// some slack.
const MOST: usize = 16;

const VERSIONS: [&str; 8] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
    "2099-01-01",
    "",
    "2025-11-2",
];

struct Model {
    transport: Transport,
    ours: Revisions,
    asked: Option<Question>,
    is_done: bool,
    actions: usize,
    respawned: usize,
    opened_sse: usize,
}

pub(crate) fn drive(bytes: &mut Bytes<'_>) {
    let transport = bytes.pick(&[Transport::Stream, Transport::Http]);
    let preference = match bytes.below(8) {
        0 => Preference::Legacy,
        1 => Preference::Modern,
        2 => Preference::Pin(bytes.pick(&Revision::ALL)),
        _ => Preference::Auto,
    };
    let ours = preference.narrow(revisions(bytes));
    let known = bytes.flag().then(|| bytes.pick(&Revision::ALL));
    let mut connect = Connect::new(transport, ours);
    let mut model = Model {
        transport,
        ours,
        asked: None,
        is_done: false,
        actions: 0,
        respawned: 0,
        opened_sse: 0,
    };
    model.act(connect.open(known), None, &[]);
    while !bytes.is_empty() {
        let theirs: Vec<String> =
            (0..bytes.below(4)).map(|_| bytes.pick(&VERSIONS).to_owned()).collect();
        let answered = bytes.pick(&VERSIONS);
        let event = model.event(bytes, &theirs, answered);
        let is_due = model.is_due(&event);
        let action = connect.handle_event(event.clone());
        assert_eq!(action == Action::Wait, !is_due, "{event:?} led to {action:?}");
        model.act(action, Some(&event), &theirs);
    }
}

impl Model {
    /// An event, usually about the current request.
    fn event<'a>(
        &self,
        bytes: &mut Bytes<'_>,
        theirs: &'a [String],
        answered: &'a str,
    ) -> Event<'a> {
        let any = [Question::Discover, Question::Initialize, Question::Endpoint];
        let about = match (self.asked, bytes.below(8)) {
            (Some(asked), 1..) => asked,
            _ => bytes.pick(&any),
        };
        match bytes.below(16) {
            0 => Event::Exited,
            1 => Event::Unreachable("no route".to_owned()),
            2 => Event::Contradicted,
            3 | 4 => Event::TimedOut(about),
            5 | 6 => Event::Malformed(about),
            7..=11 => Event::Refused(about, self.rejection(bytes, theirs)),
            _ => match about {
                Question::Discover => Event::Discovered(theirs),
                Question::Initialize => Event::Initialized(answered),
                Question::Endpoint => Event::EndpointFound,
            },
        }
    }

    fn rejection(&self, bytes: &mut Bytes<'_>, theirs: &[String]) -> Rejection {
        let codes = [-32601, -32602, -32600, -32000, -32020, -32021, -32022, -32022, 0];
        let code = bytes.pick(&codes);
        let data = match bytes.below(3) {
            0 => json!({ "supported": theirs, "requested": "x" }),
            1 => json!({ "supported": "all" }),
            _ => json!(null),
        };
        let error = ErrorObject::new(ErrorCode(code), "no").with_data(data.into());
        let statuses = [400, 404, 405, 401, 429, 500, 200, 302];
        let status = (self.transport == Transport::Http).then(|| bytes.pick(&statuses));
        Rejection { status, error: (code != 0).then_some(error) }
    }

    /// Whether an event must lead to an action.
    fn is_due(&self, event: &Event<'_>) -> bool {
        let Some(asked) = self.asked else {
            return self.is_done && *event == Event::Contradicted;
        };
        match event {
            Event::Discovered(_) => asked == Question::Discover,
            Event::Initialized(_) => asked == Question::Initialize,
            Event::EndpointFound => asked == Question::Endpoint,
            Event::Refused(about, _) | Event::Malformed(about) | Event::TimedOut(about) => {
                *about == asked
            }
            Event::Exited | Event::Unreachable(_) => true,
            Event::Contradicted => false,
        }
    }

    fn act(&mut self, action: Action, event: Option<&Event<'_>>, theirs: &[String]) {
        if action == Action::Wait {
            return;
        }
        self.actions += 1;
        assert!(self.actions <= MOST, "it does not end");
        self.is_done = false;
        self.asked = match action {
            Action::Discover { revision, timeout } => {
                assert!(revision.is_modern() && self.ours.contains(revision));
                // Silence on a stream indicates the legacy era, if that is acceptable.
                let has_else = self.ours.newest(Era::Legacy).is_some();
                assert_eq!(timeout.is_some(), self.transport == Transport::Stream && has_else);
                Some(Question::Discover)
            }
            Action::Initialize(revision) => self.handshake(revision),
            Action::Respawn(revision) => {
                self.respawned += 1;
                assert!(self.transport == Transport::Stream && self.respawned == 1);
                self.handshake(revision)
            }
            Action::OpenSse => {
                self.opened_sse += 1;
                assert!(self.transport == Transport::Http && self.opened_sse == 1);
                Some(Question::Endpoint)
            }
            Action::Done(revision) => {
                self.done(revision, event, theirs);
                None
            }
            Action::Failed(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(error == ConnectError::NothingEnabled, self.ours.is_empty());
                None
            }
            Action::Wait => unreachable!("returned above"),
        };
    }

    fn handshake(&self, revision: Revision) -> Option<Question> {
        assert!(!revision.is_modern() && self.ours.contains(revision));
        Some(Question::Initialize)
    }

    /// The negotiated revision is one that both sides support.
    fn done(&mut self, revision: Revision, event: Option<&Event<'_>>, theirs: &[String]) {
        assert!(self.ours.contains(revision));
        self.is_done = true;
        match event {
            None => assert!(revision.is_modern(), "a handshake takes two"),
            Some(Event::Discovered(_)) => {
                assert!(revision.is_modern());
                assert!(theirs.iter().any(|version| version == revision.as_str()));
            }
            Some(Event::Initialized(answered)) => {
                assert!(!revision.is_modern());
                assert_eq!(*answered, revision.as_str());
            }
            Some(event) => panic!("done after {event:?}"),
        }
    }
}
