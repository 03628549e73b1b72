//! Which changes to subscribe to.

use bowline_proto::model::SubscriptionFilter;

/// Which changes to subscribe to.
///
/// ```
/// use bowline::client::Wanted;
///
/// let wanted = Wanted::lists().resource("file:///project/plan.md");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Wanted(pub(super) SubscriptionFilter);

impl Wanted {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lists of tools, prompts and resources.
    pub fn lists() -> Self {
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
}
