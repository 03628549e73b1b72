//! What an upstream server has, put together by somebody else: a gateway, which chooses, renames
//! and merges the lists of many.

use std::any::Any;
use std::sync::Arc;

use super::Proxy;
use super::mirror::Watched;
use crate::server::{Entries, Live, Nest, NestStep};
use crate::{Caller, Parts};

/// Something that the upstream server lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Listed<'a> {
    /// A tool, by its name.
    Tool(&'a str),
    /// A prompt, by its name.
    Prompt(&'a str),
    /// A resource, by its URI.
    Resource(&'a str),
    /// A resource template, by its URI template.
    Template(&'a str),
}

/// What becomes of it at the front.
#[derive(Clone)]
#[non_exhaustive]
pub struct Picked {
    name: String,
    is_listed: bool,
    visible: Arc<dyn Fn(&Caller) -> bool + Send + Sync>,
    label: Option<Arc<dyn Any + Send + Sync>>,
}

impl Picked {
    /// Under this name, which is ignored for resources and templates, for callers that the rule
    /// accepts.
    pub fn new(
        name: impl Into<String>,
        visible: impl Fn(&Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), is_listed: true, visible: Arc::new(visible), label: None }
    }

    /// Marks it with a value, as [`Parts::label`](crate::Parts::label) does.
    #[must_use]
    pub fn label(mut self, label: impl Any + Send + Sync) -> Self {
        self.label = Some(Arc::new(label));
        self
    }

    fn nest(&self, nest: &Nest) -> Nest {
        let label = self.label.clone().map(NestStep::Label);
        label.map_or_else(|| nest.clone(), |label| nest.within(&label))
    }

    /// Leaves a tool out of lists. Callers that know its name can call it.
    #[must_use]
    pub fn unlisted(mut self) -> Self {
        self.is_listed = false;
        self
    }
}

impl Proxy {
    /// What the upstream server has now, as `pick` wants it: left out, or under some names. Add it
    /// with [`Registry::set`](crate::Registry::set), and again when [`Proxy::changed`] says so:
    /// unlike the proxy itself, it does not follow changes of lists.
    pub fn parts(&self, mut pick: impl FnMut(Listed<'_>) -> Vec<Picked>) -> Parts {
        let now = self.mirror.entries();
        let mut entries = Entries::default();
        for it in &now.tools {
            for picked in pick(Listed::Tool(&it.definition.name)) {
                let mut it = it.clone();
                it.nest = picked.nest(&it.nest);
                it.definition.name = picked.name;
                it.visible = Some(picked.visible);
                it.is_listed = picked.is_listed;
                entries.tools.push(it);
            }
        }
        for it in &now.prompts {
            for picked in pick(Listed::Prompt(&it.definition.name)) {
                let mut it = it.clone();
                it.nest = picked.nest(&it.nest);
                it.definition.name = picked.name;
                it.visible = Some(picked.visible);
                entries.prompts.push(it);
            }
        }
        for it in &now.resources {
            let uri = &it.definition.uri;
            let listed =
                if it.template.is_some() { Listed::Template(uri) } else { Listed::Resource(uri) };
            if let Some(picked) = pick(listed).into_iter().next() {
                let mut it = it.clone();
                it.nest = picked.nest(&it.nest);
                it.visible = Some(picked.visible);
                entries.resources.push(it);
            }
        }
        let part = Arc::new(Watched(Arc::clone(&self.mirror)));
        let live = vec![Live { part, nest: Nest::default() }];
        Parts { entries, live, ..Parts::default() }
    }

    /// Waits until the lists of the upstream server were read again; `seen` is what it returned
    /// before, 0 at first.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn changed(&self, seen: u64) -> u64 {
        let mut version = self.mirror.version.subscribe();
        // The sender is in the mirror, which we hold.
        let now = version.wait_for(|version| *version != seen).await;
        now.map_or(seen, |now| *now)
    }
}
