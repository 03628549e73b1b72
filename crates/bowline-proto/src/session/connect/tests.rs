//! One line a case: what a server does, event by event, and what the client does about it.

use super::*;
use crate::json::Json;

use Transport::{Http, Stream};

/// What to do next, in few letters.
fn show(action: &Action) -> String {
    match action {
        Action::Discover { revision, timeout } => {
            let bounded = if timeout.is_some() { "!" } else { "" };
            format!("discover {revision}{bounded}")
        }
        Action::Initialize(revision) => format!("initialize {revision}"),
        Action::Respawn(revision) => format!("respawn {revision}"),
        Action::OpenSse => "get".to_owned(),
        Action::Wait => "wait".to_owned(),
        Action::Done(revision) => format!("done {revision}"),
        Action::Failed(error) => match error {
            ConnectError::NoCommonRevision(error) => format!("disjoint {}", error.theirs.join(" ")),
            ConnectError::Refused(rejection) => format!("refused: {rejection}"),
            ConnectError::Blocked(rejection) => format!("blocked: {rejection}"),
            other => format!("failed: {other:?}"),
        },
    }
}

/// Reads an event: `d:` discovered with a list, `i:` initialized, `dn`/`in`/`gn` an error to
/// discover, initialize or the GET, with a status, a code and what it lists; and single words.
fn play(connect: &mut Connect, event: &str) -> Action {
    let list = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    if let Some(theirs) = event.strip_prefix("d:") {
        return connect.handle_event(Event::Discovered(&list(theirs)));
    }
    if let Some(answered) = event.strip_prefix("i:") {
        return connect.handle_event(Event::Initialized(answered));
    }
    if let Some((who, what)) = event.split_once("n:") {
        return connect.handle_event(Event::Refused(question(who), rejection(&list(what))));
    }
    connect.handle_event(match event {
        "d?" => Event::Malformed(Question::Discover),
        "i?" => Event::Malformed(Question::Initialize),
        "g?" => Event::Malformed(Question::Endpoint),
        "d0" => Event::TimedOut(Question::Discover),
        "i0" => Event::TimedOut(Question::Initialize),
        "g0" => Event::TimedOut(Question::Endpoint),
        "endpoint" => Event::EndpointFound,
        "exit" => Event::Exited,
        "net" => Event::Unreachable("dns".to_owned()),
        "but" => Event::Contradicted,
        other => panic!("no event {other}"),
    })
}

fn question(who: &str) -> Question {
    match who {
        "d" => Question::Discover,
        "i" => Question::Initialize,
        _ => Question::Endpoint,
    }
}

/// Statuses are positive, codes negative, all else is listed as supported.
fn rejection(words: &[String]) -> Rejection {
    let numbers = words.iter().filter_map(|word| word.parse::<i64>().ok());
    let (codes, statuses): (Vec<i64>, Vec<i64>) = numbers.partition(|number| *number < 0);
    let supported: Vec<&String> = words.iter().filter(|w| w.parse::<i64>().is_err()).collect();
    let data = serde_json::json!({ "supported": supported });
    let error = codes.first().map(|code| {
        let error = ErrorObject::new(ErrorCode(*code), "no");
        if supported.is_empty() { error } else { error.with_data(Json::from(data)) }
    });
    Rejection { status: statuses.first().map(|status| u16::try_from(*status).unwrap()), error }
}

/// Plays `events` after the beginning; `expected` holds one action more than there are events.
fn check(transport: Transport, ours: Revisions, events: &[&str], expected: &[&str]) {
    check_known(transport, ours, None, events, expected);
}

fn check_known(
    transport: Transport,
    ours: Revisions,
    known: Option<Revision>,
    events: &[&str],
    expected: &[&str],
) {
    let mut connect = Connect::new(transport, ours);
    let mut found = vec![show(&connect.open(known))];
    for event in events {
        found.push(show(&play(&mut connect, event)));
    }
    assert_eq!(found, expected, "{transport:?} {ours}: {events:?}");
}

const ALL: Revisions = Revisions::ALL;
const PROBE: &str = "discover 2026-07-28!";
const PROBE_UNBOUNDED: &str = "discover 2026-07-28";
const SHAKE: &str = "initialize 2025-11-25";
const MODERN: &str = "done 2026-07-28";
const LEGACY: &str = "done 2025-11-25";

#[test]
fn a_modern_server_is_found_by_asking() {
    check(Stream, ALL, &["d:2026-07-28"], &[PROBE, MODERN]);
    check(Http, ALL, &["d:2099-01-01 2026-07-28 2025-11-25"], &[PROBE_UNBOUNDED, MODERN]);
    // There is nothing to fall back to, so that a slow start is no reason to give up.
    check(Stream, Revisions::MODERN, &["d:2026-07-28"], &[PROBE_UNBOUNDED, MODERN]);
    check(Stream, ALL, &["d:2025-06-18"], &[PROBE, "initialize 2025-06-18"]);
    check(Stream, ALL, &["d:2099-01-01"], &[PROBE, "disjoint 2099-01-01"]);
    check(Stream, ALL, &["d:", "i:2025-11-25"], &[PROBE, SHAKE, LEGACY]);
}

#[test]
fn whatever_a_legacy_process_does_about_the_question_it_gets_a_handshake() {
    for answer in ["dn:-32601", "dn:-32602", "dn:-32600", "dn:-32000", "dn:-32022", "d?", "d0"] {
        check(Stream, ALL, &[answer, "i:2025-11-25"], &[PROBE, SHAKE, LEGACY]);
        let words = &[PROBE, SHAKE, "done 2024-11-05"];
        check(Stream, ALL, &[answer, "i:2024-11-05"], words);
    }
    let respawn = "respawn 2025-11-25";
    check(Stream, ALL, &["exit", "i:2025-11-25"], &[PROBE, respawn, LEGACY]);
    check(Stream, ALL, &["d0", "exit", "i:2025-11-25"], &[PROBE, SHAKE, respawn, LEGACY]);
    check(Stream, ALL, &["exit", "exit"], &[PROBE, respawn, "failed: Exited"]);
}

#[test]
fn a_late_answer_to_the_question_changes_nothing() {
    let events = ["d0", "d:2026-07-28", "dn:-32601", "d0", "i:2025-11-25", "d:2026-07-28"];
    check(Stream, ALL, &events, &[PROBE, SHAKE, "wait", "wait", "wait", LEGACY, "wait"]);
}

#[test]
fn an_unsupported_version_is_an_answer_of_the_modern_era() {
    let refused = "dn:400 -32022 2025-11-25 2025-06-18";
    check(Http, ALL, &[refused], &[PROBE_UNBOUNDED, SHAKE]);
    check(Http, ALL, &["dn:400 -32022 2024-11-05"], &[PROBE_UNBOUNDED, "initialize 2024-11-05"]);
    check(Http, ALL, &["dn:400 -32022 2099-01-01"], &[PROBE_UNBOUNDED, "disjoint 2099-01-01"]);
    let contradicted = [PROBE, PROBE, "failed: Contradicted"];
    check(Stream, ALL, &["dn:-32022 2026-07-28"; 2], &contradicted);
    check(
        Http,
        Revisions::MODERN,
        &[refused],
        &[PROBE_UNBOUNDED, "disjoint 2025-11-25 2025-06-18"],
    );
    for code in ["-32020", "-32021"] {
        let mut connect = Connect::new(Http, ALL);
        connect.open(None);
        let action = play(&mut connect, &format!("dn:400 {code}"));
        assert_eq!(show(&action), format!("refused: HTTP 400, no (code {code})"));
    }
}

#[test]
fn over_http_only_some_refusals_mean_legacy() {
    for answer in ["dn:400", "dn:404", "dn:405", "dn:400 -32600", "dn:406", "d?", "dn:200 -32000"] {
        check(Http, ALL, &[answer, "i:2025-11-25"], &[PROBE_UNBOUNDED, SHAKE, LEGACY]);
    }
    for status in [301, 401, 403, 407, 408, 429, 500, 502, 503] {
        let blocked = format!("blocked: HTTP {status}");
        check(Http, ALL, &[&format!("dn:{status}")], &[PROBE_UNBOUNDED, &blocked]);
        let late = [PROBE_UNBOUNDED, SHAKE, &blocked];
        check(Http, ALL, &["dn:404", &format!("in:{status}")], &late);
    }
    check(Http, ALL, &["d0"], &[PROBE_UNBOUNDED, "failed: TimedOut"]);
    let unreachable = "failed: Unreachable(\"dns\")";
    check(Http, ALL, &["net"], &[PROBE_UNBOUNDED, unreachable]);
    check(Http, ALL, &["exit"], &[PROBE_UNBOUNDED, "failed: Exited"]);
}

#[test]
fn the_oldest_http_servers_are_found_by_get() {
    let way = [PROBE_UNBOUNDED, SHAKE, "get", SHAKE, "done 2024-11-05"];
    for status in [400, 404, 405] {
        let (probe, shake) = (format!("dn:{status}"), format!("in:{status}"));
        check(Http, ALL, &[&probe, &shake, "endpoint", "i:2024-11-05"], &way);
    }
    let refused = "refused: HTTP 404";
    for failure in ["gn:404", "g?", "g0"] {
        check(Http, ALL, &["dn:404", "in:404", failure], &[PROBE_UNBOUNDED, SHAKE, "get", refused]);
    }
    let blocked = [PROBE_UNBOUNDED, SHAKE, "get", "blocked: HTTP 401"];
    check(Http, ALL, &["dn:404", "in:404", "gn:401"], &blocked);
    // Whoever answers in JSON-RPC that there is no such method is not HTTP+SSE.
    check(Http, ALL, &["dn:404 -32601", "in:404"], &[PROBE_UNBOUNDED, SHAKE, refused]);
    let unknown = "refused: HTTP 404, no (code -32601)";
    check(Http, ALL, &["dn:404", "in:404 -32601"], &[PROBE_UNBOUNDED, SHAKE, unknown]);
    let only_sse = [SHAKE, "get", SHAKE, LEGACY];
    check(Http, Revisions::LEGACY, &["in:405", "endpoint", "i:2025-11-25"], &only_sse);
}

#[test]
fn a_handshake_must_end_in_what_we_enable() {
    let legacy = Revisions::LEGACY;
    check(Stream, legacy, &["i:2024-11-05"], &[SHAKE, "done 2024-11-05"]);
    check(Stream, legacy, &["i:2026-07-28"], &[SHAKE, "disjoint 2026-07-28"]);
    check(Stream, ALL, &["d0", "i:2026-07-28"], &[PROBE, SHAKE, "disjoint 2026-07-28"]);
    let pinned = Preference::Pin(Revision::V2025_06_18).narrow(ALL);
    let asked = "initialize 2025-06-18";
    check(Stream, pinned, &["i:2025-06-18"], &[asked, "done 2025-06-18"]);
    check(Stream, pinned, &["i:2025-11-25"], &[asked, "disjoint 2025-11-25"]);
    check(Stream, legacy, &["i?"], &[SHAKE, "failed: Malformed"]);
    check(Stream, legacy, &["i0"], &[SHAKE, "failed: TimedOut"]);
    check(Stream, legacy, &["exit"], &[SHAKE, "failed: Exited"]);
    check(Stream, Revisions::NONE, &[], &["failed: NothingEnabled"]);
}

#[test]
fn a_refused_handshake_may_list_what_would_do() {
    let legacy = Revisions::LEGACY;
    let way = [SHAKE, "initialize 2024-11-05", "done 2024-11-05"];
    check(Stream, legacy, &["in:-32602 2024-11-05", "i:2024-11-05"], &way);
    check(Stream, legacy, &["in:-32022 2026-07-28"], &[SHAKE, "disjoint 2026-07-28"]);
    let again = "refused: no (code -32602)";
    check(Stream, legacy, &["in:-32602 2025-11-25"], &[SHAKE, again]);
}

#[test]
fn a_slow_modern_server_is_asked_twice() {
    let way = [PROBE, SHAKE, PROBE, MODERN];
    check(Stream, ALL, &["d0", "in:-32022 2026-07-28", "d:2026-07-28"], &way);
    check(Stream, ALL, &["d0", "in:-32601", "d:2026-07-28"], &way);
    let end = [PROBE, SHAKE, PROBE, "refused: no (code -32601)"];
    check(Stream, ALL, &["d0", "in:-32601", "d0"], &end);
    check(Stream, ALL, &["dn:-32601", "in:-32601"], &[PROBE, SHAKE, end[3]]);
}

#[test]
fn what_is_known_saves_the_question_and_is_looked_at_once_if_wrong() {
    let modern = Some(Revision::V2026_07_28);
    let legacy = Some(Revision::V2025_06_18);
    check_known(Http, ALL, modern, &[], &[MODERN]);
    check_known(Http, ALL, modern, &["but", "dn:404"], &[MODERN, PROBE_UNBOUNDED, SHAKE]);
    let twice = [MODERN, PROBE_UNBOUNDED, MODERN, "failed: Contradicted"];
    check_known(Http, ALL, modern, &["but", "d:2026-07-28", "but"], &twice);
    check_known(Stream, ALL, legacy, &["i:2025-11-25"], &[SHAKE, LEGACY]);
    for refusal in ["in:404 -32601", "in:400 -32022 2026-07-28", "in:400"] {
        let way = [SHAKE, PROBE_UNBOUNDED, MODERN];
        check_known(Http, ALL, legacy, &[refusal, "d:2026-07-28"], &way);
    }
    // The oldest transport was fallen back to last time, and is again.
    let way = [SHAKE, PROBE_UNBOUNDED, "get", SHAKE, "done 2024-11-05"];
    check_known(Http, ALL, legacy, &["in:404", "dn:404", "endpoint", "i:2024-11-05"], &way);
    let way = [SHAKE, PROBE_UNBOUNDED, "refused: HTTP 404"];
    check_known(Http, ALL, legacy, &["in:404", "dn:404 -32601"], &way);
    // What is not enabled is not known.
    check_known(Http, Revisions::LEGACY, modern, &[], &[SHAKE]);
    check_known(Http, Revisions::MODERN, legacy, &[], &[PROBE_UNBOUNDED]);
}

#[test]
fn modern_only_never_shakes_hands() {
    let modern = Preference::Modern.narrow(ALL);
    let refused = "refused: no (code -32601)";
    check(Stream, modern, &["dn:-32601"], &[PROBE_UNBOUNDED, refused]);
    check(Stream, modern, &["d0"], &[PROBE_UNBOUNDED, "failed: TimedOut"]);
    check(Stream, modern, &["d?"], &[PROBE_UNBOUNDED, "failed: Malformed"]);
    check(Stream, modern, &["exit"], &[PROBE_UNBOUNDED, "failed: Exited"]);
    check(Stream, modern, &["d:2025-11-25"], &[PROBE_UNBOUNDED, "disjoint 2025-11-25"]);
    assert_eq!(Preference::Legacy.narrow(ALL), Revisions::LEGACY);
    assert_eq!(Preference::Auto.narrow(ALL), ALL);
}
