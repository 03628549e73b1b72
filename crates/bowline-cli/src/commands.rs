//! The commands that ask a server one thing.

pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod listen;
pub(crate) mod login;
pub(crate) mod ping;
pub(crate) mod prompt;
pub(crate) mod raw;
pub(crate) mod read;
pub(crate) mod servers;
pub(crate) mod shell;
pub(crate) mod tools;
pub(crate) mod watch;

use bowline::Json;
use serde::de::DeserializeOwned;

use crate::failure::{Code, Failure};

/// Reads a result as its type.
fn parse<T: DeserializeOwned>(result: &Json) -> Result<T, Failure> {
    result.parse().map_err(|error| malformed(&format!("cannot read the server's answer: {error}")))
}

fn malformed(what: &str) -> Failure {
    Failure::new(Code::Refused, what).with_remedy("--output json prints it unchanged")
}
