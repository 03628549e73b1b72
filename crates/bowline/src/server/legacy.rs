//! What only legacy sessions have: requests that change the session itself.

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Initialize, Method, SetLevel, Subscribe, Unsubscribe};
use bowline_proto::model::{InitializeParams, SetLevelParams, SubscribeParams};
use bowline_proto::raw::Raw;
use bowline_proto::session::{Lifecycle, Subscription, SubscriptionLimits};

use super::answer::{Answer, Outcome};
use super::bus::Sink;
use super::caller::Caller;
use super::core::Core;
use super::listen;
use super::principal::Principal;
use super::session::Session;

/// Serves a request that changes the session; `None` for every other request.
pub(crate) fn serve(
    method: &str,
    params: Option<Raw<'_>>,
    core: &Core,
    session: &Session,
    sink: &Sink,
) -> Option<Outcome> {
    match method {
        Subscribe::NAME | Unsubscribe::NAME => {
            Some(change_subscription(method, params, core, sink))
        }
        SetLevel::NAME => Some(set_level(params, session)),
        _ => None,
    }
}

fn change_subscription(method: &str, params: Option<Raw<'_>>, core: &Core, sink: &Sink) -> Outcome {
    if !listen::promised(core).resource {
        return Err(ErrorObject::method_not_found(method));
    }
    let params: SubscribeParams<'_> = decode_params(method, params)?;
    let changed = sink.with(None, |subscription| {
        if method == Subscribe::NAME {
            subscription.subscribe(&params.uri)
        } else {
            subscription.unsubscribe(&params.uri);
            Ok(())
        }
    });
    // Without a handshake there is nobody to be told.
    changed.unwrap_or_else(|| Err(ErrorObject::method_not_found(method)))?;
    Ok(Answer::Empty)
}

fn set_level(params: Option<Raw<'_>>, session: &Session) -> Outcome {
    let params: SetLevelParams<'_> = decode_params(SetLevel::NAME, params)?;
    session.set_log_level(params.level);
    Ok(Answer::Empty)
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
    principal: Option<Principal>,
) -> Result<(Caller, Answer), ErrorObject> {
    let params: InitializeParams<'_> = decode_params(Initialize::NAME, params)?;
    let revision = lifecycle.handle_initialize(&params.protocol_version)?;
    let caller = Caller {
        revision,
        capabilities: params.capabilities,
        info: Some(params.client_info),
        principal,
    };
    sink.add(None, Subscription::session(listen::promised(core), limits(core)));
    Ok((caller, Answer::Initialize(Box::new(core.initialize_result(revision)))))
}

/// What one listener may subscribe to.
pub(crate) fn limits(core: &Core) -> SubscriptionLimits {
    SubscriptionLimits { names: core.limits.subscriptions, ..SubscriptionLimits::default() }
}
