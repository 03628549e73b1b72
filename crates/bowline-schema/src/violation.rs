//! What is wrong with a value, in words.

use std::fmt;

/// Why a value was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// The value breaks rules. Its author can fix it.
    Violations(Violations),
    /// The budget of steps ran out before the verdict.
    TooCostly {
        /// The budget.
        max_steps: u64,
    },
    /// The value, or the path through the schema, nests too deeply.
    TooDeep {
        /// The limit.
        max_nested_steps: usize,
    },
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violations(violations) => violations.fmt(f),
            Self::TooCostly { max_steps } => {
                write!(f, "checking the value against its schema takes more than {max_steps} steps")
            }
            Self::TooDeep { max_nested_steps } => write!(
                f,
                "checking the value against its schema goes more than {max_nested_steps} levels deep"
            ),
        }
    }
}

impl std::error::Error for Invalid {}

/// The rules that a value breaks: at least one, and not all if there are many.
///
/// `Display` prints one line for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    pub(crate) list: Vec<Violation>,
    pub(crate) more: usize,
}

impl Violations {
    /// How many are described at most.
    pub const MAX: usize = 8;

    /// The violations that are described.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.list.iter()
    }

    /// How many more there are.
    pub fn more(&self) -> usize {
        self.more
    }
}

impl<'a> IntoIterator for &'a Violations {
    type Item = &'a Violation;
    type IntoIter = std::slice::Iter<'a, Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, violation) in self.list.iter().enumerate() {
            let line_break = if number == 0 { "" } else { "\n" };
            write!(f, "{line_break}{violation}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// One rule that the value breaks at one location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The location: `arguments.items[2].size`.
    pub path: String,
    /// What is wrong there and what is allowed: `is 0; expected at least 1`.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.message)
    }
}
