//! Type-erased handlers of resources.

use std::sync::Arc;

use super::ResourceOutcome;
use crate::server::context::Context;
use crate::server::handler::BoxFuture;
use crate::server::step;

/// A type-erased handler that is started with the variables of a URI.
pub(crate) trait Read: Send + Sync {
    fn start(
        &self,
        context: &Context,
        parts: Vec<(String, String)>,
        uri: String,
    ) -> Result<BoxFuture<ResourceOutcome>, String>;
}

impl<F> Read for F
where
    F: Fn(&Context, Vec<(String, String)>, String) -> Result<BoxFuture<ResourceOutcome>, String>
        + Send
        + Sync,
{
    fn start(
        &self,
        context: &Context,
        parts: Vec<(String, String)>,
        uri: String,
    ) -> Result<BoxFuture<ResourceOutcome>, String> {
        self(context, parts, uri)
    }
}

/// A handler that can return questions.
pub(super) fn asking(begin: impl Read + 'static) -> impl Read {
    let begin = Arc::new(begin);
    move |context: &Context, parts: Vec<(String, String)>, uri: String| {
        let begin = Arc::clone(&begin);
        step::start(context, move |context| begin.start(context, parts.clone(), uri.clone()))
    }
}
