//! What extensions do with definitions before they are listed.

use std::sync::Arc;

use bowline_proto::model::{Prompt, Resource, ResourceTemplate, Tool};
use bowline_proto::revision::Revision;

use super::Extension;

/// Changes a definition before it is listed.
type Decorator<T> = Arc<dyn Fn(&mut T, Revision) + Send + Sync>;

/// What extensions do with definitions, by kind and in order.
#[derive(Clone, Default)]
pub(crate) struct Decorators {
    tools: Vec<Decorator<Tool>>,
    prompts: Vec<Decorator<Prompt>>,
    resources: Vec<Decorator<Resource>>,
    templates: Vec<Decorator<ResourceTemplate>>,
}

/// A definition that extensions may change.
pub(crate) trait Decorated: Sized + 'static {
    fn decorators(all: &Decorators) -> &[Decorator<Self>];
}

impl Decorators {
    pub(super) fn append(&mut self, other: &mut Self) {
        self.tools.append(&mut other.tools);
        self.prompts.append(&mut other.prompts);
        self.resources.append(&mut other.resources);
        self.templates.append(&mut other.templates);
    }

    /// A definition as it is listed.
    pub(crate) fn decorate<T: Decorated>(&self, mut definition: T, to: Revision) -> T {
        for change in T::decorators(self) {
            change(&mut definition, to);
        }
        definition
    }
}

/// The method of [`Extension`] for one kind, and where its functions are kept.
macro_rules! kinds {
    ($($(#[$doc:meta])* $method:ident, $field:ident: $kind:ty;)*) => {
        $(impl Decorated for $kind {
            fn decorators(all: &Decorators) -> &[Decorator<Self>] {
                &all.$field
            }
        })*

        /// Changes to lists. Lists are encoded once and kept, so the same definition must come out
        /// each time. Each change gets the revision that the list is written in.
        impl Extension {
            $($(#[$doc])*
            pub fn $method(
                mut self,
                change: impl Fn(&mut $kind, Revision) + Send + Sync + 'static,
            ) -> Self {
                self.decorators.$field.push(Arc::new(change));
                self
            })*
        }
    };
}
kinds! {
    /// Changes the definitions of all tools before they are listed.
    decorate_tools, tools: Tool;
    /// Changes the definitions of all prompts before they are listed.
    decorate_prompts, prompts: Prompt;
    /// Changes the definitions of all resources before they are listed.
    decorate_resources, resources: Resource;
    /// Changes the definitions of all resource templates before they are listed.
    decorate_templates, templates: ResourceTemplate;
}
