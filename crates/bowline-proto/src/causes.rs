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

/// Implements `Debug` for errors as the sentence of [`with_causes`]: a `main` that returns one
/// prints it in this form.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_sentence {
    ($($name:ty),+ $(,)?) => {$(
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&$crate::causes::with_causes(self))
            }
        }
    )+};
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

    struct Start(Level);

    debug_as_sentence!(Start);

    impl fmt::Display for Start {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("cannot start")
        }
    }

    impl Error for Start {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_main_prints_the_sentence() {
        assert_eq!(format!("{:?}", Start(Level("no power", None))), "cannot start: no power");
    }
}
