//! Both halves of a conversation, joined in memory, in virtual time.
//!
//! Real frames cross a [`link`] that delays, reorders and loses them as a seed says. Every pair of
//! revision sets meets over both transports, in all weathers. What must hold is in `check`.

mod client;
mod link;
mod pair;
mod random;
mod server;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use self::client::{End, TIMEOUT};
use self::link::Weather;
use self::pair::{Case, Pair};
use self::server::Habit;
use super::{Calls, ConnectError, Inbound, Lifecycle, Preference, Replay, Subscription, Transport};
use crate::revision::{Era, Offer, Revision, Revisions};

/// The instant at which virtual time begins.
pub(super) fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "an instant can be had in no other way; only distances from it matter"
    )]
    *BASE.get_or_init(Instant::now)
}

/// What holds whatever the weather.
fn check(case: Case) -> Pair {
    let pair = Pair::run(case);
    let outcome = pair.client.outcome.as_ref();
    let outcome = outcome.unwrap_or_else(|| panic!("never connected, never failed: {case:?}"));
    assert!(pair.client.calls.is_empty(), "a waiter is left: {case:?}");
    assert!(pair.server.is_idle(), "work is left: {case:?}");
    assert!(pair.server.has_answered_or_cancelled_each_once(), "{case:?}");
    let ends = pair.client.ends.iter().flatten();
    match outcome {
        Ok(revision) => {
            assert_eq!(ends.count(), pair.client.ends.len(), "a call never ended: {case:?}");
            assert!(case.ours.contains(*revision), "{case:?}");
            assert!(case.offer.enabled().contains(*revision), "{case:?}");
            if !revision.is_modern() {
                assert_eq!(pair.server.lifecycle.revision(), Some(*revision), "{case:?}");
            }
        }
        Err(_) => assert_eq!(ends.count(), 0, "{case:?}"),
    }
    pair
}

/// What a pair must agree on when nothing is lost.
fn expected(case: &Case) -> Option<Revision> {
    let theirs = case.offer.enabled();
    let is_honest = case.habit == Habit::Honest;
    if let Some(modern) = case.ours.common(theirs).newest(Era::Modern)
        && is_honest
    {
        return Some(modern);
    }
    // A server without the modern era lists what it has; one that misbehaves does not.
    let sees_list = is_honest && !case.ours.of_era(Era::Modern).is_empty();
    let pool = if sees_list { case.ours.common(theirs) } else { case.ours };
    let asked = pool.newest(Era::Legacy)?;
    let answered = case.offer.answer_initialize(asked.as_str()).ok()?;
    Some(answered).filter(|answered| case.ours.contains(*answered))
}

fn calm(transport: Transport, ours: Revisions, offer: Revisions, habit: Habit) -> Case {
    Case {
        transport,
        ours,
        offer: Offer::new(offer),
        habit,
        known: None,
        weather: Weather::CALM,
        seed: 1,
    }
}

/// Every set of revisions that is not empty.
fn every_set() -> impl Iterator<Item = Revisions> {
    (1_u32..1 << Revision::ALL.len()).map(|bits| {
        let members = Revision::ALL.into_iter().enumerate();
        let chosen = members.filter(|(index, _)| bits & (1 << index) != 0);
        chosen.map(|(_, revision)| revision).collect()
    })
}

const TRANSPORTS: [Transport; 2] = [Transport::Stream, Transport::Http];

const HABITS: [Habit; 8] = [
    Habit::Honest,
    Habit::Code(-32601),
    Habit::Code(-32602),
    Habit::Code(-32600),
    Habit::Silent,
    Habit::Garbage,
    Habit::Nonsense,
    Habit::Dies,
];

#[test]
fn every_pair_of_revision_sets_agrees_or_knows_why_not() {
    for transport in TRANSPORTS {
        for ours in every_set() {
            for theirs in every_set() {
                let case = calm(transport, ours, theirs, Habit::Honest);
                let pair = check(case);
                match (pair.client.outcome.unwrap(), expected(&case)) {
                    (Ok(found), Some(expected)) => assert_eq!(found, expected, "{case:?}"),
                    (Err(error), None) => {
                        let text = error.to_string();
                        let names_theirs = theirs.iter().any(|one| text.contains(one.as_str()));
                        assert!(names_theirs, "{text}: {case:?}");
                    }
                    (found, expected) => panic!("{found:?}, not {expected:?}: {case:?}"),
                }
            }
        }
    }
}

#[test]
fn legacy_servers_of_all_habits_get_their_handshake() {
    for ours in every_set() {
        for theirs in every_set().filter(|set| set.of_era(Era::Modern).is_empty()) {
            for habit in HABITS {
                let case = calm(Transport::Stream, ours, theirs, habit);
                let pair = check(case);
                assert_eq!(pair.client.outcome.unwrap().ok(), expected(&case), "{case:?}");
            }
            for habit in [Habit::Code(-32600), Habit::Code(-32000), Habit::Nonsense, Habit::Garbage]
            {
                let case = calm(Transport::Http, ours, theirs, habit);
                let pair = check(case);
                assert_eq!(pair.client.outcome.unwrap().ok(), expected(&case), "{case:?}");
            }
        }
    }
}

#[test]
fn silence_over_http_proves_nothing() {
    let case = calm(Transport::Http, Revisions::ALL, Revisions::LEGACY, Habit::Silent);
    let pair = check(case);
    assert_eq!(pair.client.outcome, Some(Err(ConnectError::TimedOut)));
    assert!(!pair.server.is_shaken());
}

#[test]
fn preferences_narrow_what_is_agreed_on() {
    let check = |preference: Preference, theirs: Revisions, expected: Option<&str>| {
        let ours = preference.narrow(Revisions::ALL);
        let pair = check(calm(Transport::Stream, ours, theirs, Habit::Honest));
        let found = pair.client.outcome.unwrap().ok();
        assert_eq!(found.map(Revision::as_str), expected, "{preference:?} and {theirs}");
    };
    let pin = Preference::Pin(Revision::V2025_03_26);
    check(Preference::Auto, Revisions::ALL, Some("2026-07-28"));
    check(Preference::Legacy, Revisions::ALL, Some("2025-11-25"));
    check(Preference::Modern, Revisions::ALL, Some("2026-07-28"));
    check(pin, Revisions::ALL, Some("2025-03-26"));
    check(Preference::Auto, Revisions::LEGACY, Some("2025-11-25"));
    check(Preference::Modern, Revisions::LEGACY, None);
    check(Preference::Legacy, Revisions::MODERN, None);
    check(pin, Revisions::MODERN, None);
}

#[test]
fn what_was_known_and_is_wrong_is_found_out() {
    let legacy = Some(Revision::V2025_11_25);
    for transport in TRANSPORTS {
        let case = calm(transport, Revisions::ALL, Revisions::MODERN, Habit::Honest);
        let pair = check(Case { known: legacy, ..case });
        assert_eq!(pair.client.outcome, Some(Ok(Revision::LATEST)), "{transport:?}");
        let case = calm(transport, Revisions::ALL, Revisions::ALL, Habit::Honest);
        let pair = check(Case { known: legacy, ..case });
        assert_eq!(pair.client.outcome, Some(Ok(Revision::LATEST_LEGACY)), "{transport:?}");
    }
}

/// A client of everything and three kinds of server, over both transports, once for each seed.
fn cases(weather: Weather, seeds: u64) -> impl Iterator<Item = Case> {
    let offers = [Revisions::ALL, Revisions::LEGACY, Revisions::MODERN];
    (0..seeds).flat_map(move |seed| {
        TRANSPORTS.into_iter().flat_map(move |transport| {
            offers.into_iter().map(move |offer| Case {
                weather,
                seed,
                ..calm(transport, Revisions::ALL, offer, Habit::Honest)
            })
        })
    })
}

#[test]
fn delay_and_reordering_change_no_agreement_and_lose_no_call() {
    for case in cases(Weather::WINDY, 300) {
        let pair = check(case);
        assert_eq!(pair.client.outcome.unwrap().ok(), expected(&case), "{case:?}");
        for (index, (end, _)) in pair.client.ends.iter().flatten().enumerate() {
            let may_be = if index % 3 == 0 { End::Abandoned } else { End::Answered };
            assert!(*end == End::Answered || *end == may_be, "{index} {end:?}: {case:?}");
        }
    }
}

#[test]
fn in_a_storm_every_call_ends_by_its_deadline() {
    let mut outcomes = [0_usize; 4];
    for case in cases(Weather::STORMY, 400) {
        let pair = check(case);
        for (end, when) in pair.client.ends.into_iter().flatten() {
            // Connecting takes at most three questions, each with a bound of its own.
            assert!(when <= base() + 4 * TIMEOUT + Duration::from_secs(1), "{case:?}");
            outcomes[end as usize] += 1;
        }
    }
    let [answered, timed_out, abandoned, closed] = outcomes;
    assert!(answered > 1000 && timed_out > 1000 && abandoned > 500, "{outcomes:?}");
    assert_eq!(closed, 0);
}

#[test]
fn an_idle_session_is_small() {
    let parts = size_of::<Lifecycle>()
        + size_of::<Calls<Box<()>>>()
        + size_of::<Inbound<Box<()>>>()
        + size_of::<Subscription>()
        + size_of::<Replay<Box<[u8]>>>();
    assert!(parts <= 600, "{parts} bytes");
}
