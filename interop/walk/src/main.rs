//! Walks a third-party server with the Bowline client: `walk <server> stdio -- <command…>`, or
//! `walk <server> <http or sse> <URL>`.
//!
//! A walk is a connection in one mode: `auto`, or pinned to a revision that the server supports. It
//! prints a line for each check: `ok <mode> <check>`, `not ok <mode> <check>: <reason>`, or `lacks
//! <mode> <check>: <reason>` for a feature that the server is known to lack.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output is the result")]

mod check;
mod everything;
mod guest;
mod interop;
mod lacks;
mod site;

use std::process::ExitCode;
use std::time::Duration;

use bowline::Revision;
use bowline::client::Preference;

use crate::check::{Outcome, Report};
use crate::guest::Guest;
use crate::site::{Address, Site};

/// A server that can be walked.
struct KnownServer {
    name: &'static str,
    revisions: &'static [Revision],
    tour: Tour,
}

/// A set of checks.
#[derive(Clone, Copy)]
enum Tour {
    /// The servers of `interop/servers`.
    Interop,
    /// `@modelcontextprotocol/server-everything`.
    Everything,
}

const LEGACY: &[Revision] =
    &[Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

const SERVERS: &[KnownServer] = &[
    KnownServer { name: "typescript-1", revisions: LEGACY, tour: Tour::Interop },
    KnownServer { name: "typescript-2", revisions: &Revision::ALL, tour: Tour::Interop },
    KnownServer { name: "fastmcp", revisions: &Revision::ALL, tour: Tour::Interop },
    KnownServer { name: "rmcp", revisions: &Revision::ALL, tour: Tour::Interop },
    KnownServer { name: "everything", revisions: LEGACY, tour: Tour::Everything },
];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, transport, address) = match words[..] {
        [name, "stdio", "--", ref command @ ..] if !command.is_empty() => {
            (name, "stdio", Address::Command(command.iter().map(|&word| word.to_owned()).collect()))
        }
        [name, transport @ ("http" | "sse"), url] => {
            (name, transport, Address::Url(url.to_owned()))
        }
        _ => {
            eprintln!("usage: walk <server> stdio -- <command…> | walk <server> <http|sse> <URL>");
            return ExitCode::from(2);
        }
    };
    let Some(server) = SERVERS.iter().find(|known| known.name == name) else {
        let names: Vec<_> = SERVERS.iter().map(|known| known.name).collect();
        eprintln!("unknown server {name:?}; expected one of {}", names.join(", "));
        return ExitCode::from(2);
    };
    let mut has_failed = false;
    for mode in server.modes(transport) {
        let mut report = Report::new(server.name, transport, mode);
        walk(server, &address, &mut report).await;
        has_failed |= report.has_failed();
    }
    ExitCode::from(u8::from(has_failed))
}

/// A way to connect, and the revision it must lead to.
#[derive(Clone, Copy)]
struct Mode {
    preference: Preference,
    revision: Revision,
}

impl Mode {
    fn name(self) -> &'static str {
        match self.preference {
            Preference::Auto => "auto",
            _ => self.revision.as_str(),
        }
    }
}

impl KnownServer {
    fn modes(&self, transport: &str) -> Vec<Mode> {
        let revisions: Vec<Revision> = match transport {
            // HTTP+SSE ended with the legacy era. Other transports walk the other revisions.
            "sse" => vec![Revision::V2024_11_05, Revision::V2025_11_25],
            _ => self.revisions.to_vec(),
        };
        let newest = *revisions.last().expect("every server supports a revision");
        let auto = Mode { preference: Preference::Auto, revision: newest };
        let pinned = revisions
            .into_iter()
            .map(|revision| Mode { preference: Preference::Pin(revision), revision });
        std::iter::once(auto).chain(pinned).collect()
    }
}

async fn walk(server: &KnownServer, address: &Address, report: &mut Report<'_>) {
    let site = Site::new(address);
    let mode = report.mode();
    let mut guest = None;
    let connecting = async {
        let connected = Guest::connect(&site, mode).await?;
        check::same("revision", &connected.revision, &mode.revision)?;
        guest = Some(connected);
        Ok(())
    };
    report.check("connect", connecting).await;
    let Some(guest) = guest else { return };
    for &(name, since) in server.tour.checks() {
        if since.is_none_or(|since| guest.revision >= since) {
            report.check(name, server.tour.run(name, &guest)).await;
        }
    }
    report.check("shutdown", server.tour.shut_down(&site, guest)).await;
    report.check("shutdown-busy", server.tour.shut_down_busy(&site, mode)).await;
}

impl Tour {
    fn checks(self) -> &'static [check::Named] {
        match self {
            Self::Interop => interop::CHECKS,
            Self::Everything => everything::CHECKS,
        }
    }

    async fn run(self, name: &str, guest: &Guest) -> Outcome {
        match self {
            Self::Interop => interop::run(name, guest).await,
            Self::Everything => everything::run(name, guest).await,
        }
    }

    /// The client ends the connection: the process exits, or the session ends.
    async fn shut_down(self, site: &Site<'_>, guest: Guest) -> Outcome {
        let mode = guest.mode;
        let before = match self {
            Self::Interop => interop::sessions_ended(&guest).await?,
            Self::Everything => 0,
        };
        let has_session = !guest.revision.is_modern();
        guest.close(site).await?;
        if site.is_process() {
            return Ok(());
        }
        let another = Guest::connect(site, mode).await?;
        if matches!(self, Self::Interop) {
            let wanted = before + u64::from(has_session);
            // It takes a moment to notice the end of a stream.
            check::until(async || Ok(interop::sessions_ended(&another).await? >= wanted)).await?;
            check::same("sessions ended", &interop::sessions_ended(&another).await?, &wanted)?;
        }
        another.close(site).await
    }

    /// The same with a pending call, which must end too.
    async fn shut_down_busy(self, site: &Site<'_>, mode: Mode) -> Outcome {
        let guest = Guest::connect_with(site, mode, Duration::from_secs(2)).await?;
        let (tool, arguments) = match self {
            Self::Interop => interop::ENDLESS,
            Self::Everything => everything::ENDLESS,
        };
        let arguments: serde_json::Value = serde_json::from_str(arguments)?;
        let (call, mut progress) = guest.client.call_tool(tool, arguments).with_progress();
        let call = tokio::spawn(call.into_future());
        progress.next().await.ok_or("no progress")?;
        guest.close(site).await?;
        match call.await? {
            Err(bowline::client::CallError::Closed(_)) => Ok(()),
            other => Err(format!("the call ended with {other:?}").into()),
        }
    }
}
