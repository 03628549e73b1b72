//! Subscriptions as the protocol spells them: filters in, notifications out.

use std::future::poll_fn;

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::method::{
    Cancelled, Notice, PromptListChanged, ResourceListChanged, ResourceUpdated,
    SubscriptionsAcknowledged, TaskStatusChanged, ToolListChanged,
};
use bowline_proto::model::{
    CancelledParams, Meta, NoticeParams, ResourceUpdatedParams, SubscriptionFilter,
    SubscriptionsAcknowledgedParams, TaskStatusParams, meta_key,
};
use bowline_proto::session::{Promised, Subscription, SubscriptionLimits, Topic};
use bowline_proto::wire::{Id, Notification, encode_notification};

use super::answer::{Answer, Outcome, with_meta};
use super::bus::{Change, Sink};
use super::caller::Profile;
use super::core::Core;
use super::extension::{self, TopicReader};
use super::failure::Failure;
use super::registry::Registry;
use super::tasks::Tasks;
use crate::outbox::Outbox;

/// The changes that the server reports, according to what it has.
pub(crate) fn promised(core: &Core) -> Promised {
    let offered = core.registry.tables().offered;
    Promised {
        tools: offered.tools,
        prompts: offered.prompts,
        resources: offered.resources,
        resource: offered.resources,
        extension: !core.extensions.topics.is_empty(),
    }
}

/// What one listener may subscribe to.
pub(crate) fn limits(core: &Core) -> SubscriptionLimits {
    SubscriptionLimits { names: core.limits.subscriptions, ..SubscriptionLimits::default() }
}

/// The subscription of a listen request.
///
/// # Errors
/// When it asks for more than one listener may have, or for what its caller cannot use.
pub(crate) fn subscription(
    core: &Core,
    filter: &SubscriptionFilter,
    caller: &Profile,
) -> Result<Subscription, ErrorObject> {
    let more = extension::wanted(&core.extensions.topics, filter, caller)?;
    Subscription::listen(promised(core), limits(core), wanted(filter).chain(more))
}

/// What a listen request asks for of the protocol itself.
fn wanted(filter: &SubscriptionFilter) -> impl Iterator<Item = Topic> {
    let lists = [
        (filter.tools_list_changed, Topic::Tools),
        (filter.prompts_list_changed, Topic::Prompts),
        (filter.resources_list_changed, Topic::Resources),
    ];
    let lists = lists.into_iter().filter(|(flag, _)| *flag == Some(true)).map(|(_, topic)| topic);
    let uris = filter.resource_subscriptions.iter().flatten();
    lists.chain(uris.map(|uri| Topic::Resource(uri.as_str().into())))
}

/// Tells parts that change by themselves which resources somebody listens for. Middleware has had
/// its say by then.
pub(crate) fn announce(registry: &Registry, subscription: &Subscription) {
    for topic in subscription.granted() {
        if let Topic::Resource(uri) = topic {
            registry.subscribed(uri);
        }
    }
}

/// A listen request with a sink of its own.
pub(crate) struct Listener<'a> {
    pub(crate) sink: &'a Sink,
    pub(crate) outbox: &'a Outbox,
    pub(crate) registry: &'a Registry,
    /// Reads what extensions report.
    pub(crate) reader: Option<TopicReader>,
}

impl Listener<'_> {
    /// Serves it, until `stopped` is ready or the client has disconnected. Waits for room: the sink
    /// holds back what the client does not read.
    pub(crate) async fn serve(
        self,
        id: Id,
        mut subscription: Subscription,
        stopped: impl Future<Output = ()>,
    ) -> Outcome {
        let known = self.known(&subscription).await;
        subscription
            .revoke(|topic| matches!(topic, Topic::Extension(..)) && !known.contains(topic));
        let acknowledged = acknowledgement(&subscription, &id);
        let announced = subscription.clone();
        self.sink.add(Some(id.clone()), subscription).map_err(Failure::rejected)?;
        announce(self.registry, &announced);
        let _ = self.outbox.push(|out| acknowledged.encode(out));
        // Whatever happened to them before is news to this stream.
        self.sink.with(Some(&id), |subscription| {
            for topic in &known {
                subscription.handle_change(topic);
            }
        });
        self.sink.release(Some(&id));
        tokio::select! {
            biased;
            () = self.tell() => {}
            () = stopped => {}
        }
        Ok(Answer::ListenEnd)
    }

    /// The topics of extensions that the caller may know about.
    async fn known(&self, subscription: &Subscription) -> Vec<Topic> {
        let Some(reader) = &self.reader else { return Vec::new() };
        let mut known = Vec::new();
        for topic in subscription.granted() {
            if let Topic::Extension(member, name) = topic
                && reader.read(member, name).await.is_some()
            {
                known.push(topic.clone());
            }
        }
        known
    }

    /// Reports changes until the client has disconnected.
    async fn tell(&self) {
        loop {
            let news = poll_fn(|cx| self.sink.poll_next(cx)).await;
            let told = match (&news.topic, &self.reader) {
                (Topic::Extension(member, name), Some(reader)) => {
                    match reader.read(member, name).await {
                        Some((method, params)) => Told::Extension(method, about(&params, &news)),
                        None => continue,
                    }
                }
                _ => change(&news, None),
            };
            if self.outbox.send(|out| told.encode(out)).await.is_err() {
                return;
            }
        }
    }
}

/// The parameters of a notification, as those of a listen request.
fn about(params: &Json, change: &Change) -> Json {
    let Some(id) = &change.listen else { return params.clone() };
    with_meta(params, meta_key::SUBSCRIPTION_ID, id).unwrap_or_else(|_| params.clone())
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
    /// Something changed that an extension reports.
    Extension(&'static str, Json),
    /// A task of a legacy session changed.
    TaskStatus(Box<TaskStatusParams>),
    /// There is nothing to tell.
    Nothing,
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
            Self::Extension(method, params) => encode_notification(out, method, Some(params)),
            Self::TaskStatus(params) => {
                encode_notification(out, TaskStatusChanged::NAME, Some(params))
            }
            Self::Nothing => Ok(()),
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
            Topic::Extension(member, name) => extension::grant(&mut granted, member, name),
        }
    }
    let params = SubscriptionsAcknowledgedParams { notifications: granted, meta: Some(under(id)) };
    Told::Acknowledged(params)
}

/// A change as a notification to the session or the listen request. A legacy session, which `sink`
/// belongs to, is told the status of its own tasks.
pub(crate) fn change(change: &Change, session: Option<(&Tasks, &Sink)>) -> Told {
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
        Topic::Extension(_, id) => {
            let shown = session.and_then(|(tasks, sink)| Some((tasks.shown(id)?, sink)));
            let Some(((task, is_last), sink)) = shown else { return Told::Nothing };
            if is_last {
                // There is nothing more to follow.
                sink.with(None, |session| session.revoke(|topic| *topic == change.topic));
            }
            Told::TaskStatus(Box::new(TaskStatusParams { task, meta }))
        }
    }
}

fn under(id: &Id) -> Meta {
    let mut meta = Meta::default();
    meta.set(meta_key::SUBSCRIPTION_ID, id);
    meta
}
