//! The grammar of OAuth scopes, which servers declare, tokens carry and clients ask for.

/// Whether a word is one scope: visible ASCII without `"` and `\` (RFC 6749, section 3.3).
#[must_use]
pub fn is_scope(word: &str) -> bool {
    let is_allowed = |byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !word.is_empty() && word.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_words_of_visible_ascii() {
        for word in ["a", "mcp:tools", "https://a.example/x?y", "!~"] {
            assert!(is_scope(word), "{word:?}");
        }
        for word in ["", "a b", "a\tb", "\"a\"", "a\\", "d\u{e9}", "\u{7f}"] {
            assert!(!is_scope(word), "{word:?}");
        }
    }
}
