//! How a server behaves towards its clients, in every revision.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` at the call reads best")]

mod apps;
mod arguments;
mod ask;
mod audit;
mod build;
mod calls;
mod cancel;
mod drops;
mod ends;
mod errors;
mod extension;
mod farewell;
mod handshake;
mod held;
mod limits;
mod lists;
#[cfg(feature = "log-layer")]
mod log;
mod middleware;
mod nest;
mod notices;
mod passing;
mod pressure;
mod proxy;
mod raw;
mod regression;
#[cfg(feature = "macros")]
mod results;
mod rounds;
mod shelf;
#[cfg(feature = "skills")]
mod skills;
mod steps;
mod subscriptions;
mod tasks;
mod tasks_handlers;
mod tasks_limits;
mod tasks_restarts;
mod testing;
#[path = "../http/trail.rs"]
mod trail;
