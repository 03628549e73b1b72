//! The types of the protocol: one plain struct or enum per concept, for all revisions at once.
//!
//! Names are those of the specification. A member that some revision lacks is an `Option`; what to
//! send to whom is decided in one place, [`revision`](crate::revision), when a value is encoded.
//! Handlers and callers never see the difference.
//!
//! Members that the specification does not define are kept in `extra` wherever it leaves an object
//! open and the object may be passed on: capabilities, listed items, results.

mod capability;
mod completion;
mod content;
mod elicitation;
mod identity;
mod input;
mod lifecycle;
mod logging;
mod meta;
mod page;
mod progress;
mod prompt;
mod resource;
mod roots;
mod sampling;
pub mod skill;
mod subscription;
mod task;
pub mod task_extension;
mod tool;
pub mod ui;
mod write;

pub use self::capability::*;
pub use self::completion::*;
pub use self::content::*;
pub use self::elicitation::*;
pub use self::identity::*;
pub use self::input::*;
pub use self::lifecycle::*;
pub use self::logging::*;
pub use self::meta::*;
pub use self::page::*;
pub use self::progress::*;
pub use self::prompt::*;
pub use self::resource::*;
pub use self::roots::*;
pub use self::sampling::*;
pub use self::subscription::*;
pub use self::task::*;
pub use self::tool::*;

#[cfg(test)]
mod tests;
