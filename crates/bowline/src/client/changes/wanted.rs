//! Which changes to subscribe to.

use bowline_proto::json::{Extra, Sparse};
use bowline_proto::model::{ServerCapabilities, SubscriptionFilter};
use serde_json::Value;

/// Which changes to subscribe to.
///
/// ```
/// use bowline::client::Wanted;
///
/// let wanted = Wanted::all_lists().resource("file:///project/plan.md");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Wanted(pub(super) SubscriptionFilter);

impl Wanted {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lists of tools, prompts and resources.
    pub fn all_lists() -> Self {
        Self::new().tools().prompts().resources()
    }

    /// The list of tools.
    #[must_use]
    pub fn tools(mut self) -> Self {
        self.0.tools_list_changed = Some(true);
        self
    }

    /// The list of prompts.
    #[must_use]
    pub fn prompts(mut self) -> Self {
        self.0.prompts_list_changed = Some(true);
        self
    }

    /// The list of resources.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.0.resources_list_changed = Some(true);
        self
    }

    /// One resource.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.0.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }

    /// A name under a topic of an extension, which servers of the modern era report. It is not a
    /// [`Change`](super::Change): the state of the name comes as a notification of the extension,
    /// at once and after each change, to [`notifications`](crate::Client::notifications).
    #[must_use]
    pub fn topic(mut self, member: impl Into<String>, name: impl Into<String>) -> Self {
        let names = self.0.extra.entry(member).or_insert_with(|| Value::Array(Vec::new()));
        if let Some(names) = names.as_array_mut() {
            names.push(name.into().into());
        }
        self
    }
}

/// What is granted of the topics that are wanted.
pub(super) fn granted_topics(wanted: &SubscriptionFilter, granted: &Extra) -> Sparse {
    let names = |all: &Extra, member: &str| -> Vec<Value> {
        all.get(member).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let topics = wanted.extra.keys().map(|member| {
        let mut both = names(&wanted.extra, member);
        let granted = names(granted, member);
        both.retain(|name| granted.contains(name));
        (member.clone(), Value::Array(both))
    });
    topics.filter(|(_, names)| names.as_array().is_some_and(|it| !it.is_empty())).collect()
}

/// What a server reports of this, according to its capabilities.
pub(super) fn offered(
    server: &ServerCapabilities,
    wanted: &SubscriptionFilter,
) -> SubscriptionFilter {
    let resources = server.resources.as_ref();
    let both = |wanted: Option<bool>, is_offered: bool| wanted.filter(|it| *it && is_offered);
    let tools = server.tools.as_ref().is_some_and(|it| it.list_changed == Some(true));
    let prompts = server.prompts.as_ref().is_some_and(|it| it.list_changed == Some(true));
    let lists = resources.is_some_and(|it| it.list_changed == Some(true));
    let subscribes = resources.is_some_and(|it| it.subscribe == Some(true));
    SubscriptionFilter {
        tools_list_changed: both(wanted.tools_list_changed, tools),
        prompts_list_changed: both(wanted.prompts_list_changed, prompts),
        resources_list_changed: both(wanted.resources_list_changed, lists),
        resource_subscriptions: wanted.resource_subscriptions.clone().filter(|_| subscribes),
        ..SubscriptionFilter::default()
    }
}

/// The first capability that is missing, if the server grants nothing of what is wanted.
pub(super) fn missing(
    wanted: &SubscriptionFilter,
    granted: &SubscriptionFilter,
) -> Option<&'static str> {
    let rows = |filter: &SubscriptionFilter| {
        [
            ("tools.listChanged", filter.tools_list_changed == Some(true)),
            ("prompts.listChanged", filter.prompts_list_changed == Some(true)),
            ("resources.listChanged", filter.resources_list_changed == Some(true)),
            (
                "resources.subscribe",
                filter.resource_subscriptions.as_ref().is_some_and(|uris| !uris.is_empty()),
            ),
            ("extensions", !filter.extra.is_empty()),
        ]
    };
    if rows(granted).iter().any(|(_, is_granted)| *is_granted) {
        return None;
    }
    rows(wanted).into_iter().find(|(_, is_wanted)| *is_wanted).map(|(capability, _)| capability)
}
