//! The programs to measure, and how to start each.

use std::process::Command;

use crate::program::{Line, PORT};

/// Where programs that exist only to be measured are built.
pub(crate) const BUILD: &str = "target/bench";

/// An SDK to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Bowline,
    /// The official Rust SDK at its fastest.
    Rmcp,
    /// The same, used as its documentation shows.
    RmcpDefault,
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bowline => "bowline",
            Self::Rmcp => "rmcp, tuned",
            Self::RmcpDefault => "rmcp, default",
        }
    }
}

/// The available programs.
pub(crate) struct Peers {
    probe: Line,
    bench: Line,
    rmcp: Option<Line>,
}

impl Peers {
    /// Builds them, unless they are built. Reports and skips what cannot be built.
    pub(crate) fn find(is_built: bool) -> Result<Self, String> {
        let target = format!("{BUILD}/rmcp");
        let rmcp =
            ["--release", "--manifest-path", "bench/rmcp/Cargo.toml", "--target-dir", &target];
        let probe = ["--profile", "dist", "-p", "bowline", "--example", "probe"];
        let rmcp = if is_built {
            Ok(())
        } else {
            cargo(&[&probe[..], &["--features", "http"]].concat())?;
            cargo(&rmcp)
        };
        let rmcp = match rmcp {
            Ok(()) => Some(Line::new(&[&format!("{target}/release/rmcp-bench")])),
            Err(error) => {
                eprintln!("skipping rmcp: {error}");
                None
            }
        };
        let bench = std::env::current_exe().map_err(|error| error.to_string())?;
        let bench = Line::new(&[&bench.to_string_lossy()]);
        Ok(Self { probe: Line::new(&["target/dist/examples/probe"]), bench, rmcp })
    }

    /// All SDKs, ours first.
    pub(crate) fn all(&self) -> Vec<Peer> {
        let mut all = vec![Peer::Bowline];
        if self.rmcp.is_some() {
            all.extend([Peer::Rmcp, Peer::RmcpDefault]);
        }
        all
    }

    /// A server on standard streams.
    pub(crate) fn stdio(&self, peer: Peer) -> Line {
        self.server(peer, &["stdio"], &[])
    }

    /// A server over HTTP.
    pub(crate) fn http(&self, peer: Peer, has_sessions: bool) -> Line {
        let sessions: &[&str] = if has_sessions { &["--sessions"] } else { &[] };
        self.server(peer, &["http", PORT], sessions)
    }

    /// Our server with this many additional tools.
    pub(crate) fn with_tools(&self, is_http: bool, tools: usize) -> Line {
        let line =
            if is_http { self.probe.and(&["http", PORT]) } else { self.probe.and(&["stdio"]) };
        line.and(&["--tools", &tools.to_string()])
    }

    fn server(&self, peer: Peer, words: &[&str], options: &[&str]) -> Line {
        match (peer, &self.rmcp) {
            (Peer::Rmcp, Some(rmcp)) => rmcp.and(&["--tuned"]).and(options).and(words),
            (Peer::RmcpDefault, Some(rmcp)) => rmcp.and(words),
            _ => self.probe.and(words),
        }
    }

    /// A client program.
    pub(crate) fn client(&self, peer: Peer, revision: &str) -> Line {
        let words = ["client", revision];
        match (peer, &self.rmcp) {
            (Peer::Rmcp, Some(rmcp)) => rmcp.and(&["--tuned"]).and(&words),
            (Peer::RmcpDefault, Some(rmcp)) => rmcp.and(&words),
            _ => self.bench.and(&words),
        }
    }

    /// A program that repeats one operation.
    pub(crate) fn micro(&self, name: &str) -> Line {
        self.bench.and(&["repeat", name])
    }
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    let status = Command::new("cargo").arg("build").args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo build {}: {status}", arguments.join(" "))),
        Err(error) => Err(format!("cargo: {error}")),
    }
}
