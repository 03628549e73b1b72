//! A schema, ready for use.

use std::collections::HashMap;

use serde_json::Value;

use crate::compile::compile;
use crate::error::SchemaError;
use crate::evaluate::Evaluation;
use crate::limits::Limits;
use crate::node::{DynamicName, Node, NodeId, ResourceId};
use crate::violation::Invalid;

/// A compiled schema. It owns all it needs and can be shared between threads.
#[derive(Debug)]
pub struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
    /// Empty unless a dynamic reference needs them.
    pub(crate) dynamic_anchors: HashMap<(ResourceId, DynamicName), NodeId>,
    pub(crate) limits: Limits,
}

impl Schema {
    /// Compiles a schema within the default [`Limits`].
    ///
    /// # Errors
    /// When it is no schema, of an unknown dialect, refers to what is not in it, or exceeds a
    /// limit.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        compile(schema, &Limits::default())
    }

    /// Compiles a schema within limits of the caller's.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_with(schema: &Value, limits: &Limits) -> Result<Self, SchemaError> {
        compile(schema, limits)
    }

    /// Checks a value, which messages call `root`: `arguments` makes `arguments.items[2].size`.
    ///
    /// A value that passes costs one look at each part of it, and no allocation unless the schema
    /// says `uniqueItems`, `unevaluated…`, `propertyNames` or `multipleOf` a fraction. One that
    /// does not is looked at again, with half the budget, for the words.
    ///
    /// # Errors
    /// When the value breaks a rule of the schema, or the budget ends before that is known.
    pub fn validate(&self, root: &str, value: &Value) -> Result<(), Invalid> {
        let mut evaluation = Evaluation::new(self);
        if evaluation.passes(value)? {
            return Ok(());
        }
        Err(Invalid::Violations(Evaluation::new(self).explain(root, value)))
    }

    /// How many steps the validation of a value takes, whether it passes or not; `None` if more
    /// than [`Limits::max_steps`].
    pub fn steps(&self, value: &Value) -> Option<u64> {
        let mut evaluation = Evaluation::new(self);
        evaluation.passes(value).ok().map(|_| evaluation.spent())
    }
}
