//! Tools from definitions that somebody else has written.

use bowline_proto::json::Json;
use bowline_proto::model;

use super::Tool;
use super::repair::Absent;
use super::start::{Typed, erased};
use crate::Context;
use crate::server::output::ToolOutput;

impl Tool {
    /// Creates a tool from a definition, such as one that another server lists, and a handler of
    /// its arguments as JSON.
    ///
    /// The definition is listed as it is, with its schemas to the letter. Neither the arguments nor
    /// the result are validated against them: that is up to the handler, or to whatever it calls.
    /// Only null is dropped where an argument may be absent but not null.
    ///
    /// ```
    /// use bowline::{Context, Json, Server, Tool, model};
    /// use serde_json::json;
    ///
    /// let definition: model::Tool = serde_json::from_value(json!({
    ///     "name": "search",
    ///     "inputSchema": { "type": "object", "properties": { "query": { "type": "string" } } },
    ///     "x-vendor": { "cost": 3 }
    /// }))?;
    /// let search = Tool::from_model(definition, |_: Context, arguments: Json| async move {
    ///     format!("{arguments} was not found")
    /// });
    /// let server = Server::new("front", "1.0.0").with(search);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_model<R>(
        definition: model::Tool,
        handler: impl Fn(Context, Json) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future + Send + 'static,
        R::Output: ToolOutput + Send + 'static,
    {
        let input_schema = definition.input_schema.to_value();
        let absent = Absent::of(&input_schema);
        let run = move |context: &Context, arguments: Json| {
            let future = handler(context.clone(), absent.without_null(arguments));
            async move { future.await.into_outcome() }
        };
        let start = erased::<R::Output>(Typed::new(run));
        Self { definition, ..Self::assemble("", input_schema, None, start) }
    }

    /// The same for a handler that passes calls on: null stays, and the handler finds the
    /// parameters as they came.
    #[cfg(feature = "client")]
    pub(crate) fn passing_on<R>(
        definition: model::Tool,
        handler: impl Fn(Context, Json) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future + Send + 'static,
        R::Output: ToolOutput + Send + 'static,
    {
        let input_schema = definition.input_schema.to_value();
        let run = move |context: &Context, arguments: Json| {
            let future = handler(context.clone(), arguments);
            async move { future.await.into_outcome() }
        };
        let start = erased::<R::Output>(Typed::new(run));
        Self { definition, passes_on: true, ..Self::assemble("", input_schema, None, start) }
    }
}
