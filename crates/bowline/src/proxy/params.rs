//! What a request to the upstream server says: what the caller's request said, with the parts that
//! belong to each hop exchanged.
//!
//! Everything else keeps its text: arguments, members that nobody here knows, and `_meta` of
//! vendors, of traces and of baggage.

use bowline_proto::json::{Extra, Json};
use bowline_proto::members::Members;
use bowline_proto::model::{ClientCapabilities, LoggingLevel, meta_key, task_extension};
use bowline_proto::revision::{Adapt, Revision};

use super::forward::json;
use crate::{Context, HandlerError};

/// Members of parameters that are between a client and the server next to it.
const OF_HOP: [&str; 4] = ["_meta", "task", "inputResponses", "requestState"];
/// The prefix of metadata that is between a client and the server next to it.
const RESERVED: &str = "io.modelcontextprotocol/";

/// What the upstream server hears of a caller.
pub(super) struct Hop {
    pub(super) revision: Revision,
    /// The level of log messages that the caller wants.
    pub(super) level: Option<LoggingLevel>,
    /// Whether the server may answer with a task, which the proxy waits for.
    pub(super) takes_tasks: bool,
}

/// The caller's parameters, with a member that says what they are about in the server's own words.
/// Where the request is not at hand, because a task runs again, there is only `rest`.
pub(super) fn spliced<const N: usize, const M: usize>(
    context: &Context,
    about: [(&str, Json); N],
    rest: [(&str, Json); M],
) -> Members<Json> {
    let theirs = context.call.params.as_ref().and_then(|it| it.parse::<Members<Json>>().ok());
    let mut params = match theirs {
        Some(mut params) => {
            for member in OF_HOP {
                params.remove(member);
            }
            params
        }
        None => rest.into_iter().collect(),
    };
    for (key, value) in about {
        params.insert(key, value);
    }
    params
}

impl Hop {
    /// The metadata of a request: the caller's, except for what each hop says of itself.
    pub(super) fn meta(&self, context: &Context) -> Result<Members<Json>, HandlerError> {
        let mut meta = Members::new();
        for (key, value) in theirs(context) {
            let is_of_hop = key == meta_key::PROGRESS_TOKEN || key.starts_with(RESERVED);
            if !is_of_hop {
                meta.insert(key, value);
            }
        }
        if let Some(trace) = context.traceparent() {
            meta.insert(meta_key::TRACEPARENT, json(trace)?);
        }
        if self.revision.is_modern() {
            let capabilities = self.capabilities(&context.caller().capabilities)?;
            meta.insert(meta_key::CLIENT_CAPABILITIES, json(&capabilities)?);
            if let Some(level) = self.level {
                meta.insert(meta_key::LOG_LEVEL, json(&level)?);
            }
        }
        Ok(meta)
    }

    /// What the caller can do, except that the proxy itself waits for tasks.
    fn capabilities(
        &self,
        caller: &ClientCapabilities,
    ) -> Result<ClientCapabilities, HandlerError> {
        let mut capabilities = caller.clone();
        let mut extensions = capabilities.extensions.take().unwrap_or_default();
        extensions.remove(task_extension::ID);
        if self.takes_tasks {
            extensions.insert(task_extension::ID, Extra::new());
        }
        capabilities.extensions = (!extensions.is_empty()).then_some(extensions);
        capabilities.adapt(self.revision).map_err(super::forward::internal)?;
        Ok(capabilities)
    }
}

/// The caller's own metadata.
fn theirs(context: &Context) -> Members<Json> {
    let params = context.call.params.as_ref();
    let params = params.and_then(|it| it.parse::<Members<Json>>().ok());
    let meta = params.and_then(|mut params| params.remove("_meta"));
    meta.and_then(|meta| meta.parse().ok()).unwrap_or_default()
}
