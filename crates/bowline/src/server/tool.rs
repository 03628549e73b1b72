//! Tools: the builder, and what runs one.

mod appear;
mod check;
mod entry;
mod given;
mod input;
mod repair;
mod start;
mod task;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http")]
use bowline_proto::http::ParamHeaders;
use bowline_proto::json::Json;
use bowline_proto::model::{self, Icon, ToolAnnotations};
use bowline_proto::revision::describes_object;
use serde_json::Value;

use self::check::Check;
pub(crate) use self::entry::Entry;
use self::input::Input;
pub(crate) use self::start::Start;
use self::start::{AlwaysValidated, Typed, erased};
use super::caller::Caller;
use super::context::Context;
use super::error::BuildError;
use super::handler::Handler;
use super::nest::Nest;
use super::output::ToolOutput;
use super::portable;
use super::schema;
use super::scopes::Scopes;
use super::state::Need;
use super::tasks::TaskMode;

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
///
/// # Arguments
///
/// The same rules hold for closures, for `#[tool]` and for tools without arguments:
///
/// - Arguments that the schema does not name are rejected, with a message that lists the known
///   ones; the schema says `"additionalProperties": false`. A type takes more with a map that is
///   `#[serde(flatten)]`. Objects inside the arguments follow their own type.
/// - `null` for an optional argument counts as absent. A whole number may be spelled `5.0`.
/// - What the type does not check but the schema demands (lengths, ranges, patterns) is validated.
/// - Clients of 2025-11-25 and later get the message as a result with `isError`, which the model
///   reads; older ones get an error with the code -32602.
///
/// # Schemas
///
/// Those of types are listed as all agent frameworks and model providers take them: always with
/// `properties`, optional arguments without `null`, unit variants as an `enum` with their
/// documentation in the description, no formats that are names of Rust types.
///
/// [`Tool::lenient`] accepts more. A schema from [`Tool::raw`] or [`Tool::input_schema`] decides
/// itself which arguments there are.
///
/// Guides: [tasks](crate::guide::tasks), for calls that take long, and [apps](crate::guide::apps).
#[must_use = "a tool does nothing until it is added to a server"]
pub struct Tool {
    /// Without the schemas, unless it was given as a whole.
    pub(crate) definition: model::Tool,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) start: Arc<dyn Start>,
    is_lenient: bool,
    pub(crate) is_enabled: bool,
    is_listed: bool,
    pub(crate) nest: Nest,
    pub(crate) timeout: Option<Duration>,
    pub(crate) visible: Option<Visible>,
    pub(crate) scopes: Scopes,
    task: Option<TaskMode>,
    reruns: bool,
    /// Whether the handler passes the parameters on as they came.
    passes_on: bool,
    needs: Vec<Need>,
}

/// Decides which callers can see something.
pub(crate) type Visible = Arc<dyn Fn(&Caller) -> bool + Send + Sync>;

impl Tool {
    /// Creates a tool with a name and a handler. The schemas follow from the types of its arguments
    /// and its output.
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
        let start = erased::<H::Output>(Typed::new(run));
        Self::assemble(name, input_schema, H::Output::output_schema(), start)
    }

    /// Creates a tool whose arguments are described by a schema instead of a type, and always
    /// validated.
    pub fn raw<R>(
        name: impl Into<String>,
        input_schema: Value,
        handler: impl Fn(Context, Json) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future + Send + 'static,
        R::Output: ToolOutput + Send + 'static,
    {
        let run = move |context: &Context, arguments: Json| {
            let future = handler(context.clone(), arguments);
            async move { future.await.into_outcome() }
        };
        let start = erased::<R::Output>(Typed::validated(run));
        Self::assemble(name, input_schema, R::Output::output_schema(), start)
    }

    fn assemble(
        name: impl Into<String>,
        input_schema: Value,
        output_schema: Option<Value>,
        start: Arc<dyn Start>,
    ) -> Self {
        Self {
            definition: model::Tool::new(name, Json::null()),
            input_schema,
            output_schema,
            start,
            is_lenient: false,
            is_enabled: true,
            is_listed: true,
            nest: Nest::default(),
            timeout: None,
            visible: None,
            scopes: Scopes::default(),
            task: None,
            reruns: false,
            passes_on: false,
            needs: Vec::new(),
        }
    }

    /// Sets the name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Describes for the model what it does.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets all annotations at once.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Declares that it changes nothing.
    pub fn read_only(self) -> Self {
        self.annotate(|hints| hints.read_only_hint = Some(true))
    }

    /// Declares whether its changes may destroy something.
    pub fn destructive(self, is_destructive: bool) -> Self {
        self.annotate(|hints| hints.destructive_hint = Some(is_destructive))
    }

    /// Declares that calling it twice has the same effect as calling it once.
    pub fn idempotent(self) -> Self {
        self.annotate(|hints| hints.idempotent_hint = Some(true))
    }

    /// Declares whether it interacts with external systems.
    pub fn open_world(self, is_open: bool) -> Self {
        self.annotate(|hints| hints.open_world_hint = Some(is_open))
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition.annotations.get_or_insert_default());
        self
    }

    /// Adds an icon, or the URL of one. There can be several.
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.definition.icons.get_or_insert_default().push(icon.into());
        self
    }

    /// Sets a member of the definition's `_meta`.
    pub fn meta(mut self, key: &str, value: impl serde::Serialize) -> Self {
        self.definition.meta.get_or_insert_default().set(key, value);
        self
    }

    /// Replaces the schema of the arguments. They are always validated against it.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = schema;
        self.definition.input_schema = Json::null();
        self.start = Arc::new(AlwaysValidated(self.start));
        self
    }

    /// Replaces the schema of the structured content.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.definition.output_schema = Some(Json::from(&schema));
        self.output_schema = Some(schema);
        self
    }

    /// Requires these scopes of the caller, where clients are authenticated. Callers that lack one
    /// are told which scopes to get.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes);
        self
    }

    /// Declares that the handler uses a [state](crate::Context::state) of this type. A server that
    /// lacks it cannot be built, so the handler always finds it.
    pub fn needs_state<T: Any + Send + Sync>(mut self) -> Self {
        self.needs.push(Need::of::<T>());
        self
    }

    /// Hides it until [`Registry::enable_tool`](crate::Registry::enable_tool) is called.
    pub fn disabled(mut self) -> Self {
        self.is_enabled = false;
        self
    }

    /// Checks the definition and freezes it.
    pub(crate) fn build(self) -> Result<Entry, BuildError> {
        let name = &self.definition.name;
        check_name("tool", name)?;
        self.scopes.check("tool", name)?;
        let bad = |which, reason: String| BuildError::Schema { tool: name.clone(), which, reason };
        let is_given = brings_schema(&self.definition);
        if !is_given && !schema::is_object(&self.input_schema) {
            return Err(bad("input", r#"must have "type": "object""#.to_owned()));
        }
        #[cfg(feature = "http")]
        let headers = ParamHeaders::parse(&self.input_schema)
            .map_err(|error| bad("input", error.to_string()))?;
        let always = self.start.needs_validation();
        let input = if is_given {
            Input::unchecked(self.input_schema)
        } else {
            Input::build(self.input_schema, always, self.is_lenient)
                .map_err(|reason| bad("input", reason))?
        };
        let wraps_content = self.output_schema.as_ref().is_some_and(|it| !describes_object(it));
        // What the type guarantees is not validated again.
        let output = self.output_schema.map(|schema| Check::build(schema, false));
        let output = output.transpose().map_err(|reason| bad("output", reason))?;
        Ok(Entry {
            #[cfg(feature = "http")]
            headers,
            definition: self.definition,
            asks: self.start.asks(),
            start: self.start,
            input,
            output,
            wraps_content,
            is_enabled: self.is_enabled,
            is_listed: self.is_listed,
            nest: self.nest,
            timeout: self.timeout,
            visible: self.visible,
            scopes: self.scopes,
            task: self.task,
            reruns: self.reruns,
            passes_on: self.passes_on,
            needs: self.needs,
        })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { definition, input_schema, output_schema, start, .. } = self;
        let schemas = (input_schema, output_schema.as_ref());
        let definition = described(definition, schemas, start.needs_validation());
        f.debug_struct("Tool").field("definition", &definition).finish_non_exhaustive()
    }
}

/// The definition as in lists: with its schemas, in the form that all clients take unless the
/// author wrote them, and with its title where older clients look for it.
fn described(
    definition: &model::Tool,
    (input, output): (&Value, Option<&Value>),
    is_input_written: bool,
) -> model::Tool {
    let mut definition = definition.clone();
    if brings_schema(&definition) {
        return definition;
    }
    let mut input = input.clone();
    match is_input_written {
        true => portable::ensure_properties(&mut input),
        false => input = portable::arguments(input),
    }
    definition.input_schema = Json::from(&input);
    if definition.output_schema.is_none() {
        let output = output.cloned().map(portable::output);
        definition.output_schema = output.as_ref().map(Json::from);
    }
    if let Some(title) = &definition.title {
        let annotations = definition.annotations.get_or_insert_default();
        annotations.title.get_or_insert_with(|| title.clone());
    }
    definition
}

/// Whether a definition was given as a whole, with its schemas.
pub(super) fn brings_schema(definition: &model::Tool) -> bool {
    definition.input_schema.as_str() != "null"
}

/// Names are not restricted further, because only some clients do.
pub(crate) fn check_name(kind: &'static str, name: &str) -> Result<(), BuildError> {
    let reason = match name {
        "" => "a name must not be empty",
        name if name.len() > 128 => "a name must not be longer than 128 bytes",
        name if name.chars().any(char::is_control) => "a name must not hold control characters",
        _ => return Ok(()),
    };
    Err(BuildError::Name { kind, name: name.to_owned(), reason })
}
