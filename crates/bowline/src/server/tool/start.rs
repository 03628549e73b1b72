//! Type-erased handlers of tools, and how a call of one starts.

use std::marker::PhantomData;
use std::sync::Arc;

use bowline_proto::decode::decode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::server::context::Context;
use crate::server::handler::BoxFuture;
use crate::server::output::ToolOutcome;

/// A type-erased handler that is started with the text of its arguments.
pub(crate) trait Start: Send + Sync {
    fn start(&self, context: &Context, arguments: &str) -> Result<BoxFuture<ToolOutcome>, String>;

    /// Whether only the schema checks the arguments.
    fn needs_validation(&self) -> bool;
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
    fn start(&self, context: &Context, arguments: &str) -> Result<BoxFuture<ToolOutcome>, String> {
        let arguments = read_arguments(arguments)?;
        Ok(Box::pin((self.run)(context, arguments)))
    }

    fn needs_validation(&self) -> bool {
        self.is_validated
    }
}

/// A handler whose schema was given by the author, and may say more than its type.
pub(super) struct AlwaysValidated(pub(super) Arc<dyn Start>);

impl Start for AlwaysValidated {
    fn start(&self, context: &Context, arguments: &str) -> Result<BoxFuture<ToolOutcome>, String> {
        self.0.start(context, arguments)
    }

    fn needs_validation(&self) -> bool {
        true
    }
}

fn read_arguments<'a, A: Deserialize<'a>>(text: &'a str) -> Result<A, String> {
    decode("", "arguments", text)
        .map_err(|error| error.to_string().trim_start_matches(": ").to_owned())
}
