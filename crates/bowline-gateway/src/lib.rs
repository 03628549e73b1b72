//! What stands between MCP clients and servers: the bridge, which translates where it must, and the
//! tap, which changes nothing.
//!
//! [`bridge`] puts any client in front of any server.
//!
//! [`relay`] passes the bytes of a stdio session, [`proxy`] those of HTTP. Beside the copy, never
//! in its way, an [`observe::Observer`] sees them: it writes the [`session_file`] and serves
//! viewers through the [`hub`]. [`fault`] breaks things on purpose. [`view`] makes sense of what
//! was observed; [`recording`] reads it back, for [`diff`], [`mock`] and [`export`]. [`config`]
//! edits the config files of clients.

pub mod bridge;
pub mod config;
pub mod diff;
pub mod export;
pub mod fault;
pub mod gateway;
pub mod hub;
pub mod mock;
pub mod observe;
mod pairs;
pub mod proxy;
pub mod recording;
pub mod redact;
pub mod relay;
pub mod session_file;
pub mod view;
