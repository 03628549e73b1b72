//! What a server reports: kinds of events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bowline_schema::Schema;
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::schema_for;

/// A kind of event: its name, what subscribers may ask for, and what they get.
///
/// ```
/// use bowline::events::EventKind;
/// use bowline::schemars::JsonSchema;
///
/// #[derive(JsonSchema)]
/// # #[schemars(crate = "bowline::schemars")]
/// struct Wanted {
///     repository: String,
/// }
///
/// let pushed = EventKind::new("push", "Someone has pushed to a repository.")
///     .arguments::<Wanted>()
///     .filter(|event| event.arguments["repository"] == event.data["repository"]);
/// ```
#[derive(Clone)]
#[must_use = "a kind of event does nothing until it is one of a server's events"]
pub struct EventKind {
    pub(super) name: String,
    description: String,
    arguments: Value,
    payload: Value,
    filter: Option<Filter>,
    schema: Option<Arc<Schema>>,
}

type Filter = Arc<dyn Fn(&Candidate<'_>) -> bool + Send + Sync>;

/// An event, and someone who might get it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Candidate<'a> {
    /// The name of the principal that asks, if it is known.
    pub principal: Option<&'a str>,
    /// What it asks for.
    pub arguments: &'a Value,
    /// The event's data.
    pub data: &'a Value,
}

impl EventKind {
    /// Creates a kind of event, which everyone may see, whole.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let object = json!({ "type": "object", "properties": {} });
        Self {
            name: name.into(),
            description: description.into(),
            arguments: object.clone(),
            payload: object,
            filter: None,
            schema: None,
        }
    }

    /// Sets the type of what subscribers ask for. Arguments that do not match it are rejected.
    pub fn arguments<T: JsonSchema>(mut self) -> Self {
        self.arguments = schema_for::<T>();
        self
    }

    /// Sets the type of the data, for lists.
    pub fn payload<T: JsonSchema>(mut self) -> Self {
        self.payload = schema_for::<T>();
        self
    }

    /// Decides who gets which event: by what they ask for, and by who they are. It must return
    /// quickly. Where it panics, the event is left out.
    pub fn filter(
        mut self,
        filter: impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Prepares it for use.
    ///
    /// # Errors
    /// When the schema of its arguments cannot be used.
    pub(super) fn compile(&mut self) -> Result<(), String> {
        let compiled = Schema::compile(&self.arguments);
        let compiled = compiled.map_err(|error| format!("event {:?}: {error}", self.name))?;
        self.schema = Some(Arc::new(compiled));
        Ok(())
    }

    /// As lists show it.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "delivery": ["poll", "push", "webhook"],
            "inputSchema": self.arguments,
            "payloadSchema": self.payload,
        })
    }

    /// Checks what a subscriber asks for.
    pub(super) fn check(&self, arguments: &Value) -> Result<(), String> {
        match &self.schema {
            Some(schema) => {
                let checked = schema.validate("params.arguments", arguments);
                checked.map_err(|error| error.to_string())
            }
            None => Ok(()),
        }
    }

    pub(super) fn admits(&self, candidate: &Candidate<'_>) -> bool {
        let Some(filter) = &self.filter else { return true };
        // Whoever delivers goes on with the next event, and nobody gets what may be another's.
        let admitted = catch_unwind(AssertUnwindSafe(|| filter(candidate)));
        admitted.unwrap_or_else(|_| {
            tracing::error!(event = %self.name, "the filter of an event panicked; it is left out");
            false
        })
    }
}

impl std::fmt::Debug for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventKind").field("name", &self.name).finish_non_exhaustive()
    }
}
