//! The commands that ask a server one thing.

pub(crate) mod apps;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod listen;
pub(crate) mod login;
pub(crate) mod mock;
pub(crate) mod new;
pub(crate) mod ping;
pub(crate) mod prompt;
pub(crate) mod raw;
pub(crate) mod read;
pub(crate) mod replay;
pub(crate) mod servers;
pub(crate) mod shell;
pub(crate) mod skills;
pub(crate) mod tasks;
pub(crate) mod tools;
pub(crate) mod watch;
