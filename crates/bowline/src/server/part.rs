//! The parts that a server is built from.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use super::error::BuildError;
use super::extension::Extension;
use super::nest::{Nest, Step, prefixed};
use super::prompt::{self, Prompt};
use super::registry::{Offered, Place, Registry};
use super::resource::{self, Resource};
use super::tool::{self, Tool};
use crate::private::{Never, Other};

/// Something that can be added to a server: a tool, a prompt, a resource, or several of them.
///
/// The attributes `#[tool]`, `#[prompt]`, `#[resource]` and `#[server]` implement it; so do
/// [`Tool`], [`Prompt`] and [`Resource`] themselves, lists and tuples of parts, another
/// [`Server`](crate::Server), which keeps its middleware and state, and every function without
/// parameters that returns a part.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added to a server",
    label = "not a tool, a prompt, a resource or a group of them",
    note = "put `#[tool]`, `#[prompt]` or `#[resource]` on the function, or `#[server]` on the `impl` block",
    note = "without macros: `Tool::new(\"name\", |arguments: Arguments| async move {{ … }})`"
)]
pub trait Part {
    /// Adds it to `parts`.
    fn add_to(self, parts: &mut Parts);
}

/// Tools, prompts and resources, in the order they were added.
#[derive(Default)]
pub struct Parts {
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) entries: Entries,
    pub(crate) live: Vec<Live>,
    /// What nested servers offer, although they may not have it yet.
    pub(crate) offered: Offered,
    pub(crate) extensions: Vec<Extension>,
    /// What nested servers tell the model.
    pub(crate) instructions: Vec<String>,
    /// The registries of nested servers, and where their parts go.
    pub(crate) nested: Vec<(Registry, Nest)>,
    /// A mistake in a part that was built earlier.
    pub(crate) problem: Option<BuildError>,
}

/// A part that changes by itself after it was added.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) part: Arc<dyn LivePart>,
    pub(crate) nest: Nest,
}

/// What a part that changes by itself is told.
pub(crate) trait LivePart: Send + Sync {
    /// It was added here.
    fn added_to(&self, place: Place);

    /// Somebody subscribed to a resource, which may be one of its own.
    fn subscribed(&self, uri: &str);
}

/// The entries of another server.
#[derive(Clone, Default)]
pub(crate) struct Entries {
    pub(crate) tools: Vec<tool::Entry>,
    pub(crate) prompts: Vec<prompt::Entry>,
    pub(crate) resources: Vec<resource::Entry>,
}

impl Parts {
    /// Adds a part.
    pub fn add(&mut self, part: impl Part) {
        part.add_to(self);
    }

    /// Marks all of these parts with a value. [`Context::label`](crate::Context::label) returns it
    /// in requests for them, also in middleware.
    ///
    /// ```
    /// use bowline::{Incoming, Next, Parts, Server, Tool};
    ///
    /// struct Cost(u32);
    ///
    /// let mut parts = Parts::default();
    /// parts.add(Tool::new("think", || async { "42" }));
    /// parts.label(Cost(7));
    /// let bill = |incoming: Incoming, next: Next| async move {
    ///     let cost = incoming.context.label::<Cost>().map_or(0, |cost| cost.0);
    ///     eprintln!("{}: {cost}", incoming.method);
    ///     next.run(incoming).await
    /// };
    /// let server = Server::new("billed", "1.0.0").with(parts).middleware(bill);
    /// ```
    pub fn label(&mut self, label: impl Any + Send + Sync) {
        self.take_out(&Step::Label(Arc::new(label)));
    }

    /// Declares resources, although there may be none.
    #[cfg(feature = "skills")]
    pub(crate) fn offer_resources(&mut self) {
        self.offered.resources = true;
    }

    /// Takes all parts one step outward. A prefix goes before the names of all tools and prompts;
    /// URIs stay as they are.
    pub(crate) fn take_out(&mut self, step: &Step) {
        let entries = &mut self.entries;
        let tools = self.tools.iter_mut().map(|it| (&mut it.definition.name, &mut it.nest));
        let built = entries.tools.iter_mut().map(|it| (&mut it.definition.name, &mut it.nest));
        for (name, nest) in tools.chain(built) {
            rename(step, name, nest);
        }
        let prompts = self.prompts.iter_mut().map(|it| (&mut it.definition.name, &mut it.nest));
        let built = entries.prompts.iter_mut().map(|it| (&mut it.definition.name, &mut it.nest));
        for (name, nest) in prompts.chain(built) {
            rename(step, name, nest);
        }
        let resources = self.resources.iter_mut().map(|it| &mut it.nest);
        for nest in resources.chain(entries.resources.iter_mut().map(|it| &mut it.nest)) {
            *nest = nest.within(step);
        }
        let methods = self.extensions.iter_mut().flat_map(|it| &mut it.methods);
        for nest in methods.map(|it| &mut it.nest) {
            *nest = nest.within(step);
        }
        for (_, nest) in &mut self.nested {
            *nest = nest.within(step);
        }
        if let Step::Prefix(prefix) = step {
            for text in &mut self.instructions {
                *text = format!("{prefix}: {text}");
            }
        }
        for live in &mut self.live {
            live.nest = live.nest.within(step);
        }
    }
}

fn rename(step: &Step, name: &mut String, nest: &mut Nest) {
    if let Step::Prefix(prefix) = step {
        *name = prefixed(prefix, Cow::Owned(std::mem::take(name))).into_owned();
    }
    *nest = nest.within(step);
}

impl Part for Parts {
    fn add_to(self, parts: &mut Parts) {
        parts.tools.extend(self.tools);
        parts.prompts.extend(self.prompts);
        parts.resources.extend(self.resources);
        parts.entries.tools.extend(self.entries.tools);
        parts.entries.prompts.extend(self.entries.prompts);
        parts.entries.resources.extend(self.entries.resources);
        parts.live.extend(self.live);
        parts.offered.extend(self.offered);
        parts.extensions.extend(self.extensions);
        parts.instructions.extend(self.instructions);
        parts.nested.extend(self.nested);
        parts.problem = parts.problem.take().or(self.problem);
    }
}

impl Part for Tool {
    fn add_to(self, parts: &mut Parts) {
        parts.tools.push(self);
    }
}

impl Part for Prompt {
    fn add_to(self, parts: &mut Parts) {
        parts.prompts.push(self);
    }
}

impl Part for Resource {
    fn add_to(self, parts: &mut Parts) {
        parts.resources.push(self);
    }
}

impl<P: Part> Part for Vec<P> {
    fn add_to(self, parts: &mut Parts) {
        for part in self {
            part.add_to(parts);
        }
    }
}

impl<P: Part> Part for Option<P> {
    fn add_to(self, parts: &mut Parts) {
        if let Some(part) = self {
            part.add_to(parts);
        }
    }
}

/// A function that returns a part, such as one with `#[tool]`, or one that builds several.
impl<F, P> Part for F
where
    F: Fn() -> P,
    P: Part,
{
    fn add_to(self, parts: &mut Parts) {
        self().add_to(parts);
    }
}

/// Never applies. With a second candidate for every type, the compiler says of a type that is not a
/// part what [`Part`] says; with one, it would say that the type is not a function without
/// parameters. The second bound keeps the two apart in this crate, the first in others.
#[doc(hidden)]
impl<T> Part for T
where
    T: Never,
    Other<T>: Never,
{
    fn add_to(self, _: &mut Parts) {}
}

/// Tuples of different parts: `(add, subtract, help)`.
macro_rules! tuple {
    ($($name:ident),+) => {
        impl<$($name: Part),+> Part for ($($name,)+) {
            #[expect(non_snake_case, reason = "the names of the types serve as variables")]
            fn add_to(self, parts: &mut Parts) {
                let ($($name,)+) = self;
                $($name.add_to(parts);)+
            }
        }
    };
}
tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);
tuple!(A, B, C, D, E, F, G);
tuple!(A, B, C, D, E, F, G, H);
tuple!(A, B, C, D, E, F, G, H, I);
tuple!(A, B, C, D, E, F, G, H, I, J);
tuple!(A, B, C, D, E, F, G, H, I, J, K);
tuple!(A, B, C, D, E, F, G, H, I, J, K, L);
tuple!(A, B, C, D, E, F, G, H, I, J, K, L, M);
tuple!(A, B, C, D, E, F, G, H, I, J, K, L, M, N);
tuple!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O);
tuple!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P);
