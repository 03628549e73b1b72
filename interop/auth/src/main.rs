//! Our server and our client on either side of an authorization server that is not ours.
//!
//! `auth-walk NODE SCRIPT` starts the server of `server.mjs`, logs in, calls, lets tokens expire,
//! steals, forges and revokes them, in both eras and with both kinds of tokens, and prints a line a
//! check: `ok <mode> <check>` or `not ok <mode> <check>: <reason>`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a walk: what it prints is what it is for"
)]

mod abuse;
mod control;
mod flow;
mod kinds;
mod logs;
mod person;
mod renewal;
mod site;
mod tokens;
mod visitor;

use std::error::Error;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use bowline::Revision;

use control::Issuer;
use logs::Logs;

/// What a check comes to.
type Outcome = Result<(), Trouble>;
type Trouble = Box<dyn Error + Send + Sync>;

/// A check, by name. It works for itself, in a world of its own.
type Check = (&'static str, fn(World) -> Pin<Box<dyn Future<Output = Outcome> + Send>>);

/// Turns a function into a [`Check`].
macro_rules! check {
    ($name:literal, $function:path) => {
        ($name, |world| Box::pin($function(world)))
    };
}
use check;

/// How long one check may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the tokens of a server are like, and how it finds out what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Signed: the server checks them by itself.
    Jwt,
    /// Meaningless: the server asks their issuer.
    Opaque,
}

/// What a check happens in.
#[derive(Clone)]
struct World {
    issuer: Issuer,
    format: Format,
    revision: Revision,
    logs: Logs,
}

const MODES: &[(Format, Revision)] = &[
    (Format::Jwt, Revision::V2026_07_28),
    (Format::Jwt, Revision::V2025_11_25),
    (Format::Opaque, Revision::V2026_07_28),
    (Format::Opaque, Revision::V2025_11_25),
];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let walked = match arguments[..] {
        ["visit", url, store] => visitor::visit(url, store).await.map(|()| true),
        [node, script] => walk(node, script).await,
        _ => Err("usage: auth-walk NODE SCRIPT".into()),
    };
    match walked {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything is as it should be.
async fn walk(node: &str, script: &str) -> Result<bool, Trouble> {
    let logs = Logs::capture();
    let issuer = Issuer::start(node, script).await?;
    let mut is_good = true;
    for &(format, revision) in MODES {
        let world = World { issuer: issuer.clone(), format, revision, logs: logs.clone() };
        let mode = format!("{format:?}-{revision}").to_lowercase();
        let more: &[Check] = if format == Format::Jwt { tokens::JWT } else { tokens::OPAQUE };
        let checks = [flow::CHECKS, renewal::CHECKS, kinds::CHECKS, abuse::CHECKS, more].concat();
        for (name, work) in checks {
            is_good &= run(&mode, name, work(world.clone())).await;
        }
    }
    is_good &= run("all", "secrets", logs.check(issuer.clone())).await;
    Ok(is_good)
}

async fn run(mode: &str, name: &str, work: impl Future<Output = Outcome>) -> bool {
    let outcome = tokio::time::timeout(PATIENCE, work).await;
    match outcome.unwrap_or_else(|_| Err(format!("no end within {PATIENCE:?}").into())) {
        Ok(()) => println!("ok {mode} {name}"),
        Err(why) => {
            println!("not ok {mode} {name}: {why}");
            return false;
        }
    }
    true
}

/// Wants two things to be the same.
#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
fn same<T: PartialEq<U> + std::fmt::Debug, U: std::fmt::Debug>(
    what: &str,
    found: T,
    wanted: U,
) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what}: {found:?} instead of {wanted:?}").into())
}

/// Wants something to be true.
fn holds(what: impl Into<String>, is_so: bool) -> Outcome {
    if is_so { Ok(()) } else { Err(what.into().into()) }
}
