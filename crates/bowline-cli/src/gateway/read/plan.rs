//! From what the files say to what the gateway does.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bowline::client::Preference;
use bowline::client::auth::{self, OAuth};
use bowline::{Client, with_causes};
use bowline_gateway::bridge::{Report, ToolRules};
use bowline_gateway::gateway::{Audit, Plan, Policy, ServerPlan};
use bowline_web::Host;

use super::Read;
use super::openapi::Described;
use crate::gateway::file::{self, Credentials, Prefix};
use crate::gateway::say;
use crate::gateway::secret::filled;
use crate::redact::Redactor;
use crate::target::{self, Location, Resolved, preference};

/// One server, and where it is written.
pub(in crate::gateway) struct Entry {
    pub(in crate::gateway) key: String,
    pub(in crate::gateway) file: PathBuf,
    /// Its command or URL, without secrets.
    pub(in crate::gateway) about: String,
    pub(in crate::gateway) resolved: Resolved,
    pub(super) own: file::Server,
    /// What its OpenAPI document says, if it has one.
    pub(super) api: Option<Described>,
}

/// What servers inherit from the gateway's environment, which has the secrets of all of them: what
/// programs need to find their files and the network.
const INHERITED: [&str; 43] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "LD_LIBRARY_PATH",
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ProgramFiles",
    "ProgramFiles(x86)",
    "ProgramW6432",
    "CommonProgramFiles",
    "HOMEDRIVE",
    "HOMEPATH",
    "USERNAME",
    "USERPROFILE",
];

impl Read {
    /// The plan, for an address to serve at; `None` is standard input and output.
    ///
    /// # Errors
    /// When a value is wrong, or the audit log cannot be opened.
    pub(in crate::gateway) fn plan(&self, audit: Option<Arc<Audit>>) -> Result<Plan, String> {
        let is_open = self.is_open();
        let report = self.report();
        let mut servers = Vec::new();
        for entry in &self.servers {
            let plan = entry.plan(is_open, &self.secrets, &report);
            servers.push(plan.map_err(|why| format!("servers.{}: {why}", entry.key))?);
        }
        let auth = self.settings.auth.as_ref();
        let mut group_claims = auth.map(|it| it.groups.clone()).unwrap_or_default();
        if group_claims.is_empty() {
            group_claims = ["groups", "roles"].map(str::to_owned).to_vec();
        }
        let policy = Policy { rules: self.rules.clone(), is_open, group_claims };
        Ok(Plan {
            name: self.settings.name.clone().unwrap_or_else(|| "bowline-gateway".to_owned()),
            has_prefixes: self.settings.prefix != Some(Prefix::Never),
            servers,
            commands: self.commands.clone(),
            policy,
            audit,
            telemetry: None,
            grace: duration(self.settings.grace.as_deref(), Duration::from_secs(600))?,
            start: duration(self.settings.start.as_deref(), Duration::from_secs(60))?,
            report,
            redactor: Arc::new(self.redactor()),
            has_one_caller: self.settings.listen.is_none(),
        })
    }

    /// Whether only the user of this machine can reach the gateway. Names of other hosts and tokens
    /// say that others do, through a proxy.
    fn is_open(&self) -> bool {
        let is_loopback = |it: SocketAddr| Host::Address(it.ip()).is_loopback();
        let is_here = |host: &String| {
            let port = host.rsplit_once(':').filter(|_| !host.ends_with(']'));
            let name = port.map_or(host.as_str(), |(name, _)| name);
            Host::parse(name).is_some_and(|it| it.is_loopback())
        };
        self.settings.listen.is_none_or(is_loopback)
            && self.settings.hosts.iter().all(is_here)
            && self.settings.auth.is_none()
    }

    /// Writes lines for people, without secrets.
    fn report(&self) -> Report {
        let redactor = self.redactor();
        Arc::new(move |line| say(&redactor.text(line)))
    }

    /// Removes secrets from texts.
    pub(in crate::gateway) fn redactor(&self) -> Redactor {
        let mut secrets: Vec<String> = self.secrets.values().cloned().collect();
        secrets.extend(self.servers.iter().flat_map(|it| it.resolved.secrets()));
        Redactor::new(secrets)
    }
}

impl Entry {
    /// Which tools it has.
    pub(in crate::gateway) fn tools(&self) -> ToolRules {
        let file::Tools { allow, deny, rename } = self.own.tools.clone();
        ToolRules { allow, deny, rename: rename.into_iter().collect() }
    }

    /// What else the files say about it, for people. Of headers and variables only the names.
    pub(in crate::gateway) fn details(&self) -> Vec<String> {
        let (own, mut lines) = (&self.own, Vec::new());
        let mut names = |what: &str, names: Vec<String>| {
            if !names.is_empty() {
                lines.push(format!("{what}: {}", names.join(", ")));
            }
        };
        names("allow", own.tools.allow.clone());
        names("deny", own.tools.deny.clone());
        let renamed = own.tools.rename.iter().map(|(old, new)| format!("{old} to {new}"));
        names("rename", renamed.collect());
        match &self.resolved.location {
            Location::Url { headers, .. } => {
                names("headers", headers.iter().map(|(name, _)| name.clone()).collect());
            }
            Location::Command { env, .. } => {
                let set = env.iter().map(|(name, _)| name.to_string_lossy().into_owned());
                names("env", set.collect());
            }
        }
        names("base", own.base.iter().map(|it| crate::redact::url(it)).collect());
        names("auth", own.auth.iter().map(|it| it.client_id.clone()).collect());
        let limits = &own.limits;
        let running = limits.running.map(|it| format!("{it} at a time"));
        let timeout = limits.timeout.as_ref().map(|it| format!("{it} each"));
        names("limits", limits.calls.iter().cloned().chain(running).chain(timeout).collect());
        lines.extend(self.api.iter().flat_map(Described::lines));
        lines
    }

    pub(in crate::gateway) fn alias(&self) -> Option<&str> {
        self.own.alias.as_deref()
    }

    fn plan(
        &self,
        is_open: bool,
        secrets: &BTreeMap<String, String>,
        report: &Report,
    ) -> Result<ServerPlan, String> {
        let mut resolved = self.resolved.clone();
        let inherits = INHERITED.iter().map(|it| (*it).to_owned());
        resolved.inherits = Some(inherits.chain(self.own.inherit.iter().cloned()).collect());
        resolved.uses_logins = self.own.login.unwrap_or(is_open);
        let auth = self.own.auth.as_ref().map(|auth| filled_in(auth, secrets)).transpose()?;
        if let Some(auth) = &auth {
            resolved.tokens = Some(tokens(&resolved, auth)?);
        }
        resolved.protect(self.own.insecure_http.unwrap_or(false)).map_err(|failure| {
            format!("{}; help: use https, or insecure_http = true", failure.what)
        })?;
        resolved.target().map_err(|failure| failure.what)?;
        let era = self.own.era.as_deref().unwrap_or("auto");
        let preference: Preference = preference(era)?;
        let limits = &self.own.limits;
        let rate = limits.calls.as_deref().map(str::parse).transpose()?;
        let timeout = limits.timeout.as_deref();
        let timeout = timeout.map(|it| duration(Some(it), Duration::ZERO)).transpose()?;
        let (key, report) = (self.key.clone(), Arc::clone(report));
        // Holds secrets, and is only ever compared.
        let mut fingerprint = format!(
            "{:?} {era} {:?} {} {auth:?}",
            resolved.location, resolved.inherits, resolved.uses_logins
        );
        if let Some(api) = &self.api {
            fingerprint += &api.fingerprint(&self.own);
        }
        let target = match &self.api {
            Some(api) => api.target(),
            None => Arc::new(move || resolved.target().map_err(|failure| failure.what)),
        };
        Ok(ServerPlan {
            key: self.key.clone(),
            alias: self.own.alias.clone(),
            fingerprint,
            target,
            client: Arc::new(move || {
                let (key, report) = (key.clone(), Arc::clone(&report));
                Client::builder("bowline-gateway", env!("CARGO_PKG_VERSION"))
                    .without_cache()
                    .on_stderr(move |line| report(&format!("{key}: {line}")))
            }),
            preference,
            tools: self.tools(),
            rate,
            running: limits.running,
            timeout,
        })
    }
}

/// Gets tokens for the server as the client that the file names.
pub(super) fn tokens(resolved: &Resolved, auth: &Credentials) -> Result<OAuth, String> {
    let Location::Url { url, .. } = &resolved.location else {
        return Err("auth is for servers with a url".to_owned());
    };
    let mut client = auth::Client::new(&auth.client_id).secret(auth.client_secret.as_str());
    if let Some(issuer) = &auth.issuer {
        client = client.issuer(issuer);
    }
    let web = resolved.web().and_then(|web| {
        web.build().map_err(|error| crate::failure::Failure::usage(error.to_string()))
    });
    let tokens = OAuth::client_credentials(url, client).scopes(&auth.scopes);
    let tokens = tokens.web(web.map_err(|failure| failure.what)?).build();
    tokens.map_err(|error| format!("auth: {}", with_causes(&error)))
}

pub(super) fn filled_in(
    auth: &Credentials,
    secrets: &BTreeMap<String, String>,
) -> Result<Credentials, String> {
    let client_secret = filled(&auth.client_secret, secrets)?;
    Ok(Credentials { client_secret, ..auth.clone() })
}

fn duration(text: Option<&str>, default: Duration) -> Result<Duration, String> {
    text.map_or(Ok(default), target::duration)
}
