//! Runs the official conformance suite through `bowline bridge`.
//!
//! The suite speaks one era, the server behind the bridge only the other one. What cannot cross is
//! listed by name, with the reason; a scenario of the list that passes fails the step, unless it is
//! a matter of luck.

use std::path::Path;
use std::process::Command;

use crate::cargo;
use crate::conformance::{MayFail, PLACE, Set, Suite, Verdict, outcome, set, stale};
use crate::options::Options;
use crate::server::Server;
use crate::step::Outcome;

/// A suite of one era in front of a server of the other.
struct Crossing {
    set: Set,
    /// What the bridge offers.
    offer: &'static str,
    /// Which era the server speaks.
    server: &'static str,
    /// How the bridge reaches the server.
    link: Link,
    may_fail: MayFail,
}

#[derive(Clone, Copy, PartialEq)]
enum Link {
    Stdio,
    Http,
}

const CROSSINGS: &[Crossing] = &[
    Crossing {
        set: set("2025-11-25, modern, stdio", "--requirements 2025-11-25", 33),
        offer: "legacy",
        server: "--modern",
        link: Link::Stdio,
        may_fail: &[],
    },
    Crossing {
        set: set("2025-11-25, modern, HTTP", "--requirements 2025-11-25", 33),
        offer: "legacy",
        server: "--modern",
        link: Link::Http,
        may_fail: &[],
    },
    Crossing {
        set: set("2026-07-28, legacy, stdio", "--requirements 2026-07-28", 50),
        offer: "modern",
        server: "--legacy",
        link: Link::Stdio,
        may_fail: OF_PIPES,
    },
    Crossing {
        set: set("2026-07-28, legacy, HTTP", "--requirements 2026-07-28", 50),
        offer: "modern",
        server: "--legacy",
        link: Link::Http,
        may_fail: OF_LEGACY,
    },
];

const KEYS: &str = "expects the server's own keys of questions, and legacy questions have none";

const SPLIT: &str = "expects one call to ask first and to become a task later; a legacy server says \
     only that a tool can run as a task, so its calls become tasks at once";
const SKIPPED: &str = "skipped by the suite itself";
/// Passes if the first process happens to be free, so either is fine.
const PROCESSES: &str = "changes lists by a call, and a legacy server that asks runs several times: \
     what one process changes, the others do not know";

/// What a legacy server cannot give.
const OF_LEGACY: MayFail = &[
    ("input-required-result-basic-elicitation", KEYS),
    ("input-required-result-ignore-extra-params", KEYS),
    ("tasks-mrtr-composition", SPLIT),
    ("tasks-status-notifications", SKIPPED),
];

/// The same on a pipe.
const OF_PIPES: MayFail = &[
    OF_LEGACY[0],
    OF_LEGACY[1],
    OF_LEGACY[2],
    OF_LEGACY[3],
    ("server-stateless/sep-2575-server-sends-prompts-list-changed-on-subscription", PROCESSES),
    ("server-stateless/sep-2575-server-sends-tools-list-changed-on-subscription", PROCESSES),
];

/// Installs the suite, and runs its sets one after the other.
pub(crate) fn step(_: &Options) -> Outcome {
    match judge() {
        Ok(judged) => {
            let zipped = CROSSINGS.iter().zip(&judged);
            let stale = zipped.flat_map(|(crossing, (name, verdict))| {
                let must_fail = crossing.may_fail.iter().filter(|(_, why)| *why != PROCESSES);
                let must_fail: Vec<_> = must_fail.copied().collect();
                let stale = stale(&must_fail, std::iter::once(verdict));
                stale.into_iter().map(move |it| format!("{name}: {it}"))
            });
            outcome(&judged, stale.collect())
        }
        Err(why) => Outcome::one(false, why),
    }
}

fn judge() -> Result<Vec<(&'static str, Verdict)>, String> {
    let suite = Suite::install()?;
    cargo::build("--bin conformance-server --bin bowline")?;
    CROSSINGS.iter().map(|it| Ok((it.set.name, it.judge(&suite)?))).collect()
}

impl Crossing {
    fn judge(&self, suite: &Suite) -> Result<Verdict, String> {
        let server = std::path::absolute("target/debug/conformance-server");
        let server = server.map_err(|error| error.to_string())?;
        let log = |what: &str| {
            Path::new(PLACE).join(format!("{what}-{}.log", self.set.name.replace([' ', ','], "-")))
        };
        let upstream = match self.link {
            Link::Stdio => None,
            Link::Http => Some(Server::launch(&log("server"), |port| {
                let mut command = Command::new(&server);
                command.args([self.server, "--http", &format!("127.0.0.1:{port}")]);
                command
            })?),
        };
        let log = log("bridge");
        let mut bridge = Server::launch(&log, |port| {
            let mut command = Command::new("target/debug/bowline");
            command.args(["bridge", "--http", &format!("127.0.0.1:{port}"), "--offer", self.offer]);
            match &upstream {
                Some(upstream) => command.arg(upstream.url("/mcp")),
                None => command.arg("--").arg(&server).arg(self.server),
            };
            command
        })?;
        let mut verdict = suite.run(&self.set, self.may_fail, &bridge.url("/mcp"))?;
        if !verdict.problems.is_empty() {
            verdict.problems.push(bridge.report(&log));
        }
        Ok(verdict)
    }
}
