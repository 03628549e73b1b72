//! One line a case: where a message came from, what it said, and under which rules it is served.

use super::*;
use crate::revision::Revisions;

const NOW: &str = "2026-07-28";
const OLD: &str = "2025-06-18";

/// What becomes of a message, in few letters.
fn show(class: &Class) -> String {
    match class {
        Class::Modern(revision) => format!("modern {revision}"),
        Class::LegacyInitialize => "initialize".to_owned(),
        Class::LegacySession => "session".to_owned(),
        Class::LegacyStateless(revision) => format!("stateless {revision}"),
        Class::Refused(refusal) => {
            format!("{} {}", refusal.status.as_u16(), refusal.error.code)
        }
    }
}

fn request(method: &str) -> Kind<'_> {
    Kind::Request(method)
}

/// A message alone over HTTP. `claim` is what the body says, with capabilities.
fn http<'a>(kind: Kind<'a>, claim: Option<&'a str>, header: Option<&'a str>) -> Facts<'a> {
    Facts {
        transport: Transport::Http,
        claim: claim.map(Claim::of).unwrap_or_default(),
        header,
        ..Facts::on_stream(kind, &Params::default())
    }
}

fn stream<'a>(kind: Kind<'a>, claim: Option<&'a str>) -> Facts<'a> {
    Facts { transport: Transport::Stream, ..http(kind, claim, None) }
}

fn in_session(facts: Facts<'_>) -> Facts<'_> {
    Facts { has_session_id: true, ..facts }
}

fn batched(facts: Facts<'_>) -> Facts<'_> {
    Facts { in_batch: true, ..facts }
}

fn without_capabilities(mut facts: Facts<'_>) -> Facts<'_> {
    facts.claim.capabilities = Member::Absent;
    facts
}

fn malformed(mut facts: Facts<'_>) -> Facts<'_> {
    facts.claim.version = Member::Malformed;
    facts
}

const DUAL: Rules = Rules { offer: Offer::new(Revisions::ALL), sessions: Sessions::Required };

const STATELESS: Rules = Rules { sessions: Sessions::None, ..DUAL };

const MODERN_ONLY: Rules =
    Rules { offer: Offer::new(Revisions::MODERN), sessions: Sessions::Required };

const LEGACY_ONLY: Rules =
    Rules { offer: Offer::new(Revisions::LEGACY), sessions: Sessions::Required };

fn check(rules: &Rules, facts: &Facts<'_>, expected: &str) {
    let class = classify(rules, facts);
    assert_eq!(show(&class), expected, "{facts:?}: {class:?}");
}

#[test]
fn the_body_decides_and_the_header_must_agree() {
    let call = request("tools/call");
    check(&DUAL, &http(call, Some(NOW), Some(NOW)), "modern 2026-07-28");
    check(&DUAL, &in_session(http(call, Some(NOW), Some(NOW))), "modern 2026-07-28");
    check(&STATELESS, &http(call, Some(NOW), Some(NOW)), "modern 2026-07-28");
    check(&DUAL, &http(call, Some(NOW), None), "400 -32020");
    check(&DUAL, &http(call, Some(NOW), Some(OLD)), "400 -32020");
    check(&DUAL, &http(call, Some(NOW), Some("2099-01-01")), "400 -32020");
    check(&DUAL, &in_session(http(call, Some(NOW), Some(OLD))), "400 -32020");
    check(&DUAL, &http(call, None, Some(NOW)), "400 -32602");
    check(&DUAL, &http(call, None, Some("2099-01-01")), "400 -32602");
    check(&DUAL, &http(call, None, Some("x")), "400 -32602");
    check(&DUAL, &malformed(http(call, None, Some(NOW))), "400 -32602");
    check(&DUAL, &malformed(http(call, None, None)), "400 -32602");
}

#[test]
fn a_claimed_version_must_be_modern_and_spoken() {
    let call = request("tools/call");
    for claimed in [OLD, "2025-11-25", "2099-01-01", "x", ""] {
        check(&DUAL, &http(call, Some(claimed), Some(claimed)), "400 -32022");
        check(&DUAL, &stream(call, Some(claimed)), "400 -32022");
    }
    check(&LEGACY_ONLY, &http(call, Some(NOW), Some(NOW)), "400 -32022");
    check(&LEGACY_ONLY, &stream(request("server/discover"), Some(NOW)), "400 -32022");
}

#[test]
fn capabilities_are_required_of_requests() {
    let call = request("tools/call");
    check(&DUAL, &without_capabilities(http(call, Some(NOW), Some(NOW))), "400 -32602");
    check(&DUAL, &without_capabilities(stream(call, Some(NOW))), "400 -32602");
    let cancel = Kind::Notification("notifications/cancelled");
    check(&DUAL, &without_capabilities(stream(cancel, Some(NOW))), "modern 2026-07-28");
    // The version is looked at first: what else is required depends on it.
    check(&DUAL, &without_capabilities(stream(call, Some("x"))), "400 -32022");
}

#[test]
fn removed_methods_are_not_there_for_modern_requests() {
    let removed = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/result"];
    for method in removed {
        let asked = request(method);
        check(&DUAL, &http(asked, Some(NOW), Some(NOW)), "404 -32601");
        check(&DUAL, &stream(asked, Some(NOW)), "404 -32601");
        check(&DUAL, &http(asked, None, Some(NOW)), "404 -32601");
        check(&MODERN_ONLY, &http(asked, Some(NOW), Some(NOW)), "404 -32601");
    }
    let told = Kind::Notification("notifications/initialized");
    check(&DUAL, &http(told, Some(NOW), Some(NOW)), "404 -32601");
    check(&DUAL, &http(told, None, Some(NOW)), "404 -32601");
}

#[test]
fn initialize_without_a_modern_claim_is_a_handshake() {
    let initialize = request("initialize");
    for rules in [&DUAL, &STATELESS, &LEGACY_ONLY, &MODERN_ONLY] {
        for header in [None, Some(OLD), Some("2025-11-25"), Some("DRAFT-7")] {
            check(rules, &http(initialize, None, header), "initialize");
            check(rules, &in_session(http(initialize, None, header)), "initialize");
        }
        check(rules, &stream(initialize, None), "initialize");
        check(rules, &http(initialize, None, Some(NOW)), "404 -32601");
    }
    check(&DUAL, &malformed(stream(initialize, None)), "400 -32602");
}

#[test]
fn everything_else_is_legacy() {
    let list = request("tools/list");
    let told = Kind::Notification("notifications/initialized");
    for kind in [list, told, Kind::Answer] {
        for header in [None, Some(OLD), Some("2025-11-25")] {
            check(&DUAL, &in_session(http(kind, None, header)), "session");
            check(&DUAL, &http(kind, None, header), "400 -32600");
        }
        for header in [Some(NOW), Some("2099-01-01"), Some("x")] {
            check(&DUAL, &in_session(http(kind, None, header)), "400 -32600");
        }
        check(&DUAL, &stream(kind, None), "session");
    }
    check(&STATELESS, &http(list, None, Some(OLD)), "stateless 2025-06-18");
    check(&STATELESS, &http(list, None, None), "stateless 2025-03-26");
    check(&STATELESS, &http(told, None, None), "stateless 2025-03-26");
    check(&STATELESS, &http(Kind::Answer, None, None), "400 -32600");
    check(&STATELESS, &http(Kind::Answer, None, Some(NOW)), "400 -32600");
    let without = Rules { offer: Offer::new(Revision::V2025_11_25.into()), ..STATELESS };
    check(&without, &http(list, None, None), "stateless 2025-11-25");
    check(&without, &http(list, None, Some(OLD)), "400 -32600");
}

#[test]
fn discover_without_a_claim_is_told_what_is_missing() {
    let discover = request("server/discover");
    check(&DUAL, &stream(discover, None), "400 -32602");
    check(&DUAL, &http(discover, None, None), "400 -32602");
    check(&DUAL, &http(discover, None, Some(OLD)), "400 -32602");
    check(&DUAL, &in_session(http(discover, None, Some(OLD))), "session");
}

#[test]
fn a_server_without_legacy_says_what_is_missing() {
    check(&MODERN_ONLY, &http(request("tools/list"), None, None), "400 -32602");
    check(&MODERN_ONLY, &stream(request("ping"), None), "400 -32602");
    check(&MODERN_ONLY, &in_session(http(Kind::Answer, None, None)), "400 -32600");
    let told = Kind::Notification("notifications/initialized");
    check(&MODERN_ONLY, &http(told, None, None), "400 -32600");
}

#[test]
fn notifications_may_go_by_their_header() {
    let told = Kind::Notification("notifications/cancelled");
    check(&DUAL, &http(told, None, Some(NOW)), "modern 2026-07-28");
    check(&DUAL, &http(told, None, Some("2099-01-01")), "400 -32022");
    check(&DUAL, &http(told, Some(NOW), None), "400 -32020");
    check(&DUAL, &stream(told, None), "session");
}

#[test]
fn batches_belong_to_one_revision() {
    let list = request("tools/list");
    check(&STATELESS, &batched(http(list, None, None)), "stateless 2025-03-26");
    check(&STATELESS, &batched(http(list, None, Some("2025-03-26"))), "stateless 2025-03-26");
    check(&STATELESS, &batched(http(list, None, Some(OLD))), "400 -32600");
    check(&STATELESS, &batched(http(list, None, Some(NOW))), "400 -32600");
    check(&STATELESS, &batched(http(list, Some(NOW), Some(NOW))), "400 -32600");
    check(&STATELESS, &batched(http(list, Some(NOW), None)), "400 -32600");
    check(&DUAL, &batched(http(list, None, None)), "400 -32600");
    check(&DUAL, &batched(in_session(http(list, None, None))), "session");
    check(&DUAL, &batched(in_session(http(list, Some(NOW), None))), "400 -32600");
    check(&DUAL, &batched(stream(list, None)), "session");
    check(&DUAL, &batched(stream(list, Some(NOW))), "400 -32600");
    check(&MODERN_ONLY, &batched(http(list, None, None)), "400 -32600");
}
