//! Resources and resource templates: the builder, and what reads one.

mod output;
mod read;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bowline_proto::model::{self, Annotations, Icon, ReadResourceResult};
use serde::Serialize;

use super::app;
use super::caller::Caller;
use super::complete::{Complete, Completing, completer};
use super::context::Context;
use super::error::{BuildError, HandlerError};
use super::handler::{BoxFuture, Handler};
use super::nest::Nest;
use super::prompt::word_completers;
use super::scopes::Scopes;
use super::state::Need;
use super::strings;
use super::tool::Visible;
use crate::uri_template::UriTemplate;

pub use self::output::ResourceOutput;
use self::read::{Read, asking};

/// Data that clients can read by its URI. A URI with `{variables}` makes it a template.
///
/// ```
/// use bowline::{Resource, Server};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct User { id: u64 }
///
/// let server = Server::new("users", "1.0.0")
///     .with(Resource::text("about:users", "about", "Users by number."))
///     .with(Resource::new("users://{id}", "user", |user: User| async move {
///         format!("user number {}", user.id)
///     }));
/// ```
#[must_use = "a resource does nothing until it is added to a server"]
pub struct Resource {
    pub(crate) definition: model::Resource,
    read: Arc<dyn Read>,
    asks: bool,
    is_given: bool,
    /// Whether the handler passes the parameters on as they came.
    passes_on: bool,
    completers: HashMap<String, Arc<dyn Complete>>,
    allows_unsafe_values: bool,
    is_enabled: bool,
    pub(crate) nest: Nest,
    visible: Option<Visible>,
    scopes: Scopes,
    needs: Vec<Need>,
}

impl Resource {
    /// Creates a resource that a handler reads. A URI with `{variables}` (RFC 6570) makes it a
    /// template; the variables are the handler's arguments.
    pub fn new<Shape, H>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<Shape>,
        H::Output: ResourceOutput,
        Shape: 'static,
    {
        let completers = word_completers(&H::arguments_schema());
        let begin = move |context: &Context, parts, uri: String| {
            let arguments = strings::read(parts, None)?;
            let future = handler.start(context, arguments);
            Ok(Box::pin(async move { future.await.into_contents(&uri) }) as BoxFuture<_>)
        };
        let (uri, name) = (uri.into(), name.into());
        let definition = model::Resource { uri, name, ..model::Resource::default() };
        Self { completers, ..Self::assemble::<H::Output>(definition, begin) }
    }

    /// Creates a resource from a definition, such as one that another server lists, and a handler
    /// of its URI.
    ///
    /// The definition is listed as it is, and so is the result sent.
    pub fn from_model<R>(
        definition: model::Resource,
        handler: impl Fn(Context, String) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future + Send + 'static,
        R::Output: ResourceOutput + Send + 'static,
    {
        let begin = move |context: &Context, _: Vec<(String, String)>, uri: String| {
            let future = handler(context.clone(), uri.clone());
            Ok(Box::pin(async move { future.await.into_contents(&uri) }) as BoxFuture<_>)
        };
        Self { is_given: true, ..Self::assemble::<R::Output>(definition, begin) }
    }

    /// Creates a template from a definition, as [`from_model`](Self::from_model) creates a
    /// resource. The handler gets the URI that is read.
    ///
    /// ```
    /// use bowline::{Context, Resource, Server, model};
    ///
    /// let definition = model::ResourceTemplate {
    ///     uri_template: "users://{id}".to_owned(),
    ///     name: "user".to_owned(),
    ///     ..model::ResourceTemplate::default()
    /// };
    /// let user = Resource::template_from_model(definition, |_: Context, uri: String| async move {
    ///     format!("this is {uri}")
    /// });
    /// let server = Server::new("front", "1.0.0").with(user);
    /// ```
    pub fn template_from_model<R>(
        definition: model::ResourceTemplate,
        handler: impl Fn(Context, String) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future + Send + 'static,
        R::Output: ResourceOutput + Send + 'static,
    {
        let it = definition;
        let definition = model::Resource {
            uri: it.uri_template,
            name: it.name,
            title: it.title,
            description: it.description,
            mime_type: it.mime_type,
            annotations: it.annotations,
            icons: it.icons,
            meta: it.meta,
            extra: it.extra,
            ..model::Resource::default()
        };
        Self::from_model(definition, handler)
    }

    fn assemble<O: ResourceOutput>(
        definition: model::Resource,
        begin: impl Read + 'static,
    ) -> Self {
        let read: Arc<dyn Read> = if O::ASKS { Arc::new(asking(begin)) } else { Arc::new(begin) };
        Self {
            definition,
            read,
            asks: O::ASKS,
            is_given: false,
            passes_on: false,
            completers: HashMap::new(),
            allows_unsafe_values: false,
            is_enabled: true,
            nest: Nest::default(),
            visible: None,
            scopes: Scopes::default(),
            needs: Vec::new(),
        }
    }

    /// Creates a resource with a fixed text.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = Arc::from(text.into());
        let size = text.len();
        Self::new(uri, name, move || {
            let text = text.to_string();
            async move { text }
        })
        .mime_type("text/plain")
        .size(size)
    }

    /// Creates a resource with fixed bytes.
    pub fn bytes(
        uri: impl Into<String>,
        name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
    ) -> Self {
        let bytes: Arc<[u8]> = Arc::from(bytes.into());
        let size = bytes.len();
        Self::new(uri, name, move || {
            let bytes = bytes.to_vec();
            async move { bytes }
        })
        .size(size)
    }

    /// Sets the name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Describes what it contains.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets the MIME type, also for contents that do not have their own.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Sets its size in bytes.
    pub fn size(mut self, bytes: usize) -> Self {
        self.definition.size = u64::try_from(bytes).ok();
        self
    }

    /// Sets its annotations: audience and priority.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Adds an icon, or the URL of one. There can be several.
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.definition.icons.get_or_insert_default().push(icon.into());
        self
    }

    /// Sets a member of the definition's `_meta`.
    pub fn meta(mut self, key: &str, value: impl Serialize) -> Self {
        self.definition.meta.get_or_insert_default().set(key, value);
        self
    }

    /// Suggests values for a variable of the URI. Enumerations suggest their variants by default.
    pub fn complete<F, R>(mut self, part: &str, complete: F) -> Self
    where
        F: Fn(Completing) -> R + Send + Sync + 'static,
        R: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(part.to_owned(), completer(complete));
        self
    }

    /// Lets the handler find the parameters as they came, because it passes them on.
    #[cfg(feature = "client")]
    pub(crate) fn passing_on(mut self) -> Self {
        self.passes_on = true;
        self
    }

    /// Suggests values for every variable of the URI.
    #[cfg(feature = "client")]
    pub(crate) fn complete_all(mut self, completer: &Arc<dyn Complete>) -> Self {
        if let Ok(template) = UriTemplate::parse(&self.definition.uri) {
            let names = template.variables().map(str::to_owned);
            self.completers = names.map(|name| (name, Arc::clone(completer))).collect();
        }
        self
    }

    /// Allows values such as `..` or slashes in variables of the URI. By default they are rejected,
    /// to prevent path traversal.
    pub fn allow_unsafe_values(mut self) -> Self {
        self.allows_unsafe_values = true;
        self
    }

    /// Restricts it to callers that the rule accepts. For all others it does not exist.
    pub fn visible_to(mut self, rule: impl Fn(&Caller) -> bool + Send + Sync + 'static) -> Self {
        self.visible = Some(Arc::new(rule));
        self
    }

    /// Requires these scopes of callers that read it or subscribe to it, where clients are
    /// authenticated.
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

    /// Hides it until [`Registry::enable_resource`](crate::Registry::enable_resource) is called.
    pub fn disabled(mut self) -> Self {
        self.is_enabled = false;
        self
    }

    pub(crate) fn build(self) -> Result<Entry, BuildError> {
        let uri = &self.definition.uri;
        let bad = |reason: String| BuildError::Uri { uri: uri.clone(), reason };
        self.scopes.check("resource", uri)?;
        let template = if uri.contains('{') {
            let template = UriTemplate::parse(uri).map_err(|error| bad(error.to_string()))?;
            Some(if self.allows_unsafe_values { template.allow_unsafe_values() } else { template })
        } else {
            None
        };
        if !uri.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) {
            return Err(bad("a URI begins with a scheme, such as file: or https:".to_owned()));
        }
        if !self.is_given {
            app::check_resource(&self.definition)?;
        }
        Ok(Entry {
            definition: self.definition,
            template,
            read: self.read,
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

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("definition", &self.definition).finish_non_exhaustive()
    }
}

/// RFC 3986, 3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// A registered resource or template.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) definition: model::Resource,
    pub(crate) template: Option<UriTemplate>,
    pub(crate) read: Arc<dyn Read>,
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
        std::ptr::addr_eq(Arc::as_ptr(&self.read), Arc::as_ptr(&other.read))
    }

    /// The MIME type of contents that have none.
    pub(crate) fn default_mime_type(&self) -> Option<String> {
        self.definition.mime_type.clone().filter(|_| !self.is_given)
    }

    /// The definition as a template.
    pub(crate) fn template_definition(&self) -> model::ResourceTemplate {
        let it = self.definition.clone();
        model::ResourceTemplate {
            uri_template: it.uri,
            name: it.name,
            title: it.title,
            description: it.description,
            mime_type: it.mime_type,
            annotations: it.annotations,
            icons: it.icons,
            meta: it.meta,
            extra: it.extra,
        }
    }
}

/// The result of a resource, or its error.
pub type ResourceOutcome = Result<ReadResourceResult, HandlerError>;
