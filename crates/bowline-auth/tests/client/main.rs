//! The OAuth client against a made-up world on loopback: MCP servers, authorization servers and an
//! identity provider, each with switches for everything that can be wrong with it.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

mod abuse;
mod basics;
mod browse;
mod dpop;
mod guard;
mod legacy;
mod people;
mod renewal;
mod scopes;
mod secrecy;
mod site;
mod unattended;
mod world;
