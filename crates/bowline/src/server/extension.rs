//! Extensions of the protocol: what a server declares under their ids, and the methods they add.

use std::collections::HashSet;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::json::{Extra, Json};
use bowline_proto::method::{METHODS, Need};
use bowline_proto::model::Settings;
use bowline_proto::revision::Revision;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::{Answer, Outcome};
use super::ask::MissingCapability;
use super::caller::Profile;
use super::context::Context;
use super::error::{BuildError, HandlerError};
use super::failure::Failure;
use super::handler::BoxFuture;
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
    pub(crate) methods: Vec<ExtensionMethod>,
}

/// A method of an extension.
#[derive(Clone)]
pub(crate) struct ExtensionMethod {
    pub(crate) name: &'static str,
    /// The revisions that have it.
    revisions: (Bound<Revision>, Bound<Revision>),
    /// The extension that callers must have declared, too.
    required: Option<Arc<str>>,
    start: Arc<Start>,
    pub(crate) nest: Nest,
}

/// Starts the handler of a method.
type Start = dyn Fn(Context, Option<Json>) -> BoxFuture<Outcome> + Send + Sync;

impl Extension {
    /// Creates an extension. Its id is a name with the prefix of its maker, as in
    /// `com.example/groups`.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), settings: Extra::new(), methods: Vec::new() }
    }

    /// Declares a setting.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.settings.insert(name.into(), value.into());
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
        let revisions = (revisions.start_bound().cloned(), revisions.end_bound().cloned());
        let (required, nest) = (None, Nest::default());
        let start = Arc::new(start);
        self.methods.push(ExtensionMethod { name, revisions, required, start, nest });
        self
    }

    /// Rejects requests for the methods added so far by clients that have not declared the
    /// extension themselves.
    pub fn for_declaring_clients(mut self) -> Self {
        let required: Arc<str> = self.id.as_str().into();
        for method in &mut self.methods {
            method.required = Some(Arc::clone(&required));
        }
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
        self.revisions.contains(&revision)
    }

    /// Checks that a caller has declared the extension, if it must.
    ///
    /// # Errors
    /// When it has not.
    pub(crate) fn check(&self, caller: &Profile) -> Result<(), ErrorObject> {
        let Some(id) = &self.required else { return Ok(()) };
        if caller.capabilities.has_extension(id) {
            return Ok(());
        }
        let required = json!({ "extensions": { (&**id): {} } });
        Err(MissingCapability { what: "this extension of the protocol", required }
            .to_error_object())
    }

    pub(crate) fn start(&self, context: Context, params: Option<Json>) -> BoxFuture<Outcome> {
        (self.start)(context, params)
    }
}

/// The extensions of a server.
#[derive(Default)]
pub(crate) struct Extensions {
    /// As the server declares them; `None` if there are none.
    pub(crate) declared: Option<Settings>,
    methods: Vec<ExtensionMethod>,
}

impl Extensions {
    /// Puts them together.
    ///
    /// # Errors
    /// When two of them collide, or one is invalid.
    pub(crate) fn new(extensions: Vec<Extension>) -> Result<Self, BuildError> {
        let mut declared = Settings::new();
        let mut methods = Vec::new();
        let mut taken = HashSet::new();
        for extension in extensions {
            let Extension { id, settings, methods: own } = extension;
            let refused = |reason: String| BuildError::Extension { id: id.clone(), reason };
            check_id(&id).map_err(|reason| refused(reason.to_owned()))?;
            for method in own {
                method.check_name(&id).map_err(refused)?;
                let revisions = Revision::ALL.into_iter().filter(|it| method.holds_in(*it));
                if let Some(revision) =
                    revisions.into_iter().find(|it| !taken.insert((method.name, *it)))
                {
                    return Err(refused(format!(
                        "another handler has the method {:?} in {revision}",
                        method.name
                    )));
                }
                methods.push(method);
            }
            if declared.iter().any(|(other, _)| *other == id) {
                return Err(BuildError::Duplicate { kind: "extension", name: id });
            }
            declared.insert(id, settings);
        }
        Ok(Self { declared: (!declared.is_empty()).then_some(declared), methods })
    }

    /// The method of this name in a revision.
    pub(crate) fn method(&self, name: &str, revision: Revision) -> Option<&ExtensionMethod> {
        self.methods.iter().find(|it| it.name == name && it.holds_in(revision))
    }
}

impl ExtensionMethod {
    /// An extension cannot replace what the protocol itself defines.
    fn check_name(&self, id: &str) -> Result<(), String> {
        let is_core = METHODS.iter().any(|row| {
            row.name == self.name
                && !matches!(row.needs, Need::Extension(owner) if owner == id)
                && Revision::ALL.into_iter().any(|it| row.holds_in(it) && self.holds_in(it))
        });
        if is_core {
            return Err(format!("the protocol itself has a method {:?}", self.name));
        }
        Ok(())
    }
}

/// 2026-07-28, basic/index: a prefix of labels, then a name.
fn check_id(id: &str) -> Result<(), &'static str> {
    let is_word = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
    };
    match id.split_once('/') {
        Some((prefix, name)) if is_word(prefix) && is_word(name) => Ok(()),
        _ => Err("an id is a prefix and a name, as in com.example/groups"),
    }
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
