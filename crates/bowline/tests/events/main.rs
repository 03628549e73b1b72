//! Events over real HTTP: a server, clients of both eras, and receivers of webhooks.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

mod methods;
mod receiver;
mod store;
mod webhooks;
mod world;
