//! What a page may ask of the program. `docs/inspector.md` lists the events that answer.

use std::collections::BTreeMap;

use bowline_proto::json::Json;
use serde::{Deserialize, Serialize};

/// A request of the page: an object with one member, as in `{"cancel":{"call":"1"}}`. What asks a
/// server for one answer returns it; what reports as it goes does so in the feed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Action {
    /// Which servers are configured on this machine, and which taps run.
    Targets {},
    /// Read a client's configuration that was pasted: which servers does it name?
    ReadConfig {
        /// JSON, comments and trailing commas allowed.
        text: String,
    },
    /// Connect to a server.
    Connect {
        /// Which one.
        place: Place,
        /// The protocol to speak: `auto`, `legacy`, `modern` or a revision.
        #[serde(default)]
        revision: Option<String>,
    },
    /// Open another connection to the server of a connection, in the same way.
    ConnectAgain {
        /// The number of the connection, open or failed.
        connection: u64,
    },
    /// Close a connection and forget it.
    Close {
        /// Its number.
        connection: u64,
    },
    /// Walk to the server of a connection step by step.
    Doctor {
        /// The number of the connection, open or failed.
        connection: u64,
    },
    /// Fetch a list again.
    Refresh {
        /// The number of the connection.
        connection: u64,
        /// `tools`, `resources`, `templates`, `prompts`, `skills` or `tasks`.
        list: String,
    },
    /// Call a method.
    Call {
        /// The number of the connection.
        connection: u64,
        /// A name for the call, chosen by the page.
        call: String,
        /// The method.
        method: String,
        /// Its parameters, sent as they are.
        #[serde(default)]
        params: Option<Json>,
    },
    /// Give up on a call.
    Cancel {
        /// Its name.
        call: String,
    },
    /// Suggest values for an argument.
    Complete {
        /// The number of the connection.
        connection: u64,
        /// The parameters of `completion/complete`.
        params: Json,
    },
    /// Ask for log messages of at least this level.
    LogLevel {
        /// The number of the connection.
        connection: u64,
        /// The level; none to hear nothing.
        level: Option<String>,
    },
    /// Offer these folders to the server.
    Roots {
        /// The number of the connection.
        connection: u64,
        /// URIs.
        uris: Vec<String>,
    },
    /// Answer a question of a server.
    Answer {
        /// The number of the question.
        question: u64,
        /// The result of the server's request.
        #[serde(default)]
        result: Option<Json>,
        /// Or why there is none.
        #[serde(default)]
        error: Option<String>,
    },
    /// Answer questions of servers by rules from now on.
    Rules {
        /// The rules, as `docs/answers.md` describes them; empty for none.
        text: String,
    },
    /// Run `bowline check` on the server of a connection.
    Check {
        /// The number of the connection.
        connection: u64,
    },
    /// Call a method many times.
    Load(Load),
    /// Show an app.
    App {
        /// The number of the connection.
        connection: u64,
        /// The app's resource.
        uri: String,
    },
    /// Watch a tap that runs on this machine.
    WatchTap {
        /// Its socket, as `targets` lists it.
        path: String,
    },
    /// Log in to the server of a connection; `cancel` with the call `login/NUMBER` ends it.
    Login(Login),
    /// Delete the tokens for the server of a connection.
    Logout {
        /// The number of the connection.
        connection: u64,
    },
    /// Read a skill, or a file of it, and verify what was read.
    Skill {
        /// The number of the connection.
        connection: u64,
        /// The skill, as it was listed.
        entry: Json,
        /// The file, by its URI or path; its instructions unless given.
        #[serde(default)]
        file: Option<String>,
    },
    /// Wait for the end of a task, and answer its questions; reported as a call.
    Resume {
        /// The number of the connection.
        connection: u64,
        /// A name for the call, chosen by the page.
        call: String,
        /// The id of the task.
        task: String,
    },
    /// Keep a session file, as a connection that only has messages.
    OpenSession {
        /// What to call it.
        name: String,
        /// Its text.
        text: String,
    },
    /// The text of a session that was opened.
    ReadSession {
        /// The number of its connection.
        connection: u64,
    },
    /// Compare what two servers offer, and how they answered equal requests.
    Compare {
        /// One.
        before: Side,
        /// The other.
        after: Side,
    },
    /// Write a session for other programs.
    Export {
        /// Its text.
        text: String,
        /// What to write.
        to: Form,
    },
    /// Send what a recorded client sent to the server of a connection, in a connection of its own;
    /// reported as `replay`.
    Replay {
        /// The number of the connection.
        connection: u64,
        /// The text of the session.
        text: String,
    },
    /// Serve the answers of a session on a port of this machine, and connect to it.
    Serve {
        /// What to call it.
        name: String,
        /// Its text.
        text: String,
    },
}

/// One side of a comparison.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Side {
    /// A session, by its text.
    Session {
        /// The text.
        text: String,
    },
    /// A server, as it is now.
    Server {
        /// The number of its connection.
        connection: u64,
    },
}

/// What a session can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// An HTTP archive.
    Har,
    /// OpenTelemetry spans.
    Otlp,
    /// One page.
    Html,
}

/// A load test.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Load {
    /// The number of the connection.
    pub connection: u64,
    /// A name for the test, chosen by the page; `cancel` ends it.
    pub call: String,
    /// The method.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Option<Json>,
    /// How many calls there are in all.
    pub calls: u32,
    /// How many run at once.
    pub at_once: u32,
    /// How many begin in a second, at most.
    #[serde(default)]
    pub per_second: Option<f64>,
}

/// A login.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Login {
    /// The number of the connection.
    pub connection: u64,
    /// Scopes to request, besides those that the server asks for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The id of a client that was registered by hand; without one, the client registers itself.
    #[serde(default)]
    pub client_id: Option<String>,
    /// The secret of that client, if it has one.
    #[serde(default)]
    pub client_secret: Option<String>,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Place {
    /// At a URL.
    Url {
        /// The URL.
        url: String,
        /// Headers to send.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// A program that speaks on its standard streams.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
        /// Variables of its environment.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// The folder it runs in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// A name in a config file.
    Name {
        /// The name, as `bowline` takes it.
        name: String,
        /// Whether the person has seen what an untrusted file wants to run, and agrees.
        #[serde(default)]
        trust: bool,
    },
    /// What the command line named.
    Given {
        /// Always true.
        given: bool,
    },
}

/// Why a request was not carried out.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// What was wrong with what.
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Problem {
    /// A problem without a remedy.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_exactly_or_rejected() {
        let read = |text: &str| serde_json::from_str::<Action>(text);
        let call = r#"{"call":{"connection":1,"call":"c","method":"m","params":{"a":1.0}}}"#;
        let Ok(Action::Call { params, .. }) = read(call) else { panic!("{:?}", read(call)) };
        assert_eq!(params.unwrap().as_str(), r#"{"a":1.0}"#, "numbers stay as they were typed");
        let place = |text: &str| {
            let text = format!(r#"{{"connect":{{"place":{text}}}}}"#);
            match read(&text) {
                Ok(Action::Connect { place, .. }) => Ok(place),
                other => Err(format!("{other:?}")),
            }
        };
        assert!(matches!(place(r#"{"url":"http://x/"}"#), Ok(Place::Url { .. })));
        assert!(matches!(place(r#"{"command":"x","args":["y"]}"#), Ok(Place::Command { .. })));
        assert!(matches!(place(r#"{"name":"x"}"#), Ok(Place::Name { trust: false, .. })));
        assert!(matches!(place(r#"{"given":true}"#), Ok(Place::Given { .. })));
        assert!(place(r#"{"url":"http://x/","command":"rm"}"#).is_err(), "one or the other");
        assert!(read(r#"{"explode":{}}"#).is_err());
        assert!(read(r#"{"targets":{"more":1}}"#).is_err());
    }
}
