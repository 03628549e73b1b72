//! The ready-made servers, walked by the TypeScript clients over stdio and HTTP, in both eras.

use std::thread;

use super::walk::Walked;
use super::{Installed, Named, PLACE, walk_one};
use crate::server::Server;

/// A ready-made server.
struct Ready {
    /// Its checks, in `interop/typescript/ready.mjs`.
    suite: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// Further arguments that make it serve on stdio.
    stdio: &'static [&'static str],
    /// The end of the script that walks it; empty for all of them.
    client: &'static str,
}

/// The arguments that make any of them serve over HTTP.
const HTTP: [&str; 2] = ["--http", "127.0.0.1:{port}"];

/// All of them. A new one is a line here and a suite.
const READY: &[Ready] = &[
    ready("mcp-logger", "mcp-logger", &["--allow", "127.0.0.1:*"]),
    ready("counter", "counter-server", &[]),
    ready("example", "example-server", &["--weather", "sample"]),
    ready("operator", "operator-server", SILENT),
    Ready { stdio: &["--stdio"], ..ready("bowline", "bowline", &["serve"]) },
    // Version 1 of the client knows nothing of skills, nor does the official client of tasks work
    // with it.
    Ready {
        client: "walk-v2.mjs",
        ..ready("skills", "bowline", &["serve", "--skills", "conformance/skills"])
    },
    Ready { client: "walk-v2.mjs", ..ready("tasks", "conformance-server", &[]) },
];

/// A voice that exists on every machine.
pub(super) const SILENT: &[&str] =
    &["--engine", "espeak", "--espeak", "target/interop/silent-espeak.sh", "--player", "true"];

const fn ready(
    suite: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
) -> Ready {
    Ready { suite, program, arguments, stdio: &[], client: "" }
}

/// The walks through one server.
pub(super) type Walks = (&'static str, Vec<Named>);

/// The targets that Cargo must build.
pub(super) fn targets() -> String {
    READY.iter().map(|it| format!(" --bin {}", it.program)).collect()
}

/// Walks all of them at once: they share nothing.
pub(super) fn walk_all(installed: &[Installed]) -> Vec<Walks> {
    thread::scope(|scope| {
        let walks: Vec<_> =
            READY.iter().map(|it| scope.spawn(|| (it.suite, it.walk(installed)))).collect();
        walks.into_iter().map(|walk| walk.join().expect("no walk panics")).collect()
    })
}

impl Ready {
    fn walk(&self, installed: &[Installed]) -> Vec<Named> {
        let program = format!("target/debug/{}", self.program);
        let is_it = |peer: &super::Peer| {
            peer.language == "typescript" && peer.script.ends_with(self.client)
        };
        let clients = || installed.iter().filter(|(peer, _)| is_it(peer));
        let mut walked = Vec::new();
        let command = [&["--suite", self.suite, &program], self.arguments, self.stdio].concat();
        walked.extend(clients().map(|it| walk_one(it, "stdio", &command)));
        match Server::start(&program, &[self.arguments, &HTTP].concat(), PLACE) {
            Ok(server) => {
                let url = server.url("/mcp");
                let arguments = ["--suite", self.suite, &url];
                walked.extend(clients().map(|it| walk_one(it, "http", &arguments)));
                if let Err(why) = server.stop() {
                    walked.push(("server".to_owned(), Walked::not_at_all(why)));
                }
            }
            Err(why) => walked.push(("server".to_owned(), Walked::not_at_all(why))),
        }
        walked.into_iter().map(|(name, it)| (format!("{} {name}", self.suite), it)).collect()
    }
}

/// A row for each server, a column for each walk.
pub(super) fn table(ready: &[Walks]) -> String {
    let row = |(suite, walks): &Walks| {
        let cells = walks.iter().map(|(name, walked)| {
            let (_, client) = name.split_once(' ').unwrap_or_default();
            format!("  {client} {}", walked.sum())
        });
        format!("    {suite:10}{}\n", cells.collect::<String>())
    };
    format!("\n{}", ready.iter().map(row).collect::<String>())
}
