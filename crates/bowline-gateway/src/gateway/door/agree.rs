//! The user's agreement to what a rule marks with `confirm`.
//!
//! Each agreement is good for one run. A modern client carries the answer back to us in sealed
//! state, which nothing stops it from sending again; so the state has a number of its own, and each
//! number, with the state that the server behind us has added to it, runs once. The question has
//! the number in its key, so an answer that nobody was asked for finds no question.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use bowline::{AskError, Failure, Incoming};
use bowline_proto::members::RawMembers;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use tokio::time::Instant;

use crate::gateway::audit::hex;
use crate::gateway::merge::{Kind, Route};
use crate::gateway::upstream::lock;

/// Agreements that were used, until the state that carries them expires.
#[derive(Default)]
pub(in crate::gateway) struct Agreements(Mutex<Used>);

#[derive(Default)]
struct Used {
    /// What each caller has used, and when.
    callers: HashMap<String, HashMap<String, Instant>>,
    count: usize,
    swept: Option<Instant>,
}

/// Longer than sealed state is valid: `Limits::request_state_age`.
const KEPT: Duration = Duration::from_secs(1000);

/// How many are remembered. When there are more, no agreement is accepted of callers that have used
/// their share, and none at all when there are twice as many.
const MOST: usize = 100_000;

/// How often they are forgotten: that costs a look at each of them.
const SWEEP: Duration = Duration::from_secs(1);

impl Agreements {
    /// Uses what a text says. Returns whether it was not used before.
    pub(super) fn spend_digest(&self, caller: &str, text: &str) -> bool {
        self.spend(caller, &hex(digest(&SHA256, text.as_bytes()).as_ref()))
    }

    /// Uses an agreement of a caller. Returns whether it was not used before.
    fn spend(&self, caller: &str, number: &str) -> bool {
        let mut used = lock(&self.0);
        if used.count >= MOST {
            used.sweep();
        }
        let share = MOST / (used.callers.len() + 1);
        let own = used.callers.get(caller).map_or(0, HashMap::len);
        if used.count >= MOST && (own >= share || used.count >= 2 * MOST) {
            return false;
        }
        let own = used.callers.entry(caller.to_owned()).or_default();
        let is_new = own.insert(number.to_owned(), Instant::now()).is_none();
        used.count += usize::from(is_new);
        is_new
    }
}

impl Used {
    /// Forgets what has expired.
    fn sweep(&mut self) {
        if self.swept.is_some_and(|swept| swept.elapsed() < SWEEP) {
            return;
        }
        self.callers.retain(|_, own| {
            own.retain(|_, at| at.elapsed() < KEPT);
            !own.is_empty()
        });
        self.count = self.callers.values().map(HashMap::len).sum();
        self.swept = Some(Instant::now());
    }
}

/// The most characters of one argument that the user is shown, and the most arguments.
const SHOWN: usize = 300;
const ARGUMENTS: usize = 40;

/// Asks the user, unless they have agreed to this very run. The inner error is for the model.
pub(super) async fn agree(
    (agreements, caller): (&Agreements, &str),
    incoming: &Incoming,
    route: &Route,
    asked: &str,
) -> Result<Result<(), String>, Failure> {
    let context = &incoming.context;
    let number = context.once("bowline/agreement", std::future::ready(random())).await;
    let question = question(route, asked, incoming.arguments().unwrap_or("{}"));
    match context.ask(format!("agreement-{number}")).confirm(question).await {
        Ok(true) => {}
        Ok(false) => return Ok(Err("the user did not agree to this call".to_owned())),
        Err(AskError::Closed) => return Err(Failure::from(closed())),
        Err(error) => {
            let what = "this runs only when the user agrees, and this client cannot ask the user";
            return Ok(Err(format!("{what}: {error}")));
        }
    }
    let state = context.request_state::<Value>().map(|it| it.to_string()).unwrap_or_default();
    let state = hex(digest(&SHA256, state.as_bytes()).as_ref());
    if agreements.spend(caller, &format!("{number} {state}")) {
        return Ok(Ok(()));
    }
    let what = "the user's agreement to this call was used; call again without requestState";
    Ok(Err(what.to_owned()))
}

fn closed() -> bowline::ErrorObject {
    bowline::ErrorObject::internal("the client disconnected before its user answered")
}

fn random() -> String {
    let mut bytes = [0; 16];
    // Without randomness the process cannot serve TLS or seal state either.
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    hex(&bytes)
}

/// What the user is asked. Nothing is left out without a mark.
fn question(route: &Route, asked: &str, arguments: &str) -> String {
    let (server, name) = (&route.server, shown(&route.name));
    let mut text = match route.kind {
        Kind::Tool => format!("Run {name} of {server}?"),
        Kind::Prompt => format!("Use the prompt {name} of {server}?"),
        Kind::Resource | Kind::Template => return format!("Read {} of {server}?", shown(asked)),
    };
    let Ok(members) = serde_json::from_str::<RawMembers<'_>>(arguments) else {
        return format!("{text}\n{}", shown(arguments));
    };
    for (at, (name, value)) in members.iter().enumerate() {
        if at == ARGUMENTS {
            text += &format!("\n[{} more arguments are not shown]", members.iter().count() - at);
            break;
        }
        text += &format!("\n{}: {}", shown(name), shown(value.get()));
    }
    text
}

/// A text as it is, on one line: what would be invisible or move other text is escaped.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(SHOWN) {
        match letter {
            '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => shown.extend(letter.escape_unicode()),
            letter if letter.is_control() => shown.extend(letter.escape_unicode()),
            letter => shown.push(letter),
        }
    }
    match text.chars().count().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{shown} [{more} more characters are not shown]"),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(arguments: &str) -> String {
        let route = Route { server: "s".into(), kind: Kind::Tool, name: "run".to_owned() };
        question(&route, "x__run", arguments)
    }

    #[test]
    fn a_question_hides_nothing() {
        let long = format!("{{\"pad\":\"{}\",\"delete\":\"/\"}}", "x".repeat(5000));
        let question = asked(&long);
        assert!(question.contains("\ndelete: \"/\""), "{question}");
        assert!(question.contains("[4702 more characters are not shown]"), "{question}");
        let many: Vec<String> = (0..50).map(|it| format!("\"a{it}\":1")).collect();
        assert!(
            asked(&format!("{{{}}}", many.join(",")))
                .ends_with("[10 more arguments are not shown]")
        );
        let bidi = asked("{\"path\":\"a\u{202e}b\"}");
        assert!(bidi.contains("a\\u{202e}b"), "{bidi}");
    }

    #[test]
    fn an_agreement_is_spent_once() {
        let agreements = Agreements::default();
        assert!(agreements.spend("ann", "a"));
        assert!(!agreements.spend("ann", "a"));
        assert!(agreements.spend("ann", "b"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_uses_many_keeps_no_other_from_agreeing() {
        let agreements = Agreements::default();
        for number in 0..MOST {
            assert!(agreements.spend("ann", &number.to_string()));
        }
        assert!(!agreements.spend("ann", "more"));
        assert!(agreements.spend("bob", "one"));
        assert!(!agreements.spend("bob", "one"));
        // Room is made by time.
        tokio::time::advance(KEPT).await;
        assert!(agreements.spend("ann", "more"));
    }
}
