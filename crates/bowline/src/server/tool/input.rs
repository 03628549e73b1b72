//! The arguments of a call: read at once if they are as expected, examined closely if they are not.

use std::borrow::Cow;

use bowline_proto::decode::decode;
use serde_json::Value;

use super::check::Check;
use super::repair::repair;
use super::start::Start;
use crate::server::context::Context;
use crate::server::handler::BoxFuture;
use crate::server::output::ToolOutcome;
use crate::server::schema::is_closed;

/// What messages call the arguments.
const ROOT: &str = "arguments";

/// What a tool takes.
#[derive(Clone)]
pub(super) struct Input {
    /// The schema as it is listed, which says what is wrong.
    full: Check,
    /// What every call is validated against, if the type does not check everything.
    each: Option<Check>,
    /// Whether arguments that the schema does not name are rejected.
    is_closed: bool,
    is_lenient: bool,
}

impl Input {
    pub(super) fn build(schema: Value, always: bool, is_lenient: bool) -> Result<Self, String> {
        let is_closed = is_closed(&schema);
        let full = Check::build(schema, always)?;
        let each = match full.is_needed {
            false => None,
            true if always || !is_closed => Some(full.clone()),
            true => Some(Check::build(opened(full.schema()), true)?),
        };
        Ok(Self { full, each, is_closed, is_lenient })
    }

    /// A schema that is only listed.
    pub(super) fn unchecked(schema: Value) -> Self {
        let full = Check::unneeded(schema);
        Self { full, each: None, is_closed: false, is_lenient: false }
    }

    pub(super) fn schema(&self) -> &Value {
        self.full.schema()
    }

    /// Deserializes the arguments and starts the handler.
    ///
    /// # Errors
    /// When the arguments are invalid; the message is for the model.
    #[inline]
    pub(super) fn start(
        &self,
        handler: &dyn Start,
        context: &Context,
        text: &str,
    ) -> Result<BoxFuture<ToolOutcome>, String> {
        if self.each.as_ref().is_none_or(|each| each.check(ROOT, text).is_ok()) {
            let started = handler.start(context, text, self.is_closed);
            if started.is_ok() {
                return started;
            }
        }
        self.examine(handler, context, text)
    }

    /// Starts the handler after all if the arguments are only spelled unusually, and otherwise says
    /// what is wrong with them.
    #[cold]
    fn examine(
        &self,
        handler: &dyn Start,
        context: &Context,
        text: &str,
    ) -> Result<BoxFuture<ToolOutcome>, String> {
        let mut value: Value = decode("", ROOT, text).map_err(|error| plain(&error))?;
        let mut text = Cow::Borrowed(text);
        if repair(self.schema(), &mut value, self.is_lenient) {
            text = Cow::Owned(value.to_string());
            if self.each.as_ref().is_none_or(|each| each.validate(ROOT, &value).is_ok()) {
                let started = handler.start(context, &text, self.is_closed);
                if started.is_ok() {
                    return started;
                }
            }
        }
        // The message of the schema is better than that of the type: it says what is allowed.
        self.full.validate(ROOT, &value)?;
        handler.start(context, &text, false)
    }
}

/// The schema without its word on unknown arguments: that is for the type to say, which may know a
/// member by other names (`#[serde(alias)]`).
fn opened(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.remove("additionalProperties");
    }
    schema
}

/// The message without the name of what was decoded, which callers add.
pub(super) fn plain(error: &impl ToString) -> String {
    error.to_string().trim_start_matches(": ").to_owned()
}
