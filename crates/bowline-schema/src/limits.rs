//! What a schema may cost, when compiled and at each validation.

/// Bounds for one schema.
///
/// The defaults hold any schema that a person writes. With them a validation takes at most about
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
    /// How many steps a validation may take: one is a keyword applied to a value, or a piece of a
    /// long text or list. Default: 500 000.
    pub max_steps: u64,
    /// How many subschemas may be at work inside one another during a validation, which bounds the
    /// stack: a level takes about 1 KiB, 4 KiB without optimisation. Default: 256.
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
    /// The defaults, with other steps for each validation.
    pub fn with_max_steps(mut self, max_steps: u64) -> Self {
        self.max_steps = max_steps;
        self
    }
}
