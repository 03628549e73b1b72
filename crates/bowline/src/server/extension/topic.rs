//! What extensions report to listening clients.

use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::SubscriptionFilter;
use bowline_proto::session::Topic;
use serde::Serialize;

use super::super::caller::{Caller, Profile};
use super::super::handler::BoxFuture;
use super::check_declared;

/// A topic of an extension: a member of `subscriptions/listen` that lists names, and what clients
/// are told when one of them changes.
#[derive(Clone)]
pub(crate) struct ExtensionTopic {
    pub(super) member: Arc<str>,
    notification: &'static str,
    /// The extension that callers must have declared, too.
    pub(super) required: Option<Arc<str>>,
    read: Arc<Read>,
}

/// The state of a name as a caller may see it; `None` if there is none.
type Read = dyn Fn(Caller, String) -> BoxFuture<Option<Json>> + Send + Sync;

impl ExtensionTopic {
    pub(super) fn new<R, F>(
        member: &str,
        notification: &'static str,
        read: impl Fn(Caller, String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        R: Serialize,
        F: Future<Output = Option<R>> + Send + 'static,
    {
        let read = move |caller: Caller, name: String| -> BoxFuture<Option<Json>> {
            let reading = read(caller, name);
            Box::pin(async move { Json::new(&reading.await?).ok().filter(Json::is_object) })
        };
        Self { member: member.into(), notification, required: None, read: Arc::new(read) }
    }

    /// The names that a listen request lists.
    fn names<'a>(&self, filter: &'a SubscriptionFilter) -> Vec<&'a str> {
        if &*self.member == TASKS {
            return filter.task_ids.iter().flatten().map(String::as_str).collect();
        }
        let listed = filter.extra.get(&*self.member).and_then(serde_json::Value::as_array);
        listed.into_iter().flatten().filter_map(serde_json::Value::as_str).collect()
    }
}

/// The member that lists tasks, which the model names.
pub(crate) const TASKS: &str = "taskIds";

/// The topics that a listen request asks for.
///
/// # Errors
/// When the caller has not declared an extension that it must declare.
pub(crate) fn wanted(
    topics: &[ExtensionTopic],
    filter: &SubscriptionFilter,
    caller: &Profile,
) -> Result<Vec<Topic>, ErrorObject> {
    let mut wanted = Vec::new();
    for topic in topics {
        let names = topic.names(filter);
        if !names.is_empty() {
            check_declared(topic.required.as_deref(), caller)?;
        }
        let named = |name: &str| Topic::Extension(Arc::clone(&topic.member), name.into());
        wanted.extend(names.into_iter().map(named));
    }
    Ok(wanted)
}

/// Adds a topic to the acknowledgement of a listen request.
pub(crate) fn grant(granted: &mut SubscriptionFilter, member: &str, name: &str) {
    if member == TASKS {
        return granted.task_ids.get_or_insert_default().push(name.to_owned());
    }
    let listed =
        granted.extra.entry(member).or_insert_with(|| serde_json::Value::Array(Vec::new()));
    if let Some(names) = listed.as_array_mut() {
        names.push(name.into());
    }
}

/// Reads what extensions report to one listening client.
pub(crate) struct TopicReader {
    pub(crate) topics: Arc<[ExtensionTopic]>,
    pub(crate) caller: Caller,
}

impl TopicReader {
    /// The method of the notification about a name, and its parameters, if the caller may know
    /// about it.
    pub(crate) async fn read(&self, member: &str, name: &str) -> Option<(&'static str, Json)> {
        let topic = self.topics.iter().find(|it| &*it.member == member)?;
        let params = (topic.read)(self.caller.clone(), name.to_owned()).await?;
        Some((topic.notification, params))
    }
}
