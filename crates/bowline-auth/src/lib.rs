//! OAuth for the Model Context Protocol, both sides.
//!
//! - [`client`] gets tokens: discovery, registration, login, refresh, step-up, and the grants
//!   that need no person.
//! - [`verify`] checks tokens: JWT with published keys, introspection, static tokens, DPoP.
//! - [`jws`] has the JSON Web Signatures that both need.

pub mod client;
mod clock;
pub mod jws;
pub mod verify;
