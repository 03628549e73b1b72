//! Whether a statement that spans several lines is complete.

/// The longest statement, in bytes: 16 MiB.
pub(crate) const LONGEST: usize = 16 << 20;

/// Whether a bracket or a quote of JSON or of a call is still open.
pub(crate) fn is_open(text: &str) -> bool {
    let Some(start) = start_of_brackets(text) else { return false };
    let mut depth = 0_usize;
    let mut quote = None;
    let mut letters = text[start..].chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some('"'),
            // An apostrophe inside a word opens nothing.
            (None, '\'') if opens(&text[start..], letters.as_str()) => quote = Some('\''),
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}' | ']' | ')') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return false;
                }
            }
            _ => {}
        }
    }
    depth > 0
}

/// Whether the quote just before `rest` stands where a value begins.
fn opens(text: &str, rest: &str) -> bool {
    let before = &text[..text.len() - rest.len() - 1];
    before.trim_end().ends_with(['(', '[', '{', ',', ':', '='])
}

/// Where brackets begin to count: at JSON, at the parenthesis of `tool(`, or at the JSON after
/// words. Nowhere in `call tool text=(`.
fn start_of_brackets(text: &str) -> Option<usize> {
    let trimmed = text.trim_start();
    let start = text.len() - trimmed.len();
    let found = trimmed.find(['{', '[', '(', '=', '"', '\''])?;
    let before = &trimmed[..found];
    match trimmed.as_bytes()[found] {
        b'(' if !before.is_empty() && !before.contains(char::is_whitespace) => Some(start + found),
        b'{' if before.is_empty() || before.ends_with(char::is_whitespace) => Some(start + found),
        b'[' if before.is_empty() => Some(start + found),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        assert_eq!(is_open(text), expected, "{text}");
    }

    #[test]
    fn open_brackets_and_quotes_want_more_lines() {
        check("", false);
        check("status", false);
        check("{", true);
        check("{\"a\": \"}\"", true);
        check("{\"a\": \"}\"}", false);
        check("{\"a\": \"\\\"}", true);
        check("[1,", true);
        check("[1, {\"a\": []}]", false);
        check("echo(", true);
        check("echo(message: 'a)", true);
        check("echo(message: don't)", false);
        check("echo(message: 'a)')", false);
        check("echo {", true);
        check("call echo {\"a\":\n1}", false);
        check("call echo message=a(b", false);
        check("call echo message=\"{", false);
        check("read test://{x", false);
    }
}
