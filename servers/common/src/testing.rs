//! For the tests of servers: a server as a child process, a service on loopback, free ports, seed
//! notes, and what every server must do.

#![expect(clippy::missing_panics_doc, reason = "a test ends where something is missing")]

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
pub use self::service::{Answer, Asked, Service, answer_with};
