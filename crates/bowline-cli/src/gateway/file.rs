//! The gateway's own file, as it is written.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use bowline::schemars::{self, JsonSchema};
use bowline_gateway::gateway::Rule;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The configuration of `bowline gateway`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) gateway: Section,
    pub(super) servers: BTreeMap<String, Server>,
    pub(super) tools: BTreeMap<String, Command>,
    pub(super) secrets: BTreeMap<String, Secret>,
    pub(super) access: Vec<Access>,
    pub(super) telemetry: Telemetry,
}

/// How the gateway is served.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
    /// The name that clients see.
    pub(super) name: Option<String>,
    /// The address to serve HTTP at; standard input and output without it.
    #[schemars(with = "Option<String>")]
    pub(super) listen: Option<SocketAddr>,
    /// Host names to accept besides loopback.
    pub(super) hosts: Vec<String>,
    /// Whether names begin with that of their server: always (the default) or never.
    pub(super) prefix: Option<Prefix>,
    /// Clients' own files, or other files of this kind.
    pub(super) import: Vec<PathBuf>,
    /// How long the lists of a server that is down are shown: 10m.
    pub(super) grace: Option<String>,
    /// How long a server may take to start: 60s.
    pub(super) start: Option<String>,
    /// The admin socket.
    pub(super) socket: Option<PathBuf>,
    /// Which tokens callers need.
    pub(super) auth: Option<Auth>,
}

/// Which tokens callers need.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Auth {
    /// The authorization server whose tokens are accepted: JWTs, unless there is introspection.
    pub(super) issuer: String,
    /// The URL of the gateway's endpoint, which tokens must be meant for.
    pub(super) resource: String,
    /// The claims that name groups: groups, roles.
    #[serde(default)]
    pub(super) groups: Vec<String>,
    /// The scopes that every token needs.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// Whether tokens must or may be bound to a key of the caller.
    pub(super) dpop: Option<Dpop>,
    /// Asks the authorization server about each token.
    pub(super) introspection: Option<Introspection>,
}

/// Proof of possession.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dpop {
    Offer,
    Require,
}

/// Where the authorization server answers questions about tokens, and our client there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Introspection {
    pub(super) endpoint: String,
    pub(super) client_id: String,
    pub(super) client_secret: String,
}

/// What the gateway shows to a server at a URL: a token of its own, by client credentials.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Credentials {
    pub(super) client_id: String,
    pub(super) client_secret: String,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// The authorization server, if the client is registered at one only.
    pub(super) issuer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Prefix {
    Always,
    Never,
}

/// A server. The first members are those of `mcpServers`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Server {
    pub(super) command: Option<Value>,
    pub(super) args: Option<Value>,
    pub(super) env: Option<Value>,
    pub(super) cwd: Option<Value>,
    pub(super) url: Option<Value>,
    pub(super) headers: Option<Value>,
    pub(super) r#type: Option<Value>,
    pub(super) disabled: Option<Value>,
    /// An OpenAPI 3 document in JSON, whose operations become tools: a path, or a URL.
    pub(super) openapi: Option<String>,
    /// Where that API is, if not at the first server that the document names.
    pub(super) base: Option<String>,
    /// The most bytes of an answer of that API that are passed on at a time: 262144.
    pub(super) output: Option<usize>,
    /// A short prefix in place of the key.
    pub(super) alias: Option<String>,
    /// auto, legacy, modern, or a revision.
    pub(super) era: Option<String>,
    /// More variables of the gateway's environment for a command: names, or beginnings and a *.
    pub(super) inherit: Vec<String>,
    /// Whether a login that `bowline login` has stored is used, for all callers. Only where there
    /// is one caller, unless this says so.
    pub(super) login: Option<bool>,
    /// Whether headers and tokens may be sent to an http URL on another machine, unencrypted.
    pub(super) insecure_http: Option<bool>,
    /// A token of the gateway's own for a URL.
    pub(super) auth: Option<Credentials>,
    pub(super) tools: Tools,
    pub(super) limits: Limits,
}

impl Server {
    /// The members that clients' files have, too.
    pub(super) fn entry(&self) -> Map<String, Value> {
        let members = [
            ("command", &self.command),
            ("args", &self.args),
            ("env", &self.env),
            ("cwd", &self.cwd),
            ("url", &self.url),
            ("headers", &self.headers),
            ("type", &self.r#type),
            ("disabled", &self.disabled),
        ];
        let members = members.into_iter().filter_map(|(name, it)| Some((name, it.clone()?)));
        members.map(|(name, it)| (name.to_owned(), it)).collect()
    }
}

/// Which tools of a server there are. Patterns are about the server's own names.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) rename: BTreeMap<String, String>,
}

/// How much each caller may use a server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    /// Such as 60/min.
    pub(super) calls: Option<String>,
    pub(super) running: Option<usize>,
    /// Such as 60s; 30s for OpenAPI without it.
    pub(super) timeout: Option<String>,
}

/// How much each caller may use a command.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CommandLimits {
    /// Such as 60/min.
    pub(super) calls: Option<String>,
    pub(super) running: Option<usize>,
}

/// A command that is a tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    /// The program and its arguments; {name} is replaced by an argument of the call.
    pub(super) run: Vec<String>,
    pub(super) description: Option<String>,
    /// The JSON Schema of each argument, or its type.
    #[serde(default)]
    pub(super) arguments: BTreeMap<String, Value>,
    /// The arguments that may be left out.
    #[serde(default)]
    pub(super) optional: Vec<String>,
    pub(super) cwd: Option<PathBuf>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Such as 30s.
    pub(super) timeout: Option<String>,
    /// The most bytes of output.
    pub(super) output: Option<usize>,
    /// Whether it changes nothing.
    #[serde(default)]
    pub(super) read_only: bool,
    #[serde(default)]
    pub(super) limits: CommandLimits,
}

/// Where a secret is. It is read at the start and at every reload.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(super) enum Secret {
    /// A file, without its last line end.
    File(PathBuf),
    /// A variable of the environment.
    Env(String),
    /// What a command prints, without its last line end.
    Command(Vec<String>),
}

/// A rule. All rules about a caller count; deny wins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Access {
    /// What the audit calls it.
    pub(super) name: Option<String>,
    pub(super) who: Who,
    /// server/name
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) confirm: Vec<String>,
}

impl Access {
    /// The rule, whose place among the others is its name if it has none.
    pub(super) fn rule(self, at: usize) -> Rule {
        Rule {
            name: self.name.unwrap_or_else(|| format!("access[{at}]")),
            subjects: self.who.subject.into(),
            groups: self.who.group.into(),
            clients: self.who.client.into(),
            allow: self.allow,
            deny: self.deny,
            confirm: self.confirm,
        }
    }
}

/// Whom a rule is about. What is not given is anyone.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Who {
    pub(super) subject: Texts,
    pub(super) group: Texts,
    pub(super) client: Texts,
}

/// One text, or several.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Default for Texts {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl From<Texts> for Vec<String> {
    fn from(texts: Texts) -> Self {
        match texts {
            Texts::One(one) => vec![one],
            Texts::Many(many) => many,
        }
    }
}

/// What is recorded and measured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Telemetry {
    /// The audit log.
    pub(super) audit: Option<PathBuf>,
    /// The address to serve metrics for Prometheus at.
    #[schemars(with = "Option<String>")]
    pub(super) metrics: Option<SocketAddr>,
    /// The OTLP endpoint that spans and metrics are sent to, such as `http://127.0.0.1:4318`.
    pub(super) otlp: Option<String>,
    /// Headers for it, such as an API key: secrets as ${NAME}.
    pub(super) otlp_headers: BTreeMap<String, String>,
}
