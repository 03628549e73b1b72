//! `bowline login` and `bowline logout`: tokens for servers that require authorization.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::client::auth::{
    AuthError, Browser, Client as OAuthClient, FileStore, Limits, OAuth, OAuthBuilder, Paste,
};
use bowline::client::http::Endpoint;
use bowline::client::{CallError, Direction, OpenError, Restart};
use bowline::{Client, with_causes};
use clap::Args;
use serde_json::json;

use crate::failure::{Code, Failure};
use crate::redact;
use crate::render::wire::time;
use crate::screen::{OutputArgs, Screen};
use crate::session::{Journal, Settings, interrupted};
use crate::target::{Location, Resolved, TargetArgs, credentials, duration};
use crate::text::plain;

/// Log in to a server, and keep the tokens for all commands
///
/// Opens the login page of the server's authorization server in a browser: the one that BROWSER
/// names, or the system's default. If none opens, open the address shown. The tokens are stored in
/// a folder that only you can read, and renewed when they expire.
#[derive(Args)]
pub(crate) struct Login {
    /// Print the address and read the answer here, for machines without a browser
    #[arg(long)]
    paste: bool,

    /// Print the address, and do not open a browser
    #[arg(long, conflicts_with = "paste")]
    no_browser: bool,

    /// The local port that the browser is redirected to, for clients registered with a fixed one
    /// [default: any]
    #[arg(long, value_name = "PORT", conflicts_with = "paste")]
    port: Option<u16>,

    /// How long to wait for you to finish logging in: 90, 10m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    wait: Duration,

    /// Request a scope, in addition to those the server requires; may be repeated
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,

    /// The client id, where clients must be registered beforehand
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,

    /// The environment variable that holds the client's secret
    #[arg(long, value_name = "NAME", requires = "client_id")]
    client_secret_env: Option<String>,

    #[command(flatten)]
    target: TargetArgs,
}

impl Login {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.target.options, root)?;
        let resolved = self.target.resolve()?;
        let url = url_of(&resolved)?;
        let mut builder = if self.paste {
            OAuth::login(url, Paste::new())
        } else {
            OAuth::login(url, self.browser(&settings))
        };
        if settings.is_verbose {
            let screen = Arc::clone(&settings.screen);
            builder =
                builder.on_exchange(move |exchange| screen.say(&plain(&exchange.to_string())));
        }
        let web = resolved.web()?.build().map_err(|error| Failure::usage(with_causes(&error)))?;
        let oauth = self.configure(builder.web(web))?.build();
        let oauth = oauth.map_err(|error| Failure::usage(error.to_string()))?;
        let is_logged_in = tokio::select! {
            done = connect(&resolved, oauth, &settings, self.wait) => done?,
            mut stopped = interrupted() => {
                stopped.what += ": not logged in";
                return Err(stopped);
            }
        };
        let (url, screen) = (redact::url(url), &settings.screen);
        screen.show(&json!({ "url": url, "loggedIn": is_logged_in }).into(), || {
            Ok(plain(&if is_logged_in {
                format!("logged in to {url}\n")
            } else {
                format!("{url} does not require a login\n")
            })
            .into_owned())
        })?;
        screen.finish()
    }

    fn browser(&self, settings: &Settings) -> Browser {
        let (screen, wait) = (Arc::clone(&settings.screen), time(self.wait.as_secs_f64()));
        let mut browser = Browser::new().show(move |page| {
            screen.say(&format!(
                "To log in, open this address in a browser on this machine:\n\n  {}\n\n\
                 Waiting up to {wait} for you to finish. If the browser is on another machine, use \
                 --paste.\n",
                plain(page.as_str())
            ));
        });
        if self.no_browser {
            browser = browser.print();
        }
        match self.port {
            Some(port) => browser.port(port),
            None => browser,
        }
    }

    fn configure(&self, builder: OAuthBuilder) -> Result<OAuthBuilder, Failure> {
        let mut limits = Limits::default();
        limits.login = self.wait;
        let mut builder = builder.client_name("Bowline").store(open_store()?).limits(limits);
        if !self.scope.is_empty() {
            builder = builder.scopes(&self.scope);
        }
        if let Some(id) = &self.client_id {
            let mut client = OAuthClient::new(id);
            if let Some(name) = &self.client_secret_env {
                let secret = std::env::var(name).map_err(|_| {
                    Failure::usage(format!("--client-secret-env {name}: no such variable"))
                })?;
                client = client.secret(secret);
            }
            builder = builder.client(client);
        }
        Ok(builder)
    }
}

/// Connects, which logs in if the server requires it; returns whether it did.
pub(crate) async fn connect(
    resolved: &Resolved,
    oauth: OAuth,
    settings: &Settings,
    wait: Duration,
) -> Result<bool, Failure> {
    let sent_token = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&sent_token);
    let url = url_of(resolved)?;
    let endpoint = resolved.secured(Endpoint::new(url).authorize(oauth))?;
    let journal = Arc::new(Journal::new(resolved, settings)?);
    let shown = Arc::clone(&journal);
    let mut timeouts = settings.timeouts.clone();
    timeouts.connect = timeouts.connect.saturating_add(wait);
    let opened = Client::builder("bowline", env!("CARGO_PKG_VERSION"))
        .timeouts(timeouts)
        .preference(settings.preference)
        .restart(Restart::Never)
        .on_wire(move |message| {
            shown.handle_wire(message);
            let headers = message.http.iter().flat_map(|http| &http.headers);
            let mut names = headers.map(|header| header.name.as_str());
            if message.direction == Direction::Sent && names.any(|name| name == "authorization") {
                seen.store(true, Ordering::Relaxed);
            }
        })
        .connect(endpoint)
        .await;
    let url = redact::url(url);
    let client = opened.map_err(|error| match error {
        OpenError::Unauthorized { problem, .. } => {
            Failure::new(Code::Unauthorized, format!("not logged in: {problem}")).with_remedy(
                format!("`bowline login {url}` tries again; --wait gives you more time"),
            )
        }
        other => other.into(),
    })?;
    let asked = client.list_tools().await;
    client.close().await;
    journal.end(None);
    if let Err(CallError::Unauthorized { .. }) = asked {
        return Err(Failure::new(Code::Unauthorized, "logged in, but still not admitted"));
    }
    Ok(sent_token.load(Ordering::Relaxed))
}

/// Delete the tokens for a server
#[derive(Args)]
pub(crate) struct Logout {
    /// Delete the tokens for all servers
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    target: TargetArgs,
}

impl Logout {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(&self.target.options.output.clone().or(root));
        let told = if self.all {
            forget_all()?;
            "logged out of all servers".to_owned()
        } else {
            let resolved = self.target.resolve()?;
            log_out(&resolved).await?;
            format!("logged out of {}", redact::url(url_of(&resolved)?))
        };
        screen.show(&json!({ "loggedOut": true }).into(), || Ok(format!("{}\n", plain(&told))))?;
        screen.finish()
    }
}

/// Deletes the tokens for a server.
pub(crate) async fn log_out(resolved: &Resolved) -> Result<(), Failure> {
    let wrong = |error: AuthError| Failure::usage(error.to_string());
    let oauth = OAuth::login(url_of(resolved)?, Paste::new()).store(open_store()?);
    oauth.build().map_err(wrong)?.forget().await.map_err(wrong)
}

pub(crate) fn url_of(resolved: &Resolved) -> Result<&str, Failure> {
    match &resolved.location {
        Location::Url { url, .. } => Ok(url),
        Location::Command { .. } => Err(Failure::usage("only a server at a URL has a login")
            .with_remedy("--env passes a token to a command")),
    }
}

pub(crate) fn open_store() -> Result<FileStore, Failure> {
    let folder = folder()?;
    FileStore::open(&folder).map_err(|error| {
        Failure::usage(format!("cannot store logins in {}: {error}", folder.display()))
    })
}

fn folder() -> Result<PathBuf, Failure> {
    credentials().ok_or_else(|| {
        Failure::usage("no home folder to store logins in").with_remedy("set BOWLINE_DATA_DIR")
    })
}

fn forget_all() -> Result<(), Failure> {
    let folder = folder()?;
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::usage(format!("{}: {error}", folder.display())))
        }
        _ => Ok(()),
    }
}
