//! The arguments of every server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::OnceLock;

use bowline::Revision;

/// How to serve a server.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServeArgs {
    /// Serve over HTTP on this address, such as 127.0.0.1:8080, instead of on standard input and
    /// output; with port 0 the system picks a free port
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,

    /// With --http, also accept requests for this host name, in addition to loopback; can be
    /// repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    pub allow_host: Vec<String>,

    /// With --http, listen on an address that other machines can reach: anyone there can use the
    /// server, because it asks for no token
    #[arg(long, requires = "http")]
    pub allow_unauthenticated: bool,

    /// How much to log to standard error; `RUST_LOG` overrides it
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log_level: LogLevel,
}

/// How much to log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[expect(missing_docs, reason = "the usual levels; a comment here would appear in the help")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The output of `--version` after the program's name: its version and the revisions it supports.
pub fn long_version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let revisions = Revision::ALL.map(Revision::as_str).join(", ");
        format!("{} (MCP {revisions})", env!("CARGO_PKG_VERSION"))
    })
}
