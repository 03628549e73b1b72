//! What a server answers although it does not list it: resources under any URI, and methods that
//! the protocol does not have. A proxy that is the whole server passes both on.

use std::sync::Arc;

#[cfg(feature = "client")]
use bowline_proto::model::Implementation;

#[cfg(feature = "client")]
use super::Server;
use super::answer::Outcome;
use super::context::Context;
#[cfg(feature = "client")]
use super::error::BuildError;
use super::handler::BoxFuture;
use super::resource;

/// What a server answers although it does not list it.
pub(crate) struct Beyond {
    /// Reads resources that are in no list.
    pub(crate) resource: Arc<resource::Entry>,
    /// Answers methods that the protocol does not have.
    pub(crate) method: Box<Answers>,
    /// Hears the methods of notifications that stop here.
    pub(crate) notice: Box<dyn Fn(&str) + Send + Sync>,
}

/// A function from a method to what becomes of the request.
type Answers = dyn Fn(Context, String) -> BoxFuture<Outcome> + Send + Sync;

#[cfg(feature = "client")]
impl Server {
    /// Introduces itself as another server does.
    pub(crate) fn introduced_as(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Answers what it does not list, too.
    pub(crate) fn beyond(mut self, beyond: Result<Beyond, BuildError>) -> Self {
        match beyond {
            Ok(beyond) => self.beyond = Some(beyond),
            Err(problem) => drop(self.problem.get_or_insert(problem)),
        }
        self
    }
}
