//! Extensions of the protocol: what a server declares under their ids, the methods they add, and
//! what they do with calls, lists and listening clients.

mod all;
mod decorate;
mod topic;

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::json::{Extra, Json};
use bowline_proto::revision::Revision;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use self::all::Extensions;
#[cfg(feature = "client")]
pub(crate) use self::all::is_extension_id;
pub(crate) use self::decorate::Decorators;
pub(crate) use self::topic::{ExtensionTopic, TASKS, TopicReader, grant, wanted};
use super::answer::{Answer, Outcome};
use super::ask::MissingCapability;
use super::caller::{Caller, Profile};
use super::context::Context;
use super::error::HandlerError;
use super::failure::Failure;
use super::handler::BoxFuture;
use super::middleware::Middleware;
use super::nest::Nest;
use super::part::{Part, Parts};

/// An extension of the protocol, as a server offers it: an id that both sides know, settings that
/// the server declares, and methods of its own.
///
/// ```
/// use bowline::{Context, Extension, HandlerError, Server};
/// use serde_json::{Value, json};
///
/// let groups = Extension::new("com.example/groups").setting("listChanged", false).method(
///     "groups/list",
///     ..,
///     |_: Context, _: Value| async { Ok::<_, HandlerError>(json!({ "groups": [] })) },
/// );
/// let server = Server::new("grouped", "1.0.0").with(groups);
/// ```
///
/// Requests for its methods run like all others: within the middleware, with a deadline, and with a
/// [`Context`]. A server that is part of another one brings its extensions along.
#[must_use = "an extension does nothing until it is added to a server"]
pub struct Extension {
    pub(crate) id: String,
    settings: Extra,
    /// The revisions that it is declared in.
    revisions: Span,
    capabilities: Extra,
    pub(crate) methods: Vec<ExtensionMethod>,
    topics: Vec<ExtensionTopic>,
    wrap: Option<Arc<dyn Middleware>>,
    decorators: Decorators,
    stop: Option<Stop>,
}

/// Ends what an extension does in the background, within a time.
type Stop = Box<dyn Fn(Duration) -> BoxFuture<()> + Send + Sync>;

/// A range of revisions.
#[derive(Clone, Copy)]
struct Span(Bound<Revision>, Bound<Revision>);

impl Span {
    fn of(revisions: &impl RangeBounds<Revision>) -> Self {
        Self(revisions.start_bound().cloned(), revisions.end_bound().cloned())
    }

    fn contains(self, revision: Revision) -> bool {
        (self.0, self.1).contains(&revision)
    }
}

/// A method of an extension.
#[derive(Clone)]
pub(crate) struct ExtensionMethod {
    pub(crate) name: &'static str,
    /// The revisions that have it.
    revisions: Span,
    /// The extension that callers must have declared, too.
    required: Option<Arc<str>>,
    /// Whether it may take as long as it likes.
    pub(crate) is_unlimited: bool,
    start: Arc<Start>,
    pub(crate) nest: Nest,
}

/// Starts the handler of a method.
type Start = dyn Fn(Context, Option<Json>) -> BoxFuture<Outcome> + Send + Sync;

impl Extension {
    /// Creates an extension. Its id is a name with the prefix of its maker, as in
    /// `com.example/groups`.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            settings: Extra::new(),
            revisions: Span::of(&..),
            capabilities: Extra::new(),
            methods: Vec::new(),
            topics: Vec::new(),
            wrap: None,
            decorators: Decorators::default(),
            stop: None,
        }
    }

    /// Declares a setting.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// Declares it in these revisions only; by default, in all of them. In others, clients that
    /// declare it count as clients that do not when it comes to [calls](Self::around_calls).
    pub fn declared_in(mut self, revisions: impl RangeBounds<Revision>) -> Self {
        self.revisions = Span::of(&revisions);
        self
    }

    /// Declares a capability of its own name as well, outside `extensions`: for clients that look
    /// for it there.
    pub fn capability(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.capabilities.insert(name.into(), value.into());
        self
    }

    /// Adds a method, in these revisions: `..` for all of them. Several handlers may share a name
    /// if no revision has two of them.
    ///
    /// The parameters are read into `P`, and the result must be an object. In the modern era it
    /// gets `"resultType": "complete"`, unless it says something else.
    pub fn method<P, R, E, F>(
        mut self,
        name: &'static str,
        revisions: impl RangeBounds<Revision>,
        handler: impl Fn(Context, P) -> F + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned,
        R: Serialize,
        E: Into<HandlerError>,
        F: Future<Output = Result<R, E>> + Send + 'static,
    {
        let start = move |context: Context, params: Option<Json>| -> BoxFuture<Outcome> {
            match decode_params::<P>(name, params.as_ref().map(Json::as_raw)) {
                Ok(params) => {
                    let handling = handler(context, params);
                    Box::pin(async move { finish(name, handling.await) })
                }
                Err(error) => Box::pin(std::future::ready(Err(Failure::rejected(error.into())))),
            }
        };
        let revisions = Span::of(&revisions);
        let (required, is_unlimited, nest) = (None, false, Nest::default());
        let start = Arc::new(start);
        let method = ExtensionMethod { name, revisions, required, is_unlimited, start, nest };
        self.methods.push(method);
        self
    }

    /// Lets a method take as long as it likes, because it waits for something by design.
    pub fn without_deadline(mut self, name: &str) -> Self {
        for method in self.methods.iter_mut().filter(|it| it.name == name) {
            method.is_unlimited = true;
        }
        self
    }

    /// Rejects requests for the methods and topics added so far by clients that have not declared
    /// the extension themselves.
    pub fn for_declaring_clients(mut self) -> Self {
        let required: Arc<str> = self.id.as_str().into();
        for method in &mut self.methods {
            method.required = Some(Arc::clone(&required));
        }
        for topic in &mut self.topics {
            topic.required = Some(Arc::clone(&required));
        }
        self
    }

    /// Reports changes to clients of the modern era that listen for them. `member` is the member of
    /// `subscriptions/listen` in which they list names; when one of these
    /// [changes](crate::Registry::topic_changed), the notification goes out with what `read`
    /// returns for it, an object. Clients listen only for names that `read` knows, and get their
    /// state at once.
    ///
    /// ```
    /// use bowline::{Caller, Extension, Server};
    /// use serde_json::json;
    ///
    /// let prices = Extension::new("com.example/prices").topic(
    ///     "com.example/prices",
    ///     "notifications/com.example/price",
    ///     |_: Caller, name: String| async move {
    ///         (name == "tea").then(|| json!({ "name": name, "price": 3 }))
    ///     },
    /// );
    /// let server = Server::new("shop", "1.0.0").with(prices);
    /// let registry = server.registry();
    /// // Later:
    /// registry.topic_changed("com.example/prices", "tea");
    /// ```
    pub fn topic<R, F>(
        mut self,
        member: &str,
        notification: &'static str,
        read: impl Fn(Caller, String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        R: Serialize,
        F: Future<Output = Option<R>> + Send + 'static,
    {
        self.topics.push(ExtensionTopic::new(member, notification, read));
        self
    }

    /// Runs around every `tools/call` of a client that has declared the extension, within all other
    /// [middleware](Middleware). It may answer with a result of the extension's own:
    /// [`Answer::Verbatim`](crate::Answer::Verbatim), with a `resultType` that such clients know.
    pub fn around_calls(mut self, wrap: impl Middleware) -> Self {
        self.wrap = Some(Arc::new(wrap));
        self
    }

    /// Calls `stop` when the server stops, with the time that it may take: an extension that does
    /// something in the background ends it here.
    pub fn on_stop<F>(mut self, stop: impl Fn(Duration) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.stop = Some(Box::new(move |grace| Box::pin(stop(grace))));
        self
    }
}

fn finish<R: Serialize, E: Into<HandlerError>>(method: &str, result: Result<R, E>) -> Outcome {
    let result = match result {
        Ok(result) => result,
        Err(error) => return error.into().into_outcome(),
    };
    match Json::new(&result) {
        Ok(json) if json.is_object() => Ok(Answer::Verbatim(json)),
        Ok(_) => {
            Err(ErrorObject::internal(format!("{method}: the result is not an object")).into())
        }
        Err(error) => Err(ErrorObject::internal(format!("{method}: {error}")).into()),
    }
}

impl ExtensionMethod {
    fn holds_in(&self, revision: Revision) -> bool {
        self.revisions.contains(revision)
    }

    /// Checks that a caller has declared the extension, if it must.
    ///
    /// # Errors
    /// When it has not.
    pub(crate) fn check(&self, caller: &Profile) -> Result<(), ErrorObject> {
        check_declared(self.required.as_deref(), caller)
    }

    pub(crate) fn start(&self, context: Context, params: Option<Json>) -> BoxFuture<Outcome> {
        (self.start)(context, params)
    }
}

/// Checks that a caller has declared an extension, if it must.
///
/// # Errors
/// When it has not.
pub(crate) fn check_declared(required: Option<&str>, caller: &Profile) -> Result<(), ErrorObject> {
    let Some(id) = required else { return Ok(()) };
    if caller.capabilities.has_extension(id) {
        return Ok(());
    }
    let required = json!({ "extensions": { id: {} } });
    Err(MissingCapability { what: "this extension of the protocol", required }.to_error_object())
}

impl Part for Extension {
    fn add_to(self, parts: &mut Parts) {
        parts.extensions.push(self);
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<_> = self.methods.iter().map(|it| it.name).collect();
        f.debug_struct("Extension")
            .field("id", &self.id)
            .field("settings", &self.settings)
            .field("methods", &methods)
            .finish()
    }
}
