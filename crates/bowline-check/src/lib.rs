//! Checks an MCP server against the specification, frame by frame: what it must do, what it should
//! do, and what well-known clients fail on.
//!
//! A [`Check`] works below the SDK's client: it sends messages that no client would send, and looks
//! at every byte that comes back. Its [`Report`] has a [`Finding`] for each [`Rule`] and revision,
//! with the exchanges that prove it, and can be written as JSON or JUnit XML.
//!
//! ```
//! use bowline::{Server, Tool};
//! use bowline_check::{Check, Conclusion, Target};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), bowline_check::CheckError> {
//! // A server in this process. `Target::Program` starts one, `Target::Http` connects to a URL.
//! let target = Target::streams(|| {
//!     let (reader, output) = tokio::io::duplex(1 << 16);
//!     let (writer, input) = tokio::io::duplex(1 << 16);
//!     let server = Server::new("demo", "1.0.0")
//!         .with(Tool::new("now", || async { "now" }).description("Returns the time").read_only());
//!     tokio::spawn(server.serve(tokio::io::join(input, output)));
//!     (Box::new(reader), Box::new(writer))
//! });
//! let report = Check::new(target).only(["jsonrpc", "tools.call"]).run().await?;
//! assert_eq!(report.conclusion(), Conclusion::Good, "{:?}", report.problems().next());
//! println!("{}", report.to_junit());
//! # Ok(())
//! # }
//! ```
//!
//! [`frames`] is the client underneath, for programs that must see what a server really sends.

pub mod apps;
mod calls;
mod check;
mod connection;
pub mod discovery;
mod evidence;
pub mod frames;
mod lists;
mod observed;
mod opening;
mod plan;
mod probe;
mod reply;
mod report;
mod rule;
mod rules;
mod run;
mod survey;
mod task_runs;
#[cfg(test)]
mod tests;
pub mod text;

pub use self::check::{Check, CheckError, Open, Target, is_known};
pub use self::connection::{Connection, Ending};
pub use self::evidence::Evidence;
pub use self::observed::Strays;
pub use self::reply::{Received, Reply};
pub use self::report::{Conclusion, Finding, Report, Verdict};
pub use self::rule::{Profile, Rule, Severity, Transport, all as rules};
pub use self::rules::{is_uri, problem_of_entry};
