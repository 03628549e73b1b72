//! Type-erased handlers of tools, and how a call of one starts.

use std::marker::PhantomData;
use std::sync::Arc;

use bowline_proto::decode::{decode, decode_closed};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::input::plain;
use crate::server::context::Context;
use crate::server::handler::BoxFuture;
use crate::server::output::{ToolOutcome, ToolOutput};
use crate::server::step;

/// A type-erased handler that is started with the text of its arguments.
pub(crate) trait Start: Send + Sync {
    /// Starts it. If it is `closed`, unknown arguments make it fail, and so does an unusual
    /// spelling; the message does not matter then.
    fn start(
        &self,
        context: &Context,
        arguments: &str,
        closed: bool,
    ) -> Result<BoxFuture<ToolOutcome>, String>;

    /// Whether only the schema checks the arguments.
    fn needs_validation(&self) -> bool;

    /// Whether it can return questions.
    fn asks(&self) -> bool {
        false
    }
}

/// A handler, type-erased; started again where its output can be questions.
pub(super) fn erased<O: ToolOutput>(start: impl Start + 'static) -> Arc<dyn Start> {
    if O::ASKS { Arc::new(Asking(Arc::new(start))) } else { Arc::new(start) }
}

/// A handler with typed arguments.
pub(super) struct Typed<A, F> {
    run: F,
    is_validated: bool,
    arguments: PhantomData<fn(A)>,
}

impl<A, F> Typed<A, F> {
    pub(super) fn new(run: F) -> Self {
        Self { run, is_validated: false, arguments: PhantomData }
    }

    pub(super) fn validated(run: F) -> Self {
        Self { is_validated: true, ..Self::new(run) }
    }
}

impl<A, F, R> Start for Typed<A, F>
where
    A: DeserializeOwned + 'static,
    F: Fn(&Context, A) -> R + Send + Sync,
    R: Future<Output = ToolOutcome> + Send + 'static,
{
    fn start(
        &self,
        context: &Context,
        arguments: &str,
        closed: bool,
    ) -> Result<BoxFuture<ToolOutcome>, String> {
        let arguments = read_arguments(arguments, closed)?;
        Ok(Box::pin((self.run)(context, arguments)))
    }

    fn needs_validation(&self) -> bool {
        self.is_validated
    }
}

/// A handler whose schema was given by the author, and may say more than its type.
pub(super) struct AlwaysValidated(pub(super) Arc<dyn Start>);

impl Start for AlwaysValidated {
    fn start(
        &self,
        context: &Context,
        arguments: &str,
        closed: bool,
    ) -> Result<BoxFuture<ToolOutcome>, String> {
        self.0.start(context, arguments, closed)
    }

    fn needs_validation(&self) -> bool {
        true
    }

    fn asks(&self) -> bool {
        self.0.asks()
    }
}

/// A handler that can return questions.
pub(super) struct Asking<S>(pub(super) Arc<S>);

impl<S: Start + 'static> Start for Asking<S> {
    fn start(
        &self,
        context: &Context,
        arguments: &str,
        closed: bool,
    ) -> Result<BoxFuture<ToolOutcome>, String> {
        let (handler, arguments) = (Arc::clone(&self.0), arguments.to_owned());
        step::start(context, move |context| handler.start(context, &arguments, closed))
    }

    fn needs_validation(&self) -> bool {
        self.0.needs_validation()
    }

    fn asks(&self) -> bool {
        true
    }
}

fn read_arguments<'a, A: Deserialize<'a>>(text: &'a str, closed: bool) -> Result<A, String> {
    if closed {
        return decode_closed(text).ok_or_else(String::new);
    }
    decode("", "arguments", text).map_err(|error| plain(&error))
}
