//! The server side of a connection: phases only advance, and the revision stays.

use bowline_fuzz::Bytes;
use bowline_proto::params::Params;
use bowline_proto::raw::Raw;
use bowline_proto::revision::{Offer, Revision};
use bowline_proto::session::{Admission, Lifecycle, Phase, Reaction};
use serde_json::value::RawValue;

use crate::revisions;

const METHODS: [&str; 10] = [
    "ping",
    "initialize",
    "tools/list",
    "server/discover",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "logging/setLevel",
    "acme/odd",
];

pub(crate) fn drive(bytes: &mut Bytes<'_>) {
    let offer = Offer::new(revisions(bytes));
    let mut lifecycle = Lifecycle::new(offer);
    let mut readied = 0;
    while !bytes.is_empty() {
        let before = lifecycle.phase();
        let method = bytes.pick(&METHODS);
        match bytes.below(8) {
            0..=2 => request(bytes, offer, &lifecycle, method),
            3 => initialize(bytes, offer, &mut lifecycle),
            4 | 5 => {
                let reaction = lifecycle.handle_notification(method);
                readied += usize::from(reaction == Reaction::Ready);
                assert!(before != Phase::Closed || reaction == Reaction::Drop);
            }
            6 => told(&lifecycle, method),
            _ if bytes.byte() > 240 => lifecycle.close(),
            _ => {}
        }
        forward(before, lifecycle.phase());
        let revision = lifecycle.revision();
        assert!(revision.is_none_or(|spoken| !spoken.is_modern()));
        assert!(revision.is_none_or(|spoken| offer.enabled().contains(spoken)));
        assert!(readied <= 1, "ready twice");
    }
}

fn request(bytes: &mut Bytes<'_>, offer: Offer, lifecycle: &Lifecycle, method: &str) {
    let count = usize::from(bytes.byte());
    let raw = match bytes.below(8) {
        0 => serde_json::from_slice::<&RawValue>(bytes.take(count)).ok().map(RawValue::to_owned),
        chosen => claim(Revision::ALL.get(chosen - 1).copied()),
    };
    let params = Params::of(raw.as_deref().map(Raw::from));
    let admission = lifecycle.handle_request(method, &params);
    let is_closed = lifecycle.phase() == Phase::Closed;
    match admission {
        Ok(_) if is_closed => panic!("served after the end"),
        Ok(Admission::Modern(revision)) => {
            assert!(revision.is_modern() && offer.enabled().contains(revision));
        }
        Ok(Admission::Initialize) => assert_eq!(method, "initialize"),
        Ok(Admission::Legacy(revision)) => {
            assert!(!revision.is_modern() && offer.enabled().contains(revision));
            match lifecycle.revision() {
                Some(spoken) => assert_eq!(revision, spoken),
                None => assert_eq!(method, "ping"),
            }
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}

fn claim(revision: Option<Revision>) -> Option<Box<RawValue>> {
    let text = serde_json::json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": revision?.as_str(),
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    Some(serde_json::value::to_raw_value(&text).expect("a tree"))
}

fn initialize(bytes: &mut Bytes<'_>, offer: Offer, lifecycle: &mut Lifecycle) {
    let before = lifecycle.phase();
    let requested = bytes.pick(&["2024-11-05", "2025-03-26", "2025-06-18", "2026-07-28", "x"]);
    match lifecycle.handle_initialize(requested) {
        Ok(revision) => {
            assert_eq!(before, Phase::ExpectInitialize);
            assert_eq!(lifecycle.phase(), Phase::ExpectInitialized(revision));
            let asked = requested.parse::<Revision>().ok().filter(|asked| !asked.is_modern());
            if let Some(asked) = asked.filter(|asked| offer.enabled().contains(*asked)) {
                assert_eq!(revision, asked);
            }
        }
        Err(_) => assert_eq!(lifecycle.phase(), before),
    }
}

fn told(lifecycle: &Lifecycle, method: &str) {
    let has_batches = lifecycle.revision().is_some_and(Revision::has_batches);
    assert_eq!(lifecycle.handle_batch().is_ok(), has_batches);
    match lifecycle.phase() {
        Phase::ExpectInitialize | Phase::Closed => assert!(!lifecycle.may_send(method)),
        Phase::ExpectInitialized(_) => {}
        Phase::Ready(_) => assert!(lifecycle.may_send(method)),
    }
}

fn forward(before: Phase, after: Phase) {
    let is_forward = match (before, after) {
        (before, after) if before == after => true,
        (_, Phase::Closed) | (Phase::ExpectInitialize, Phase::ExpectInitialized(_)) => true,
        (Phase::ExpectInitialized(before), Phase::Ready(after)) => before == after,
        _ => false,
    };
    assert!(is_forward, "{before:?} to {after:?}");
}
