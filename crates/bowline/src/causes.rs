//! An error with everything that lies under it, in one line.

use std::error::Error;

/// An error and its causes, in one line. What an error says of its cause itself is not said twice.
///
/// ```
/// use bowline::{BuildError, ServeError, with_causes};
///
/// let cause = BuildError::Duplicate { kind: "tool", name: "greet".to_owned() };
/// let said = with_causes(&ServeError::Build(cause));
/// assert_eq!(said, "the server cannot be built: two tools are called \"greet\"");
/// ```
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let told = inner.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Level(&'static str, Option<Box<Self>>);

    impl fmt::Display for Level {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Level {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|it| it as &(dyn Error + 'static))
        }
    }

    #[test]
    fn each_cause_is_told_once() {
        let deep = Level("refused", None);
        let middle = Level("connect: refused", Some(Box::new(deep)));
        let top = Level("no answer", Some(Box::new(middle)));
        assert_eq!(with_causes(&top), "no answer: connect: refused");
        assert_eq!(with_causes(&Level("alone", None)), "alone");
    }
}
