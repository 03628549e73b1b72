//! Tests our server and our client with a third-party authorization server.
//!
//! `interop/auth` holds the walk and the settings of that server; its packages are installed and
//! run in `target/auth`.

use std::process::Command;

use crate::cargo;
use crate::install::{Environment, Language};
use crate::interop::walk::{self, Walked};
use crate::options::Options;
use crate::step::Outcome;

const SERVER: Environment = Environment {
    source: "interop/auth",
    place: "target",
    folder: "auth",
    inputs: &[".npmrc", "package.json", "package-lock.json"],
    language: Language::Node(22),
};

/// Installs the authorization server, builds the walk, and runs it.
pub(crate) fn step(_: &Options) -> Outcome {
    let walked = walk().unwrap_or_else(Walked::not_at_all);
    let (passed, failed) = (walked.passed(), walked.failed());
    let note = format!("{passed} checks with oidc-provider");
    let output = walked.said.clone();
    let table = walk::table(&[("checks".to_owned(), walked)]);
    Outcome { passed, failed, note, output, table }
}

fn walk() -> Result<Walked, String> {
    SERVER.copy(SERVER.inputs)?;
    SERVER.copy(&["server.mjs"])?;
    let node = SERVER.install()?;
    cargo::build("--bin auth-walk")?;
    let mut walk = Command::new("target/debug/auth-walk");
    walk.arg(node).arg("target/auth/server.mjs");
    Ok(walk::walk(&walk))
}
