//! A schema, ready for use.

use std::collections::HashMap;

use serde_json::Value;

use crate::compile::compile;
use crate::error::SchemaError;
use crate::evaluate::Evaluation;
use crate::limits::Limits;
use crate::node::{DynamicName, Node, NodeId, ResourceId};
use crate::violation::Invalid;

/// A compiled schema. It owns everything it needs and can be shared between threads.
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
    /// When the schema is malformed, has an unknown dialect, refers to something outside it, or
    /// exceeds a limit.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        compile(schema, &Limits::default())
    }

    /// Compiles a schema within the given limits.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_with(schema: &Value, limits: &Limits) -> Result<Self, SchemaError> {
        compile(schema, limits)
    }

    /// Checks a value, which messages call `root`: `arguments` makes `arguments.items[2].size`.
    ///
    /// A value that passes is walked once, without allocations unless the schema uses
    /// `uniqueItems`, `unevaluated…`, `propertyNames` or a fractional `multipleOf`. A value that
    /// fails is walked again, with half the budget, to describe what is wrong.
    ///
    /// # Errors
    /// When the value breaks a rule of the schema, or the budget runs out before the verdict.
    pub fn validate(&self, root: &str, value: &Value) -> Result<(), Invalid> {
        let mut evaluation = Evaluation::new(self);
        if evaluation.passes(value)? {
            return Ok(());
        }
        Err(Invalid::Violations(Evaluation::new(self).explain(root, value)))
    }

    /// Counts the steps that validating a value takes, whether it passes or not; `None` if it
    /// takes more than [`Limits::max_steps`].
    pub fn steps(&self, value: &Value) -> Option<u64> {
        let mut evaluation = Evaluation::new(self);
        evaluation.passes(value).ok().map(|_| evaluation.spent())
    }
}
