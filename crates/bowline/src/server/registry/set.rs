//! A registry whose entries are all replaced at once.

use std::sync::PoisonError;

use bowline_proto::model;
use bowline_proto::session::Topic;

use super::table::{Table, Tables};
use super::{Registry, Settling};
use crate::server::error::BuildError;
use crate::server::part::Part;

impl Registry {
    /// Replaces everything that is there, at once. Clients hear of the lists that differ: in their
    /// definitions or their order, not in what handles them. Requests that run are not disturbed.
    ///
    /// # Errors
    /// When one of the parts is invalid, or two have the same name. Nothing changes then.
    pub fn set(&self, part: impl Part) -> Result<(), BuildError> {
        let this = self.current();
        let mut parts = this.parts(part);
        let settling = Settling::take(&mut parts);
        let topics = this.exchange(|now| {
            let mut next = now.emptied();
            next.add(parts)?;
            let topics = now.listed_differences(&next);
            Ok::<_, BuildError>(Some((next, topics)))
        })?;
        this.inner.live.lock().unwrap_or_else(PoisonError::into_inner).clear();
        this.settle(settling);
        this.publish(topics);
        Ok(())
    }

    /// Notifies clients that their lists may have changed, because what callers may see has.
    pub fn lists_changed(&self) {
        self.current().publish(vec![Topic::Tools, Topic::Prompts, Topic::Resources]);
    }
}

impl Tables {
    /// The same settings without any entries.
    fn emptied(&self) -> Self {
        Self {
            tools: Table::default(),
            prompts: Table::default(),
            resources: Table::default(),
            templates: Table::default(),
            has_scopes: false,
            ..self.next()
        }
    }

    /// Which lists look different to clients.
    fn listed_differences(&self, next: &Self) -> Vec<Topic> {
        fn tools(it: &Tables) -> impl Iterator<Item = model::Tool> {
            it.tools.iter().filter(|it| it.is_enabled && it.is_listed).map(|it| it.described())
        }
        fn resources(it: &Tables) -> impl Iterator<Item = &model::Resource> {
            it.resources.iter().chain(it.templates.iter()).map(|it| &it.definition)
        }
        let prompts =
            |it: &Self| it.prompts.iter().map(|it| it.definition.clone()).collect::<Vec<_>>();
        let differs = [
            (Topic::Tools, !tools(self).eq(tools(next))),
            (Topic::Prompts, prompts(self) != prompts(next)),
            (Topic::Resources, !resources(self).eq(resources(next))),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(topic, _)| topic).collect()
    }
}
