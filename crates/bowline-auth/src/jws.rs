//! JSON Web Signatures: keys, signing, verifying.
//!
//! Asymmetric algorithms only. `none` and the HMAC family cannot be named here, so that no token
//! can choose them.

mod jwk;
mod object;
mod sign;
mod verify;

pub use self::jwk::{Jwk, JwkError, JwkSet};
pub(crate) use self::object::object;
pub use self::sign::{KeyError, SigningKey};
pub use self::verify::{Algorithm, Compact, Header, JwsError};
