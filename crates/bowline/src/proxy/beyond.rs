//! What the upstream server has beyond its lists: resources under any URI, methods that the
//! protocol does not have, and extensions.

use std::sync::Arc;

use bowline_proto::error::ErrorCode;
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::method::{Notice, RootsListChanged};
use bowline_proto::model::{self, Settings, meta_key, task_extension};
use bowline_proto::revision::Revision;

use super::entries::reading;
use super::forward::{json, send};
use super::losses::Loss;
use super::params::spliced;
use super::upstream::Upstream;
use crate::client::Peer;
use crate::server::{Beyond, is_extension_id};
use crate::{
    Answer, BuildError, Context, Extension, Failure, HandlerError, Outcome, Resource, Server,
};

/// What a server is that is a proxy and nothing else.
pub(super) fn beyond(upstream: &Arc<Upstream>) -> Result<Beyond, BuildError> {
    let any = model::Resource { uri: "any:".to_owned(), ..model::Resource::default() };
    let resource = Resource::from_model(any, reading(upstream)).passing_on().build()?;
    let (upstream, losses) = (Arc::clone(upstream), upstream.pool.losses());
    Ok(Beyond {
        resource: Arc::new(resource),
        method: Box::new(move |context, method| {
            let upstream = Arc::clone(&upstream);
            Box::pin(async move { finished(pass_on(&upstream, &context, &method).await) })
        }),
        notice: Box::new(move |method| {
            if method == RootsListChanged::NAME {
                losses.add(Loss::RootsPush);
            }
        }),
    })
}

/// Declares what the upstream server declares, as far as it is not about the connection itself.
pub(super) fn declare(mut server: Server, peer: &Peer) -> Server {
    let none = Settings::new;
    let extensions = peer.capabilities.extensions.clone().unwrap_or_else(none);
    for (id, settings) in extensions {
        // The front has tasks of its own.
        if id == task_extension::ID || !is_extension_id(&id) {
            continue;
        }
        let extension = Extension::new(id);
        let declared =
            settings.into_iter().fold(extension, |it, (name, value)| it.setting(name, value));
        server = server.with(declared);
    }
    for (name, settings) in peer.capabilities.experimental.clone().unwrap_or_else(none) {
        server = server.experimental(name, settings);
    }
    server
}

fn finished(result: Result<Json, HandlerError>) -> Outcome {
    match result {
        Ok(result) => Ok(Answer::Verbatim(result)),
        // Nobody knows the method, which is then as if it had never been passed on.
        Err(error) => error.into_outcome().map_err(|failure| match failure.error.code {
            ErrorCode::METHOD_NOT_FOUND => Failure::rejected(failure.error),
            _ => failure,
        }),
    }
}

/// Calls a method that nobody here knows.
async fn pass_on(
    upstream: &Arc<Upstream>,
    context: &Context,
    method: &str,
) -> Result<Json, HandlerError> {
    let params = spliced(context, [], []);
    let result = send(upstream, context, method, params).await?.unasked(context, method).await?;
    without_hop(result, context.caller().revision)
}

/// A result without what the upstream server said about this hop to a modern client.
fn without_hop(result: Json, caller: Revision) -> Result<Json, HandlerError> {
    if caller.is_modern() {
        return Ok(result);
    }
    let Ok(mut members) = result.parse::<Members<Json>>() else { return Ok(result) };
    let is_complete = members.get("resultType").is_some_and(|it| it.as_str() == "\"complete\"");
    if is_complete {
        members.remove("resultType");
    }
    let meta = members.get("_meta").and_then(|meta| meta.parse::<Members<Json>>().ok());
    if let Some(mut meta) = meta
        && meta.remove(meta_key::SERVER_INFO).is_some()
    {
        match meta.is_empty() {
            true => drop(members.remove("_meta")),
            false => members.insert("_meta", json(&meta)?),
        }
    }
    json(&members)
}
