//! To whom a tool appears, and how strict it is.

use std::sync::Arc;

use super::Tool;
use crate::Caller;

impl Tool {
    /// Accepts arguments that models often get wrong: JSON inside a string where the schema has a
    /// number, a boolean, an array or an object (`"5"`, `"[1, 2]"`, `"true"`). Unknown arguments
    /// are ignored. The schema stays strict, so that models know what is right.
    pub fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }

    /// Leaves it out of lists. Callers that know its name can call it.
    pub fn unlisted(mut self) -> Self {
        self.is_listed = false;
        self
    }

    /// Restricts it to callers that the rule accepts. For all others it does not exist.
    pub fn visible_to(mut self, rule: impl Fn(&Caller) -> bool + Send + Sync + 'static) -> Self {
        self.visible = Some(Arc::new(rule));
        self
    }
}
