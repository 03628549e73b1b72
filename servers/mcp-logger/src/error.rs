//! Errors as people and models read them: the whole chain in one line.

use std::error::Error;

/// An error with everything that caused it.
pub fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some say what their cause says as well.
        if !text.ends_with(&next) {
            text += ": ";
            text += &next;
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outside")]
    struct Outside(#[source] std::num::ParseIntError);

    #[test]
    fn causes_are_told() {
        let inside = "x".parse::<u8>().unwrap_err();
        assert_eq!(whole(&Outside(inside)), "outside: invalid digit found in string");
    }
}
