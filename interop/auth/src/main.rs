//! Tests our server and our client against a third-party authorization server.
//!
//! `auth-walk NODE SCRIPT` starts `server.mjs`, logs in, calls tools, and lets tokens expire,
//! steals, forges and revokes them, in both eras and with both kinds of tokens. It prints a line
//! per check: `ok <mode> <check>` or `not ok <mode> <check>: <reason>`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output is the result")]

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

/// The outcome of a check.
type Outcome = Result<(), BoxError>;
type BoxError = Box<dyn Error + Send + Sync>;

/// A named check. Each gets its own copy of the world.
type Check = (&'static str, fn(World) -> Pin<Box<dyn Future<Output = Outcome> + Send>>);

/// Turns a function into a [`Check`].
macro_rules! check {
    ($name:literal, $function:path) => {
        ($name, |world| Box::pin($function(world)))
    };
}
use check;

/// The time limit of a check.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kind of a server's tokens, and how it verifies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Signed: the server verifies them itself.
    Jwt,
    /// Opaque: the server asks their issuer.
    Opaque,
}

/// The environment of a check.
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

/// Returns whether all checks passed.
async fn walk(node: &str, script: &str) -> Result<bool, BoxError> {
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
    match outcome.unwrap_or_else(|_| Err(format!("timed out after {PATIENCE:?}").into())) {
        Ok(()) => println!("ok {mode} {name}"),
        Err(why) => {
            println!("not ok {mode} {name}: {why}");
            return false;
        }
    }
    true
}

/// Checks that two values are equal.
#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
fn same<T: PartialEq<U> + std::fmt::Debug, U: std::fmt::Debug>(
    what: &str,
    found: T,
    wanted: U,
) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what}: {found:?}, expected {wanted:?}").into())
}

/// Checks that a condition holds.
fn holds(what: impl Into<String>, is_so: bool) -> Outcome {
    if is_so { Ok(()) } else { Err(what.into().into()) }
}
