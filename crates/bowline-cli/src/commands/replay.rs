//! `bowline replay`: says to a server what a recorded client said, and compares its answers.

mod peer;

use std::path::PathBuf;
use std::time::Duration;

use bowline::proto::model::ClientCapabilities;
use bowline::{Client, Proxy, Revision, Revisions};
use bowline_check::frames::Process;
use bowline_gateway::diff::{Difference, common, key, outcome, values};
use bowline_gateway::recording::{Exchange, Recording};
use bowline_gateway::session_file::Way;
use clap::Args;
use serde_json::{Map, Value};
use tokio::time::Instant;

use self::peer::Peer;
use super::diff::tell;
use super::export::read;
use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};
use crate::target::{Resolved, TargetOptions, tap};

/// Replay the messages of a recorded client to a server, and compare the answers
///
/// Requests are sent one after the other, each when the one before is answered. The server's
/// questions get the recorded answers. Ids of tasks and states of questions are replaced by those
/// that the server gives now. With --revision, the session uses another revision than the
/// recording; what only one of them can express is not compared. Exits with 11 if an answer
/// differs.
#[derive(Args)]
pub(crate) struct Replay {
    /// The session file, and the server; omit the server if a command follows `--`
    #[arg(value_name = "FILE TARGET", required = true)]
    words: Vec<String>,

    /// Wait as long between two messages as the recorded client did
    #[arg(long)]
    timing: bool,

    /// Ignore differences at paths that contain this; may be repeated
    #[arg(long, value_name = "PATH")]
    ignore: Vec<String>,

    #[command(flatten)]
    options: TargetOptions,
}

/// How long to wait for an answer, unless `--timeout` says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);
/// What waits between the recorded client and the translation.
const BUFFER: usize = 64 << 10;

impl Replay {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(&self.options.output.clone().or(root));
        let [file, words @ ..] = self.words.as_slice() else {
            return Err(Failure::usage("which session file?"));
        };
        let recording = read(&PathBuf::from(file), &screen)?;
        let (resolved, rest) = self.options.resolve_words(words)?;
        if let [word, ..] = rest {
            return Err(Failure::usage(format!("unexpected: {word}")));
        }
        let patience = self.options.timeout.unwrap_or(PATIENCE);
        let (peer, older) = match self.translation(&recording) {
            None => (Peer::open(&resolved, &recording, patience)?, None),
            Some(recorded) => {
                let (process, spoken) = self.translated(&resolved, &recording).await?;
                screen.note(&format!("recorded in {recorded}, replayed in {spoken}"));
                (Peer::over(process, &recording, patience), Some(recorded.min(spoken)))
            }
        };
        let found = Player::new(peer, older).play(&recording, self.timing, &self.ignore).await?;
        tell(&screen, &found)
    }

    /// The recorded revision, if --revision asks for another one.
    fn translation(&self, recording: &Recording) -> Option<Revision> {
        let recorded = recording.revision()?;
        let wanted = self.options.revision?.narrow(Revisions::ALL);
        (!wanted.contains(recorded)).then_some(recorded)
    }

    /// A server that speaks the recorded revision, in front of the one that is to speak another;
    /// and which one that is.
    async fn translated(
        &self,
        resolved: &Resolved,
        recording: &Recording,
    ) -> Result<(Process, Revision), Failure> {
        let client = Client::builder("bowline", env!("CARGO_PKG_VERSION"));
        let client = client.preference(self.options.revision.unwrap_or_default()).without_cache();
        let mut proxy = Proxy::builder(client).one_caller();
        if let Some(declared) = declared(recording) {
            proxy = proxy.declare(declared);
        }
        let proxy = proxy.connect(resolved.target()?).await?;
        let spoken = proxy.client().peer().map_or(Revision::LATEST, |peer| peer.revision);
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        tokio::spawn(proxy.into_server().serve(theirs));
        let (output, input) = tokio::io::split(ours);
        Ok((Process::over(Box::new(output), Box::new(input), tap()), spoken))
    }
}

/// What a recorded legacy client said that it can be asked.
fn declared(recording: &Recording) -> Option<ClientCapabilities> {
    let exchanges = recording.exchanges();
    let opening = exchanges.iter().find(|it| it.way == Way::Sent && it.method() == "initialize")?;
    let declared = opening.request.pointer("/params/capabilities")?.clone();
    let mut declared: ClientCapabilities = serde_json::from_value(declared).ok()?;
    // Extensions and tasks are agreed on between neighbours.
    (declared.extensions, declared.experimental, declared.tasks) = (None, None, None);
    Some(declared)
}

/// Sends what a recorded client sent, as fast as it is answered; returns where answers differ.
pub(crate) async fn replay(
    resolved: &Resolved,
    recording: &Recording,
) -> Result<Vec<(String, Vec<Difference>)>, Failure> {
    Player::new(Peer::open(resolved, recording, PATIENCE)?, None).play(recording, false, &[]).await
}

struct Player {
    peer: Peer,
    /// The older of the recorded revision and the one that is spoken, if they differ.
    older: Option<Revision>,
    /// Recorded task ids and states, and those that replace them.
    renamed: Vec<(String, String)>,
    /// Names of questions, by the recorded state: those that were asked, and those that are now.
    questions: Vec<(String, Vec<(String, String)>)>,
}

impl Player {
    fn new(peer: Peer, older: Option<Revision>) -> Self {
        Self { peer, older, renamed: Vec::new(), questions: Vec::new() }
    }

    /// Sends everything; returns where answers differ.
    async fn play(
        &mut self,
        recording: &Recording,
        is_timed: bool,
        ignored: &[String],
    ) -> Result<Vec<(String, Vec<Difference>)>, Failure> {
        let begun = Instant::now();
        let mut found = Vec::new();
        let mut exchanges = recording.exchanges().into_iter().filter(|it| it.way == Way::Sent);
        for line in recording.messages(Way::Sent) {
            let Some(message) = line.message.as_ref().map(bowline::Json::to_value) else {
                continue;
            };
            if is_timed && let Ok(at) = Duration::try_from_secs_f64(line.at) {
                tokio::time::sleep_until(begun + at).await;
            }
            match (message.get("method"), message.get("id")) {
                (Some(_), Some(_)) => {
                    let Some(exchange) = exchanges.next() else { continue };
                    let differences = self.repeat(&exchange, ignored).await?;
                    found.push((key(&exchange.request), differences));
                }
                (Some(_), None) => self.peer.tell(&message).await?,
                // Answers are sent when the server asks.
                _ => {}
            }
        }
        Ok(found)
    }

    async fn repeat(
        &mut self,
        exchange: &Exchange,
        ignored: &[String],
    ) -> Result<Vec<Difference>, Failure> {
        let request = self.renewed(&exchange.request);
        let Some((recorded, _)) = &exchange.answer else {
            // Nobody knows what to expect, nor whether anything comes.
            self.peer.begin(&request).await?;
            return Ok(Vec::new());
        };
        let answer = self.peer.ask(&request).await?;
        self.remember(recorded, &answer);
        let (mut before, mut after) = (outcome(recorded), outcome(&answer));
        if let Some(older) = self.older {
            (before, after) = (
                common(exchange.method(), &before, older),
                common(exchange.method(), &after, older),
            );
        }
        if self.is_same_question(&before, &after) {
            return Ok(Vec::new());
        }
        Ok(values(&before, &after, ignored))
    }

    /// The request with the names that the server gives now.
    fn renewed(&self, recorded: &Value) -> Value {
        let mut request = recorded.clone();
        let state = recorded.pointer("/params/requestState").and_then(Value::as_str);
        let names = self.questions.iter().find(|(asked, _)| Some(asked.as_str()) == state);
        if let Some((_, names)) = names
            && let Some(Value::Object(answers)) = request.pointer_mut("/params/inputResponses")
        {
            let old = std::mem::take(answers);
            *answers =
                old.into_iter().map(|(name, answer)| (new_name(names, name), answer)).collect();
        }
        rename(&mut request, &self.renamed);
        request
    }

    /// Remembers what the server calls its tasks, states and questions.
    fn remember(&mut self, recorded: &Value, answer: &Value) {
        for place in ["/result/requestState", "/result/taskId", "/result/task/taskId"] {
            if let (Some(Value::String(old)), Some(Value::String(new))) =
                (recorded.pointer(place), answer.pointer(place))
                && old != new
            {
                self.renamed.push((old.clone(), new.clone()));
            }
        }
        let asked = |answer: &'_ Value| -> Vec<String> {
            let asked = answer.pointer("/result/inputRequests").and_then(Value::as_object);
            asked.map(Map::keys).into_iter().flatten().cloned().collect()
        };
        if let Some(Value::String(state)) = recorded.pointer("/result/requestState") {
            let names = asked(recorded).into_iter().zip(asked(answer)).collect();
            self.questions.push((state.clone(), names));
        }
    }

    /// Whether both answers ask the same under different names, which a translation may choose.
    fn is_same_question(&self, before: &Value, after: &Value) -> bool {
        let asked = |answer: &Value| -> Option<Vec<Value>> {
            let asked = answer.pointer("/result/inputRequests")?.as_object()?;
            Some(asked.values().cloned().collect())
        };
        let asked = asked(before).zip(asked(after));
        self.older.is_some() && asked.is_some_and(|(before, after)| before == after)
    }
}

/// The members that hold names which a server chooses.
const NAMES: [&str; 3] = ["taskId", "taskIds", "requestState"];

/// Replaces names that a server chose, and nothing else that happens to look like one.
fn rename(value: &mut Value, names: &[(String, String)]) {
    let replace = |value: &mut Value| {
        let new = names.iter().find(|(old, _)| value.as_str() == Some(old.as_str()));
        if let Some((_, new)) = new {
            *value = new.as_str().into();
        }
    };
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(_) if NAMES.contains(&name.as_str()) => replace(value),
                    Value::Array(all) if NAMES.contains(&name.as_str()) => {
                        all.iter_mut().for_each(replace);
                    }
                    _ => rename(value, names),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| rename(value, names)),
        _ => {}
    }
}

/// What a question is called now.
fn new_name(names: &[(String, String)], name: String) -> String {
    let found = names.iter().find(|(old, _)| *old == name);
    found.map_or(name, |(_, new)| new.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_names_of_the_server_are_replaced() {
        let names = [("1".to_owned(), "22".to_owned()), ("22".to_owned(), "3".to_owned())];
        let mut request = json!({ "id": 1, "params": {
            "taskId": "1", "requestState": "22", "taskIds": ["1", "11"], "cursor": "1",
            "_meta": { "related": { "taskId": "1" } }, "arguments": { "a": ["1", { "b": "22" }] },
        } });
        rename(&mut request, &names);
        assert_eq!(
            request,
            json!({ "id": 1, "params": {
            "taskId": "22", "requestState": "3", "taskIds": ["22", "11"], "cursor": "1",
            "_meta": { "related": { "taskId": "22" } }, "arguments": { "a": ["1", { "b": "22" }] },
        } })
        );
    }
}
