//! What only legacy sessions have: the handshake, and requests that change the session itself.

use std::sync::Arc;

use bowline_proto::decode::{DecodeError, decode_params};
use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Initialize, Method, SetLevel, Subscribe, Unsubscribe};
use bowline_proto::model::{InitializeParams, LoggingLevel, SetLevelParams, SubscribeParams};
use bowline_proto::raw::Raw;
use bowline_proto::session::{Lifecycle, Subscription};

use super::answer::Answer;
use super::bus::Sink;
use super::caller::Profile;
use super::core::Core;
use super::listen;
use super::peer::{Transport, check_length};
use super::principal::Principal;
use super::session::Session;
use super::tasks::Tasks;

/// A request that changes the session it belongs to.
pub(crate) enum SessionChange {
    Subscribe(String),
    Unsubscribe(String),
    SetLevel(LoggingLevel),
}

impl SessionChange {
    /// Reads the parameters of one of the three methods.
    ///
    /// # Errors
    /// When they are malformed.
    pub(crate) fn read(method: &str, params: Option<Raw<'_>>) -> Result<Self, DecodeError> {
        if method == SetLevel::NAME {
            let params: SetLevelParams<'_> = decode_params(method, params)?;
            return Ok(Self::SetLevel(params.level));
        }
        let SubscribeParams { uri, .. } = decode_params(method, params)?;
        Ok(if method == Subscribe::NAME { Self::Subscribe(uri) } else { Self::Unsubscribe(uri) })
    }

    /// The resource that it subscribes to, if it does.
    pub(crate) fn subscribed(&self) -> Option<&str> {
        match self {
            Self::Subscribe(uri) => Some(uri),
            _ => None,
        }
    }

    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Subscribe(_) => Subscribe::NAME,
            Self::Unsubscribe(_) => Unsubscribe::NAME,
            Self::SetLevel(_) => SetLevel::NAME,
        }
    }
}

/// The parts of a session that its requests can change.
#[derive(Clone, Copy)]
pub(crate) struct SessionParts<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) sink: &'a Arc<Sink>,
}

impl SessionParts<'_> {
    /// # Errors
    /// When the session cannot be changed like that.
    pub(crate) fn apply(self, change: SessionChange) -> Result<Answer, ErrorObject> {
        let method = change.method();
        let subscribed = match change {
            SessionChange::SetLevel(level) => {
                self.session.set_log_level(level);
                return Ok(Answer::Empty);
            }
            SessionChange::Subscribe(uri) => self.sink.subscribe(&uri),
            SessionChange::Unsubscribe(uri) => self.sink.with(None, |it| {
                it.unsubscribe(&uri);
                Ok(())
            }),
        };
        // Before the handshake there is no subscription to change.
        subscribed.unwrap_or_else(|| Err(ErrorObject::method_not_found(method)))?;
        Ok(Answer::Empty)
    }
}

/// Takes in a handshake: who the client is, and the answer to it.
///
/// # Errors
/// When it is malformed or comes at the wrong time.
pub(crate) fn initialize(
    core: &Core,
    lifecycle: &mut Lifecycle,
    sink: &Sink,
    params: Option<Raw<'_>>,
    (transport, principal): (Transport, Option<Principal>),
) -> Result<(Profile, Answer), ErrorObject> {
    check_length(core, Initialize::NAME, params.map_or(0, |params| params.get().len()))?;
    let params: InitializeParams<'_> = decode_params(Initialize::NAME, params)?;
    let revision = lifecycle.handle_initialize(&params.protocol_version)?;
    let has_tasks = core.tasks.is_some();
    let tasks = has_tasks.then(|| Tasks::capability(transport, principal.is_some()));
    let profile = Profile {
        revision,
        capabilities: params.capabilities,
        info: Some(params.client_info),
        principal,
    };
    sink.add(None, Subscription::session(listen::promised(core), listen::limits(core)))?;
    Ok((profile, Answer::Initialize(Box::new(core.initialize_result(revision, tasks)))))
}
