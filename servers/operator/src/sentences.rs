//! Splits text into pieces that can be spoken one after another.

/// The longest piece, in characters: an engine takes too long to start on longer ones.
const MAX_PIECE: usize = 200;

/// Splits a text after sentences, and long sentences after words. No piece is blank.
pub(crate) fn sentences(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        piece.push(letter);
        let is_long = piece.chars().count() >= MAX_PIECE;
        let ends = match letter {
            '。' | '！' | '？' | '\n' => true,
            // A full stop inside a number or name does not end a sentence.
            '.' | '!' | '?' => letters.peek().is_none_or(|next| next.is_whitespace()),
            _ => false,
        };
        if ends {
            pieces.push(std::mem::take(&mut piece));
        } else if is_long {
            let rest = piece.rfind(char::is_whitespace).map(|at| piece.split_off(at));
            pieces.push(std::mem::replace(&mut piece, rest.unwrap_or_default()));
        }
    }
    pieces.push(piece);
    let trimmed = pieces.iter().map(|piece| piece.trim().to_owned());
    trimmed.filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_people_pause() {
        assert_eq!(sentences("One. Two! Three?"), ["One.", "Two!", "Three?"]);
        assert_eq!(
            sentences("こんにちは。元気ですか？はい"),
            ["こんにちは。", "元気ですか？", "はい"]
        );
        assert_eq!(
            sentences("Pi is 3.14, says example.com.\n\nYes"),
            ["Pi is 3.14, says example.com.", "Yes"]
        );
        assert_eq!(sentences(" \n "), [""; 0]);
    }

    #[test]
    fn long_sentences_are_split_after_words() {
        let text = "word ".repeat(100);
        let pieces = sentences(&text);
        assert!(pieces.iter().all(|piece| piece.chars().count() <= MAX_PIECE), "{pieces:?}");
        assert_eq!(pieces.join(" "), text.trim());
        let pieces = sentences(&"あ".repeat(450));
        assert_eq!(
            pieces.iter().map(|piece| piece.chars().count()).collect::<Vec<_>>(),
            [200, 200, 50]
        );
    }
}
