//! What a schema may cost: when it is compiled, and at each validation.

/// Bounds for one schema.
///
/// The defaults suit any schema that a person writes. With them a validation takes at most about
/// 50 ms, whatever the schema and the value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many subschemas a schema may have. Default: 10 000.
    pub max_subschemas: usize,
    /// How deep the JSON of a schema may nest. Default: 128.
    pub max_depth: usize,
    /// How long the text of one pattern may be, in bytes. Default: 2048.
    pub max_pattern_length: usize,
    /// How much memory all compiled patterns may take, in bytes. Default: 1 MiB.
    pub max_pattern_memory: usize,
    /// How many steps a validation may take. One step applies a keyword to a value, or looks at a
    /// piece of a long text or list. Default: 500 000.
    pub max_steps: u64,
    /// How deeply subschemas may nest during a validation, which bounds the stack: a level takes
    /// about 1 KiB, or 4 KiB without optimization. Default: 256.
    pub max_nested_steps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_subschemas: 10_000,
            max_depth: 128,
            max_pattern_length: 2048,
            max_pattern_memory: 1 << 20,
            max_steps: 500_000,
            max_nested_steps: 256,
        }
    }
}

impl Limits {
    /// Sets the budget of steps for each validation.
    pub fn with_max_steps(mut self, max_steps: u64) -> Self {
        self.max_steps = max_steps;
        self
    }
}
