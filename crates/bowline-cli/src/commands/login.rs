//! `bowline login` and `bowline logout`: tokens for servers that want to know who asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::Client;
use bowline::client::auth::{
    Browser, Client as OAuthClient, FileStore, Limits, Login as LoginWay, OAuth, OAuthBuilder,
    Paste,
};
use bowline::client::http::Endpoint;
use bowline::client::{Direction, OpenError, Restart};
use clap::Args;
use serde_json::json;

use crate::failure::{Code, Failure};
use crate::redact;
use crate::render::wire::time;
use crate::screen::{OutputArgs, Screen};
use crate::session::{Settings, interrupted};
use crate::target::{Place, TargetArgs, credentials, duration};
use crate::text::plain;

/// Log in to a server, and keep the tokens for all commands
///
/// The browser opens where the server's authorization server says: the one that BROWSER names, or
/// else the system's. Where none opens, open the address that is shown yourself. The tokens are
/// kept in a folder that only you can read, and renewed when they expire.
#[derive(Args)]
pub(crate) struct Login {
    /// Show the address and read the answer here, for machines without a browser
    #[arg(long)]
    paste: bool,

    /// Show the address, and do not open a browser
    #[arg(long, conflicts_with = "paste")]
    no_browser: bool,

    /// The port of this machine that the browser comes back to, for clients that are registered
    /// with it [default: any]
    #[arg(long, value_name = "PORT", conflicts_with = "paste")]
    port: Option<u16>,

    /// How long you may take until you come back: 90, 10m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    wait: Duration,

    /// Ask for a scope, beside what the server asks for; may be repeated
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,

    /// The client id, where clients must be registered beforehand
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,

    /// The variable of the environment that holds the client's secret
    #[arg(long, value_name = "NAME", requires = "client_id")]
    client_secret_env: Option<String>,

    #[command(flatten)]
    target: TargetArgs,
}

impl Login {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.target.options, root)?;
        let url = url_of(&self.target)?;
        let login = match self.paste {
            true => self.builder(&url, Paste::new())?,
            false => {
                let (screen, wait) = (Arc::clone(&settings.screen), time(self.wait.as_secs_f64()));
                let mut browser = Browser::new().show(move |page| {
                    screen.say(&format!(
                        "To log in, go to this address in a browser on this machine:\n\n  {}\n\n\
                         Waiting for you to come back, for {wait} at most. With a browser elsewhere, \
                         use --paste.\n",
                        plain(page.as_str())
                    ));
                });
                if self.no_browser {
                    browser = browser.print();
                }
                if let Some(port) = self.port {
                    browser = browser.port(port);
                }
                self.builder(&url, browser)?
            }
        };
        let oauth = login.build().map_err(|error| Failure::usage(error.to_string()))?;
        tokio::select! {
            done = connect(&url, oauth, &settings, self.wait) => done,
            () = interrupted() => Err(Failure::new(Code::TimedOut, "interrupted: not logged in")),
        }
    }

    fn builder(&self, url: &str, way: impl LoginWay + 'static) -> Result<OAuthBuilder, Failure> {
        let store = open_store()?;
        let mut limits = Limits::default();
        limits.login = self.wait;
        let builder = OAuth::login(url, way).client_name("Bowline").store(store);
        let mut builder = builder.limits(limits);
        if !self.scope.is_empty() {
            builder = builder.scopes(&self.scope);
        }
        if let Some(id) = &self.client_id {
            let mut client = OAuthClient::new(id);
            if let Some(name) = &self.client_secret_env {
                let secret = std::env::var(name).map_err(|_| {
                    Failure::usage(format!("--client-secret-env {name}: there is no such variable"))
                })?;
                client = client.secret(secret);
            }
            builder = builder.client(client);
        }
        Ok(builder)
    }
}

/// Connects, which logs in where the server asks for it.
async fn connect(
    url: &str,
    oauth: OAuth,
    settings: &Settings,
    wait: Duration,
) -> Result<(), Failure> {
    let screen = &settings.screen;
    let shows_token = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&shows_token);
    let timeouts = bowline::client::Timeouts {
        connect: settings.timeouts.connect.saturating_add(wait),
        ..settings.timeouts.clone()
    };
    let opened = Client::builder("bowline", env!("CARGO_PKG_VERSION"))
        .timeouts(timeouts)
        .preference(settings.preference)
        .restart(Restart::Never)
        .on_wire(move |message| {
            let headers = message.http.iter().flat_map(|http| &http.headers);
            let mut names = headers.map(|header| header.name.as_str());
            if message.direction == Direction::Sent && names.any(|name| name == "authorization") {
                seen.store(true, Ordering::Relaxed);
            }
        })
        .connect(Endpoint::new(url).authorize(oauth))
        .await;
    let shown = redact::url(url);
    let client = opened.map_err(|error| match error {
        OpenError::Unauthorized { problem, .. } => {
            let failure = Failure::new(Code::Unauthorized, format!("not logged in: {problem}"));
            failure.with_remedy(format!(
                "`bowline login {shown}` tries again; --wait gives you more time"
            ))
        }
        other => other.into(),
    })?;
    let asked = client.list_tools().await;
    client.close().await;
    let is_logged_in = shows_token.load(Ordering::Relaxed);
    if let Err(bowline::client::CallError::Unauthorized { .. }) = asked {
        return Err(Failure::new(Code::Unauthorized, "logged in, but still not let in"));
    }
    if screen.is_json() {
        screen.print_json(&json!({ "url": shown, "loggedIn": is_logged_in }).into());
    } else {
        screen.print(&plain(&match is_logged_in {
            true => format!("logged in to {shown}\n"),
            false => format!("{shown} asks for no login\n"),
        }));
    }
    screen.finish()
}

/// Forget the tokens for a server
#[derive(Args)]
pub(crate) struct Logout {
    /// Forget all tokens, for all servers
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    target: TargetArgs,
}

impl Logout {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let output = self.target.options.output.clone().or(root);
        let screen = Screen::new(&output);
        let told = match self.all {
            true => {
                forget_all()?;
                "everything is forgotten".to_owned()
            }
            false => {
                let url = url_of(&self.target)?;
                let oauth = OAuth::login(&url, Paste::new()).store(open_store()?).build();
                let oauth = oauth.map_err(|error| Failure::usage(error.to_string()))?;
                oauth.forget().await.map_err(|error| Failure::usage(error.to_string()))?;
                format!("logged out of {}", redact::url(&url))
            }
        };
        match screen.is_json() {
            true => screen.print_json(&json!({ "loggedOut": true }).into()),
            false => screen.print(&format!("{}\n", plain(&told))),
        }
        screen.finish()
    }
}

fn url_of(target: &TargetArgs) -> Result<String, Failure> {
    match target.resolve()?.place {
        Place::Url { url, .. } => Ok(url),
        Place::Command { .. } => {
            let failure = Failure::usage("only servers behind URLs have a login");
            Err(failure.with_remedy("--env passes a token to a command"))
        }
    }
}

fn open_store() -> Result<FileStore, Failure> {
    let folder = folder()?;
    let wrong = |error: std::io::Error| {
        Failure::usage(format!("logins cannot be kept in {}: {error}", folder.display()))
    };
    FileStore::open(&folder).map_err(wrong)
}

fn folder() -> Result<std::path::PathBuf, Failure> {
    credentials().ok_or_else(|| {
        Failure::usage("there is no home to keep logins in").with_remedy("set BOWLINE_DATA_DIR")
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
