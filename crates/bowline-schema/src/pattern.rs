//! Patterns that take at most a known number of steps per byte of text.
//!
//! The engine keeps every state of the pattern alive at once, so its time is bounded by the size of
//! the compiled pattern times the length of the text. Patterns that need backtracking (lookaround,
//! backreferences) are rejected when the schema is compiled.

mod translate;

use regex_lite::{Regex, RegexBuilder};

/// Every compiled pattern counts as at least this big.
const LEAST_MEMORY: usize = 256;

/// Roughly how many bytes of a compiled pattern one step visits.
const MEMORY_PER_STEP: usize = 256;

/// How deep groups may nest, which bounds the stack while a pattern is compiled.
const MAX_GROUPS: u32 = 50;

/// One compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    memory: usize,
    text: Box<str>,
}

impl Pattern {
    /// Compiles within `memory` bytes.
    pub(crate) fn compile(text: &str, memory: usize) -> Result<Self, String> {
        let translated = translate::to_engine(text)?;
        // The engine does not report its size; the limit at which it succeeds does.
        let mut limit = LEAST_MEMORY;
        loop {
            let result =
                RegexBuilder::new(&translated).nest_limit(MAX_GROUPS).size_limit(limit).build();
            match result {
                Ok(regex) => return Ok(Self { regex, memory: limit, text: text.into() }),
                Err(error) if !error.to_string().contains("size limit") => {
                    return Err(error.to_string());
                }
                Err(_) if limit * 2 > memory => {
                    return Err("it takes more memory than is left for patterns".to_owned());
                }
                Err(_) => limit *= 2,
            }
        }
    }

    /// How many bytes the compiled pattern takes, rounded up.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// The pattern as written in the schema.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// How many steps a match against `text` costs.
    pub(crate) fn steps(&self, text: &str) -> u64 {
        let per_byte = (self.memory / MEMORY_PER_STEP) as u64;
        1 + (text.len() as u64).saturating_mul(per_byte)
    }

    /// Whether any part of `text` matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}
