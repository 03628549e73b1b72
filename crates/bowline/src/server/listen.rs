//! Subscriptions as the protocol spells them: filters in, notifications out.

use std::future::poll_fn;

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::method::{
    Cancelled, Notice, PromptListChanged, ResourceListChanged, ResourceUpdated,
    SubscriptionsAcknowledged, TaskChanged, ToolListChanged,
};
use bowline_proto::model::{
    CancelledParams, Meta, NoticeParams, ResourceUpdatedParams, SubscriptionFilter,
    SubscriptionsAcknowledgedParams, meta_key,
};
use bowline_proto::session::{Promised, Subscription, SubscriptionLimits, Topic};
use bowline_proto::wire::{Id, Notification, encode_notification};

use super::answer::{Answer, Outcome};
use super::bus::{Change, Sink};
use super::core::Core;
use super::failure::Failure;
use crate::outbox::Outbox;

/// The changes that the server reports, according to what it has.
pub(crate) fn promised(core: &Core) -> Promised {
    let offered = core.capabilities();
    Promised {
        tools: offered.tools.is_some(),
        prompts: offered.prompts.is_some(),
        resources: offered.resources.is_some(),
        resource: offered.resources.is_some(),
        task: false,
    }
}

/// What one listener may subscribe to.
pub(crate) fn limits(core: &Core) -> SubscriptionLimits {
    SubscriptionLimits { names: core.limits.subscriptions, ..SubscriptionLimits::default() }
}

/// The subscription of a listen request.
///
/// # Errors
/// When it asks for more than one listener may have.
pub(crate) fn subscription(
    core: &Core,
    filter: &SubscriptionFilter,
) -> Result<Subscription, ErrorObject> {
    Subscription::listen(promised(core), limits(core), wanted(filter))
}

/// What a listen request asks for.
fn wanted(filter: &SubscriptionFilter) -> Vec<Topic> {
    let lists = [
        (filter.tools_list_changed, Topic::Tools),
        (filter.prompts_list_changed, Topic::Prompts),
        (filter.resources_list_changed, Topic::Resources),
    ];
    let lists = lists.into_iter().filter(|(flag, _)| *flag == Some(true)).map(|(_, topic)| topic);
    let uris = filter.resource_subscriptions.iter().flatten();
    let tasks = filter.task_ids.iter().flatten();
    lists
        .chain(uris.map(|uri| Topic::Resource(uri.as_str().into())))
        .chain(tasks.map(|id| Topic::Task(id.as_str().into())))
        .collect()
}

/// Serves a listen request on a sink of its own, until `stopped` is ready or the client has
/// disconnected. Waits for room: the sink holds back what the client does not read.
pub(crate) async fn serve(
    sink: &Sink,
    outbox: &Outbox,
    id: Id,
    subscription: Subscription,
    stopped: impl Future<Output = ()>,
) -> Outcome {
    let acknowledged = acknowledgement(&subscription, &id);
    sink.add(Some(id.clone()), subscription).map_err(Failure::rejected)?;
    let _ = outbox.push(|out| acknowledged.encode(out));
    sink.release(Some(&id));
    let telling = async {
        loop {
            let news = poll_fn(|cx| sink.poll_next(cx)).await;
            if outbox.send(|out| change(&news).encode(out)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = telling => {}
        () = stopped => {}
    }
    Ok(Answer::ListenEnd)
}

/// The request that a notification cancels, if it cancels one.
pub(crate) fn cancelled(notification: &Notification<'_>) -> Option<Id> {
    if notification.method != Cancelled::NAME {
        return None;
    }
    match decode_params::<CancelledParams>(Cancelled::NAME, notification.params) {
        Ok(params) => params.request_id,
        Err(error) => {
            tracing::debug!(%error, "malformed cancellation");
            None
        }
    }
}

/// A notification to write.
pub(crate) enum Told {
    Acknowledged(SubscriptionsAcknowledgedParams),
    /// A list changed.
    List(&'static str, Option<NoticeParams>),
    /// A resource changed.
    Resource(ResourceUpdatedParams),
}

impl Told {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        // Our own plain data can always be written.
        let _ = match self {
            Self::Acknowledged(params) => {
                encode_notification(out, SubscriptionsAcknowledged::NAME, Some(params))
            }
            Self::List(method, params) => encode_notification(out, method, params.as_ref()),
            Self::Resource(params) => encode_notification(out, ResourceUpdated::NAME, Some(params)),
        };
    }
}

/// The first message on a listen request: what it is subscribed to.
pub(crate) fn acknowledgement(subscription: &Subscription, id: &Id) -> Told {
    let mut granted = SubscriptionFilter::default();
    for topic in subscription.granted() {
        match topic {
            Topic::Tools => granted.tools_list_changed = Some(true),
            Topic::Prompts => granted.prompts_list_changed = Some(true),
            Topic::Resources => granted.resources_list_changed = Some(true),
            Topic::Resource(uri) => {
                granted.resource_subscriptions.get_or_insert_default().push(uri.to_string());
            }
            Topic::Task(task) => granted.task_ids.get_or_insert_default().push(task.to_string()),
        }
    }
    let params = SubscriptionsAcknowledgedParams { notifications: granted, meta: Some(under(id)) };
    Told::Acknowledged(params)
}

/// A change as a notification to the session or the listen request.
pub(crate) fn change(change: &Change) -> Told {
    let meta = change.listen.as_ref().map(under);
    let list = |method, meta: Option<Meta>| {
        Told::List(method, meta.map(|meta| NoticeParams { meta: Some(meta) }))
    };
    match &change.topic {
        Topic::Tools => list(ToolListChanged::NAME, meta),
        Topic::Prompts => list(PromptListChanged::NAME, meta),
        Topic::Resources => list(ResourceListChanged::NAME, meta),
        Topic::Resource(uri) => {
            Told::Resource(ResourceUpdatedParams { uri: uri.to_string(), meta })
        }
        Topic::Task(_) => list(TaskChanged::NAME, meta),
    }
}

fn under(id: &Id) -> Meta {
    let mut meta = Meta::default();
    meta.set(meta_key::SUBSCRIPTION_ID, id);
    meta
}
