//! What a gateway serves, once its configuration has been read.

use std::sync::Arc;
use std::time::Duration;

use bowline::client::{ClientBuilder, Preference, Target};

use super::audit::Audit;
use super::command::CommandTool;
use super::policy::Policy;
use super::rate::Rate;
use super::telemetry::Telemetry;
use crate::bridge::{Report, ToolRules};
use crate::redact::Redactor;

/// What a gateway serves.
#[derive(Clone)]
pub struct Plan {
    /// The name that clients see.
    pub name: String,
    /// Whether the names of tools and prompts begin with that of their server.
    pub has_prefixes: bool,
    /// The servers, in order. Keys are different.
    pub servers: Vec<ServerPlan>,
    /// Commands that are tools.
    pub commands: Vec<CommandTool>,
    /// Who may use what.
    pub policy: Policy,
    /// Where calls are recorded.
    pub audit: Option<Arc<Audit>>,
    /// Where spans and metrics are sent.
    pub telemetry: Option<Arc<Telemetry>>,
    /// How long the lists of a server that is down are shown.
    pub grace: Duration,
    /// How long a server may take to start.
    pub start: Duration,
    /// Told what people should know, once: servers that go and come back, names that clash.
    pub report: Report,
    /// Removes secrets from what callers, operators and telemetry are told about failures.
    pub redactor: Arc<Redactor>,
    /// Whether there is one caller only, as on standard input and output. Counts at the start.
    pub has_one_caller: bool,
}

/// One server behind the gateway.
#[derive(Clone)]
pub struct ServerPlan {
    /// Its name in the configuration: it authorises and is recorded.
    pub key: String,
    /// What names begin with, if not with the key.
    pub alias: Option<String>,
    /// Everything that decides whether a reload must connect again.
    pub fingerprint: String,
    /// Where it is.
    pub target: Arc<dyn Fn() -> Result<Target, String> + Send + Sync>,
    /// The client that connects to it.
    pub client: Arc<dyn Fn() -> ClientBuilder + Send + Sync>,
    /// Which revisions to speak with it.
    pub preference: Preference,
    /// Which tools it has, and what they are called.
    pub tools: ToolRules,
    /// How often each caller may use it.
    pub rate: Option<Rate>,
    /// How many calls of each caller may run.
    pub running: Option<usize>,
    /// How long one call may take.
    pub timeout: Option<Duration>,
}

impl ServerPlan {
    /// What the names of its tools begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.key)
    }
}
