//! Tools: the builder, and what is ready to be called.

mod check;
mod start;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::ErrorObject;
#[cfg(feature = "http")]
use bowline_proto::http::ParamHeaders;
use bowline_proto::json::Json;
use bowline_proto::model::{self, CallToolResult, Icon, ToolAnnotations};
use bowline_proto::raw::Raw;
use serde_json::Value;

use self::check::Check;
pub(crate) use self::start::Start;
use self::start::{AlwaysValidated, Typed};
use super::answer::{Answer, Outcome};
use super::caller::Caller;
use super::context::Context;
use super::error::BuildError;
use super::handler::{BoxFuture, Handler};
use super::nest::Nest;
use super::output::{ToolOutcome, ToolOutput};
use super::schema;
use super::scopes::Scopes;

/// A function that a client's model may call.
///
/// ```
/// use bowline::{Server, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum {
///     /// The first number.
///     a: i64,
///     /// The second number.
///     b: i64,
/// }
///
/// let sum = Tool::new("sum", |sum: Sum| async move { sum.a + sum.b })
///     .description("Add two numbers")
///     .read_only();
/// let server = Server::new("calculator", "1.0.0").with(sum);
/// ```
#[must_use = "a tool does nothing until it is added to a server"]
pub struct Tool {
    /// Short of the schemas.
    pub(crate) definition: model::Tool,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) start: Arc<dyn Start>,
    pub(crate) is_enabled: bool,
    pub(crate) nest: Nest,
    pub(crate) timeout: Option<Duration>,
    pub(crate) visible: Option<Visible>,
    pub(crate) scopes: Scopes,
}

/// Decides for whom something is there.
pub(crate) type Visible = Arc<dyn Fn(&Caller) -> bool + Send + Sync>;

impl Tool {
    /// A tool with a name and a handler. Arguments and output tell their schemas themselves.
    pub fn new<Shape, H>(name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<Shape>,
        H::Output: ToolOutput,
        Shape: 'static,
    {
        let input_schema = H::arguments_schema();
        let run = move |context: &Context, arguments| {
            let future = handler.start(context, arguments);
            async move { future.await.into_outcome() }
        };
        Self::assemble(name, input_schema, H::Output::output_schema(), Typed::new(run))
    }

    /// A tool whose arguments are described by a schema instead of a type, and always validated.
    pub fn raw<R>(
        name: impl Into<String>,
        input_schema: Value,
        handler: impl Fn(Context, Json) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future + Send + 'static,
        R::Output: ToolOutput + Send + 'static,
    {
        let run = move |context: &Context, arguments| {
            let future = handler(context.clone(), arguments);
            async move { future.await.into_outcome() }
        };
        let output_schema = R::Output::output_schema();
        Self::assemble(name, input_schema, output_schema, Typed::<Json, _>::validated(run))
    }

    fn assemble(
        name: impl Into<String>,
        input_schema: Value,
        output_schema: Option<Value>,
        start: impl Start + 'static,
    ) -> Self {
        Self {
            definition: model::Tool::new(name, Json::null()),
            input_schema,
            output_schema,
            start: Arc::new(start),
            is_enabled: true,
            nest: Nest::default(),
            timeout: None,
            visible: None,
            scopes: Scopes::default(),
        }
    }

    /// The name people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// What it does, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// What calling it may do, all at once.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// It changes nothing.
    pub fn read_only(self) -> Self {
        self.annotate(|hints| hints.read_only_hint = Some(true))
    }

    /// Whether what it changes may be lost.
    pub fn destructive(self, is_destructive: bool) -> Self {
        self.annotate(|hints| hints.destructive_hint = Some(is_destructive))
    }

    /// Calling it twice is the same as once.
    pub fn idempotent(self) -> Self {
        self.annotate(|hints| hints.idempotent_hint = Some(true))
    }

    /// Whether it reaches out of its own system.
    pub fn open_world(self, is_open: bool) -> Self {
        self.annotate(|hints| hints.open_world_hint = Some(is_open))
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition.annotations.get_or_insert_default());
        self
    }

    /// A picture. Several can be added.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.get_or_insert_default().push(icon);
        self
    }

    /// A member of the definition's `_meta`.
    pub fn meta(mut self, key: &str, value: impl serde::Serialize) -> Self {
        self.definition.meta.get_or_insert_default().set(key, value);
        self
    }

    /// Another schema of the arguments than their type's. They are validated against it, always.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = schema;
        self.start = Arc::new(AlwaysValidated(self.start));
        self
    }

    /// Another schema of the structured content than its type's.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// For how long one call may run, other than [`Limits::deadline`](crate::Limits::deadline).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whom it is there for. For everybody else it does not exist.
    pub fn visible_to(mut self, rule: impl Fn(&Caller) -> bool + Send + Sync + 'static) -> Self {
        self.visible = Some(Arc::new(rule));
        self
    }

    /// What a client must be allowed to call it, where clients are authenticated. Those who are
    /// not are told which scopes to get.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes);
        self
    }

    /// Leaves it out until [`Registry::enable_tool`](crate::Registry::enable_tool).
    pub fn disabled(mut self) -> Self {
        self.is_enabled = false;
        self
    }

    /// Checks what can be checked before anybody calls, and freezes the rest.
    pub(crate) fn build(self) -> Result<Entry, BuildError> {
        let name = &self.definition.name;
        check_name("tool", name)?;
        self.scopes.check("tool", name)?;
        let bad = |which, reason: String| BuildError::Schema { tool: name.clone(), which, reason };
        if !schema::is_object(&self.input_schema) {
            return Err(bad("input", r#"must have "type": "object""#.to_owned()));
        }
        #[cfg(feature = "http")]
        let headers = ParamHeaders::parse(&self.input_schema)
            .map_err(|error| bad("input", error.to_string()))?;
        let input = Check::build(self.input_schema, self.start.needs_validation())
            .map_err(|reason| bad("input", reason))?;
        // What a type guarantees is not checked again.
        let output = self.output_schema.map(|schema| Check::build(schema, false));
        let output = output.transpose().map_err(|reason| bad("output", reason))?;
        Ok(Entry {
            #[cfg(feature = "http")]
            headers,
            definition: self.definition,
            start: self.start,
            input,
            output,
            is_enabled: self.is_enabled,
            nest: self.nest,
            timeout: self.timeout,
            visible: self.visible,
            scopes: self.scopes,
        })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { definition, input_schema, output_schema, .. } = self;
        let definition = described(definition, input_schema, output_schema.as_ref());
        f.debug_struct("Tool").field("definition", &definition).finish_non_exhaustive()
    }
}

/// The definition with its schemas, as it is listed.
fn described(definition: &model::Tool, input: &Value, output: Option<&Value>) -> model::Tool {
    let mut definition = definition.clone();
    definition.input_schema = Json::from(input);
    definition.output_schema = output.map(Json::from);
    definition
}

/// Names are not restricted further: a peer that minds says so, and others may not.
pub(crate) fn check_name(kind: &'static str, name: &str) -> Result<(), BuildError> {
    let reason = match name {
        "" => "a name must not be empty",
        name if name.len() > 128 => "a name must not be longer than 128 bytes",
        name if name.chars().any(char::is_control) => "a name must not hold control characters",
        _ => return Ok(()),
    };
    Err(BuildError::Name { kind, name: name.to_owned(), reason })
}

/// A tool that is ready to be called.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Short of the schemas, which are written when somebody wants to see them.
    pub(crate) definition: model::Tool,
    /// Which arguments its calls repeat as headers.
    #[cfg(feature = "http")]
    pub(crate) headers: ParamHeaders,
    start: Arc<dyn Start>,
    input: Check,
    output: Option<Check>,
    pub(crate) is_enabled: bool,
    pub(crate) nest: Nest,
    pub(crate) timeout: Option<Duration>,
    pub(crate) visible: Option<Visible>,
    pub(crate) scopes: Scopes,
}

impl Entry {
    /// What is listed.
    pub(crate) fn described(&self) -> model::Tool {
        let output = self.output.as_ref().map(Check::schema);
        described(&self.definition, self.input.schema(), output)
    }

    /// Reads the arguments and starts the handler.
    ///
    /// # Errors
    /// When the arguments are wrong; says which and how, for the model.
    pub(crate) fn start(
        &self,
        context: &Context,
        arguments: Option<Raw<'_>>,
    ) -> Result<BoxFuture<ToolOutcome>, String> {
        let text = arguments.map_or("{}", Raw::get);
        if self.input.is_needed {
            self.input.check("arguments", text)?;
        }
        self.start.start(context, text).map_err(|plain| {
            // The schema knows what is allowed, and how its author describes it.
            self.input.check("arguments", text).err().unwrap_or(plain)
        })
    }

    /// What a call comes to: the handler's answer, if it keeps to the output schema.
    #[inline]
    pub(crate) fn finish(&self, outcome: ToolOutcome) -> Outcome {
        match outcome {
            Ok(result) => match self.check_result(&result) {
                Ok(()) => Ok(Answer::Tool(result)),
                Err(error) => Err(error),
            },
            Err(error) => Err(error.into_error_object()),
        }
    }

    fn check_result(&self, result: &CallToolResult) -> Result<(), ErrorObject> {
        if result.is_error == Some(true) {
            return Ok(());
        }
        self.check_output(result.structured_content.as_ref()).map_err(|reason| {
            let name = &self.definition.name;
            tracing::error!(tool = %name, %reason, "a tool's answer does not match its output schema");
            let message =
                format!("tools/call: the answer of {name:?} does not match its output schema");
            ErrorObject::internal(message)
        })
    }

    /// Checks structured content against the output schema.
    fn check_output(&self, content: Option<&Json>) -> Result<(), String> {
        let Some(check) = &self.output else { return Ok(()) };
        match content {
            Some(content) if check.is_needed => check.check("structuredContent", content.as_str()),
            Some(_) => Ok(()),
            None => {
                Err("structuredContent is missing, though the tool has an output schema".to_owned())
            }
        }
    }
}
