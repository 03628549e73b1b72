//! What the ready-made servers share: arguments, startup, help for users at a terminal, and
//! fetching.
//!
//! Each server is a library that builds a [`bowline::Server`], and a `main` of a few lines:
//!
//! ```no_run
//! use bowline_serve::ServeArgs;
//! use clap::Parser;
//!
//! #[global_allocator]
//! static ALLOCATOR: bowline_serve::Allocator = bowline_serve::Allocator;
//!
//! /// An MCP server that greets.
//! #[derive(Parser)]
//! #[command(version = bowline_serve::long_version())]
//! struct Arguments {
//!     #[command(flatten)]
//!     serve: ServeArgs,
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> std::process::ExitCode {
//!     let arguments = Arguments::parse();
//!     let server = bowline::Server::new("greeter", "1.0.0");
//!     bowline_serve::run("greeter", server, arguments.serve).await
//! }
//! ```

mod arguments;
pub mod fetch;
mod guide;
mod log;
mod run;
#[cfg(feature = "testing")]
pub mod testing;

pub use self::arguments::{LogLevel, ServeArgs, long_version};
pub use self::guide::{Guide, snippets, tool_names};
pub use self::log::start_log;
pub use self::run::{complain, exposed, run, serve_on, tell};

// The allocator for programs that serve. Those of most systems keep what was freed for later; this
// one gives it back within seconds. Not for libraries: the choice belongs to a program. The threads
// that do so start on Linux with glibc only.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub use std::alloc::System as Allocator;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use tikv_jemallocator::Jemalloc as Allocator;
