//! An error with its causes, in one line.

use std::error::Error;

/// Formats an error and its causes in one line. A cause that an error repeats in its own text is
/// printed once.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
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
    fn each_cause_is_printed_once() {
        let deep = Level("refused", None);
        let middle = Level("connect: refused", Some(Box::new(deep)));
        let top = Level("no answer", Some(Box::new(middle)));
        assert_eq!(with_causes(&top), "no answer: connect: refused");
        assert_eq!(with_causes(&Level("alone", None)), "alone");
    }
}
