//! Values that handlers share, found by their type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value that was added with [`Server::state`](crate::Server::state). Cheap to clone.
pub struct State<T: ?Sized>(Arc<T>);

impl<T: ?Sized> State<T> {
    /// The value itself, for code that wants an [`Arc`].
    pub fn into_inner(this: Self) -> Arc<T> {
        this.0
    }
}

impl<T: ?Sized> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("State").field(&&self.0).finish()
    }
}

/// The server has no state of this type.
///
/// Tools, prompts and resources that [declare](crate::Tool::needs_state) what they need never see
/// this: a server that lacks it cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server has no state of type {0}; help: add it with `Server::state`")]
pub struct MissingState(&'static str);

/// A type of state that something needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    id: TypeId,
    pub(crate) type_name: &'static str,
}

impl Need {
    pub(crate) fn of<T: Any + Send + Sync>() -> Self {
        Self { id: TypeId::of::<T>(), type_name: type_name::<T>() }
    }
}

/// Values that handlers share, at most one of each type.
#[derive(Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, need: &Need) -> bool {
        self.0.contains_key(&need.id)
    }

    /// The value of a type, from the first that has one.
    pub(crate) fn find<'a, T: Any + Send + Sync>(
        mut nearest: impl Iterator<Item = &'a Self>,
    ) -> Result<State<T>, MissingState> {
        let found = nearest.find_map(|states| states.0.get(&TypeId::of::<T>()));
        let value = found.and_then(|value| Arc::clone(value).downcast().ok());
        value.map(State).ok_or_else(|| MissingState(type_name::<T>()))
    }

    /// The value of this type: the one that is there, or else this one.
    pub(crate) fn get_or_insert<T: Any + Send + Sync>(&mut self, value: T) -> State<T> {
        let value = Arc::new(value);
        let any = self.0.entry(TypeId::of::<T>()).or_insert_with(|| Arc::<T>::clone(&value) as _);
        State(Arc::clone(any).downcast().unwrap_or(value))
    }
}
