//! One server, many processes: on Postgres, and faster with Redis.
//!
//! ```no_run
//! use bowline::Server;
//! use bowline_fleet::Fleet;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fleet = Fleet::connect("postgres://bowline@db.internal/bowline").await?;
//! Server::new("deployer", "1.0.0")
//!     .fleet(fleet)
//!     .http()
//!     .serve("127.0.0.1:8080")
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! The name of the server is the name of its fleet: servers with other names may use the same
//! database. Start as many of these as you like, on as many machines, behind any load balancer. No
//! session is sticky.
//!
//! # What is promised
//!
//! - **Any node answers any request**, of both eras. Request states and session ids are sealed with
//!   keys that all nodes share and that [rotate](Fleet::rotate_keys) without an outage.
//! - **What was acknowledged survives.** A task is committed before its id leaves. If a node dies,
//!   another one takes over when the lease is over: tools that allow it
//!   [run again](bowline::Tool::rerun), the others have failed, and say so. Each acquisition has a
//!   fence of its own, so a node that was stopped for a while cannot write what it finds out too
//!   late. It stops its own handlers before the lease is over.
//! - **Changes reach every node**: within 0.1 s as a rule, within 4 s if messages between the nodes
//!   are lost.
//! - **An ended session stays ended**, on all nodes.
//! - **The clock is that of the database.** The clocks of the nodes need not agree.
//!
//! Postgres alone is a complete fleet. [Redis](FleetBuilder::redis) makes news travel without
//! taking Postgres' time; if it is away, news travels through Postgres.
//!
//! docs/fleet.md is the page for operators.

mod beat;
mod changes;
mod clock;
mod create;
mod error;
mod fleet;
mod hear;
mod keys;
mod metrics;
mod migrate;
mod node;
mod pending;
mod pool;
mod scrape;
mod store;
mod tls;

pub use self::error::FleetError;
pub use self::fleet::{Fleet, FleetBuilder};
pub use self::metrics::Metrics;
pub use self::store::Store;

/// Compiles the examples of the page for operators.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/fleet.md")]
struct Page;
