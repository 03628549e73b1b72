//! Support for the tests of servers: child processes, HTTP services on loopback, free ports, golden
//! files, seed notes, and what every server must do.

#![expect(clippy::missing_panics_doc, reason = "a test fails by panicking")]

mod golden;
mod manners;
mod notes;
mod port;
mod process;
mod service;

pub use self::golden::golden;
pub use self::manners::check_manners;
pub use self::notes::Note;
pub use self::port::free_port;
pub use self::process::{Process, Said, run};
pub use self::service::{Asked, HttpReply, Service, answer_with};
