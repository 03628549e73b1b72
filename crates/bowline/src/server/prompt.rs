//! Prompts: the builder, and what runs one.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::model::{self, GetPromptResult, Icon, PromptArgument, PromptMessage};
use serde_json::Value;

use super::caller::Caller;
use super::complete::{Complete, Completing, completer};
use super::context::Context;
use super::error::{BuildError, HandlerError};
use super::handler::{BoxFuture, Handler};
use super::nest::Nest;
use super::scopes::Scopes;
use super::state::Need;
use super::tool::{Visible, check_name};
use super::{schema, step, strings};

/// A template of messages for users to pick, with arguments to fill in.
///
/// ```
/// use bowline::{Prompt, Server};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// The code to look at.
///     code: String,
/// }
///
/// let review = Prompt::new("review", |review: Review| async move {
///     format!("Please review this code:\n\n{}", review.code)
/// });
/// let server = Server::new("reviewer", "1.0.0").with(review);
/// ```
#[must_use = "a prompt does nothing until it is added to a server"]
pub struct Prompt {
    pub(crate) definition: model::Prompt,
    get: Arc<dyn Get>,
    asks: bool,
    is_given: bool,
    /// Whether the handler passes the parameters on as they came.
    passes_on: bool,
    completers: HashMap<String, Arc<dyn Complete>>,
    is_enabled: bool,
    pub(crate) nest: Nest,
    visible: Option<Visible>,
    scopes: Scopes,
    needs: Vec<Need>,
}

impl Prompt {
    /// Creates a prompt with a name and a handler. The type of the handler's arguments says what
    /// there is to fill in; other arguments are rejected, as they are by a [`Tool`](crate::Tool).
    pub fn new<Shape, H>(name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<Shape>,
        H::Output: PromptOutput,
        Shape: 'static,
    {
        let schema = H::arguments_schema();
        let completers = word_completers(&schema);
        let arguments = arguments(&schema);
        let names: Vec<_> = arguments.iter().map(|argument| argument.name.as_str()).collect();
        let known = schema::is_closed(&schema).then(|| names.join(", "));
        let begin = move |context: &Context, texts| {
            let arguments = strings::read(texts, known.as_deref())?;
            let future = handler.start(context, arguments);
            Ok(Box::pin(async move { future.await.into_prompt() }) as BoxFuture<_>)
        };
        let definition = model::Prompt {
            name: name.into(),
            arguments: (!arguments.is_empty()).then_some(arguments),
            ..model::Prompt::default()
        };
        Self { completers, ..Self::assemble::<H::Output>(definition, begin) }
    }

    /// Creates a prompt from a definition, such as one that another server lists, and a handler of
    /// its arguments as a JSON object of strings.
    ///
    /// The definition is listed as it is, and so is the result sent.
    ///
    /// ```
    /// use bowline::{Context, Json, Prompt, Server, model};
    ///
    /// let definition = model::Prompt { name: "review".to_owned(), ..Default::default() };
    /// let review = Prompt::from_model(definition, |_: Context, arguments: Json| async move {
    ///     format!("Please review {arguments}")
    /// });
    /// let server = Server::new("front", "1.0.0").with(review);
    /// ```
    pub fn from_model<R>(
        definition: model::Prompt,
        handler: impl Fn(Context, Json) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future + Send + 'static,
        R::Output: PromptOutput + Send + 'static,
    {
        let begin = move |context: &Context, texts: Vec<(String, String)>| {
            let arguments = Json::new(&texts.into_iter().collect::<Members<String>>());
            let arguments = arguments.map_err(|error| error.to_string())?;
            let future = handler(context.clone(), arguments);
            Ok(Box::pin(async move { future.await.into_prompt() }) as BoxFuture<_>)
        };
        Self { is_given: true, ..Self::assemble::<R::Output>(definition, begin) }
    }

    fn assemble<O: PromptOutput>(definition: model::Prompt, begin: impl Get + 'static) -> Self {
        let get: Arc<dyn Get> = if O::ASKS { Arc::new(asking(begin)) } else { Arc::new(begin) };
        Self {
            definition,
            get,
            asks: O::ASKS,
            is_given: false,
            passes_on: false,
            completers: HashMap::new(),
            is_enabled: true,
            nest: Nest::default(),
            visible: None,
            scopes: Scopes::default(),
            needs: Vec::new(),
        }
    }

    /// Sets the name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Describes what it is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
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

    /// Suggests values for an argument. Enumerations suggest their variants by default.
    pub fn complete<F, R>(mut self, argument: &str, complete: F) -> Self
    where
        F: Fn(Completing) -> R + Send + Sync + 'static,
        R: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(argument.to_owned(), completer(complete));
        self
    }

    /// Lets the handler find the parameters as they came, because it passes them on.
    #[cfg(feature = "client")]
    pub(crate) fn passing_on(mut self) -> Self {
        self.passes_on = true;
        self
    }

    /// Suggests values for every argument of the definition.
    #[cfg(feature = "client")]
    pub(crate) fn complete_all(mut self, completer: &Arc<dyn Complete>) -> Self {
        let names = self.definition.arguments.iter().flatten().map(|it| it.name.clone());
        self.completers = names.map(|name| (name, Arc::clone(completer))).collect();
        self
    }

    /// Restricts it to callers that the rule accepts. For all others it does not exist.
    pub fn visible_to(mut self, rule: impl Fn(&Caller) -> bool + Send + Sync + 'static) -> Self {
        self.visible = Some(Arc::new(rule));
        self
    }

    /// Requires these scopes of the caller, where clients are authenticated.
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

    /// Hides it until [`Registry::enable_prompt`](crate::Registry::enable_prompt) is called.
    pub fn disabled(mut self) -> Self {
        self.is_enabled = false;
        self
    }

    pub(crate) fn build(self) -> Result<Entry, BuildError> {
        check_name("prompt", &self.definition.name)?;
        self.scopes.check("prompt", &self.definition.name)?;
        Ok(Entry {
            definition: self.definition,
            get: self.get,
            asks: self.asks,
            is_given: self.is_given,
            passes_on: self.passes_on,
            completers: self.completers,
            is_enabled: self.is_enabled,
            nest: self.nest,
            visible: self.visible,
            scopes: self.scopes,
            needs: self.needs,
        })
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("definition", &self.definition).finish_non_exhaustive()
    }
}

fn arguments(schema: &Value) -> Vec<PromptArgument> {
    let argument = |property: schema::Property<'_>| PromptArgument {
        name: property.name.to_owned(),
        title: property.schema.get("title").and_then(Value::as_str).map(str::to_owned),
        description: schema::description(property.schema),
        required: Some(property.is_required),
    };
    schema::properties(schema).into_iter().map(argument).collect()
}

/// Completers for arguments that are enumerations.
pub(crate) fn word_completers(schema: &Value) -> HashMap<String, Arc<dyn Complete>> {
    let with_words = |property: schema::Property<'_>| {
        let words = schema::words(property.schema);
        let suggest = move |completing: Completing| {
            let found = completing.matching(&words);
            async move { found }
        };
        let has_words = !schema::words(property.schema).is_empty();
        has_words.then(|| (property.name.to_owned(), completer(suggest)))
    };
    schema::properties(schema).into_iter().filter_map(with_words).collect()
}

/// A registered prompt.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) definition: model::Prompt,
    pub(crate) get: Arc<dyn Get>,
    /// Whether the handler can return questions.
    pub(crate) asks: bool,
    /// Whether the definition was given as a whole: its results are not completed.
    is_given: bool,
    /// Whether the handler passes the parameters on as they came.
    pub(crate) passes_on: bool,
    pub(crate) completers: HashMap<String, Arc<dyn Complete>>,
    pub(crate) is_enabled: bool,
    pub(crate) nest: Nest,
    pub(crate) visible: Option<Visible>,
    pub(crate) scopes: Scopes,
    pub(crate) needs: Vec<Need>,
}

impl Entry {
    /// Whether both have the same handler, whatever happened to their definitions.
    #[cfg(feature = "client")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.get), Arc::as_ptr(&other.get))
    }

    /// The description of results that have none.
    pub(crate) fn default_description(&self) -> Option<String> {
        self.definition.description.clone().filter(|_| !self.is_given)
    }
}

/// A handler that can return questions.
fn asking(begin: impl Get + 'static) -> impl Get {
    let begin = Arc::new(begin);
    move |context: &Context, texts: Vec<(String, String)>| {
        let begin = Arc::clone(&begin);
        step::start(context, move |context| begin.start(context, texts.clone()))
    }
}

/// The result of a prompt, or its error.
pub type PromptOutcome = Result<GetPromptResult, HandlerError>;

/// A type-erased handler that is started with text arguments.
pub(crate) trait Get: Send + Sync {
    fn start(
        &self,
        context: &Context,
        texts: Vec<(String, String)>,
    ) -> Result<BoxFuture<PromptOutcome>, String>;
}

impl<F> Get for F
where
    F: Fn(&Context, Vec<(String, String)>) -> Result<BoxFuture<PromptOutcome>, String>
        + Send
        + Sync,
{
    fn start(
        &self,
        context: &Context,
        texts: Vec<(String, String)>,
    ) -> Result<BoxFuture<PromptOutcome>, String> {
        self(context, texts)
    }
}

/// A value that a prompt may return: text (as the user), messages, or a whole result.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    note = "return text, a `PromptMessage`, a `Vec<PromptMessage>`, a `GetPromptResult`, or a `Result` of one"
)]
pub trait PromptOutput {
    /// Whether it can be questions: see [`Step`](crate::Step).
    const ASKS: bool = false;

    /// Converts it into the result.
    fn into_prompt(self) -> PromptOutcome;
}

impl PromptOutput for GetPromptResult {
    fn into_prompt(self) -> PromptOutcome {
        Ok(self)
    }
}

impl PromptOutput for Vec<PromptMessage> {
    fn into_prompt(self) -> PromptOutcome {
        Ok(GetPromptResult { messages: self, ..GetPromptResult::default() })
    }
}

impl PromptOutput for PromptMessage {
    fn into_prompt(self) -> PromptOutcome {
        vec![self].into_prompt()
    }
}

impl PromptOutput for String {
    fn into_prompt(self) -> PromptOutcome {
        PromptMessage::user(self).into_prompt()
    }
}

impl PromptOutput for &'static str {
    fn into_prompt(self) -> PromptOutcome {
        PromptMessage::user(self).into_prompt()
    }
}

impl<T: PromptOutput, E: Into<HandlerError>> PromptOutput for Result<T, E> {
    const ASKS: bool = T::ASKS;

    fn into_prompt(self) -> PromptOutcome {
        match self {
            Ok(value) => value.into_prompt(),
            Err(error) => Err(error.into()),
        }
    }
}
