//! From ECMA-262 patterns, which the standard uses, to those of our engine.
//!
//! The two look alike but differ in corner cases: `\<` is a character to one and a word boundary to
//! the other. Every character that is not a letter or digit is therefore written as its code point,
//! and only syntax that means the same to both is copied.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// What ECMA-262 calls white space, and everything else.
const SPACE: &str =
    r"\t-\r\x20\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";
const NOT_SPACE: &str = r"\x00-\x08\x0e-\x1f\x21-\u{9f}\u{a1}-\u{167f}\u{1681}-\u{1fff}\u{200b}-\u{2027}\u{202a}-\u{202e}\u{2030}-\u{205e}\u{2060}-\u{2fff}\u{3001}-\u{fefe}\u{ff00}-\u{10ffff}";

/// The pattern in the engine's syntax.
pub(crate) fn to_engine(pattern: &str) -> Result<String, String> {
    let mut translation =
        Translation { left: pattern.chars().peekable(), out: String::with_capacity(pattern.len()) };
    while let Some(next) = translation.left.next() {
        translation.outside(next)?;
    }
    Ok(translation.out)
}

struct Translation<'p> {
    left: Peekable<Chars<'p>>,
    out: String,
}

/// What one escape, or one character in brackets, stands for.
enum Item {
    Char(char),
    /// Ranges, as they are written within brackets.
    Set(&'static str),
    /// A boundary, copied as it is.
    Boundary(&'static str),
}

impl Translation<'_> {
    /// One character outside brackets, with whatever belongs to it.
    fn outside(&mut self, next: char) -> Result<(), String> {
        match next {
            '\\' => match self.escape(false)? {
                Item::Char(literal) => self.push(literal),
                Item::Set(ranges) => self.push_set(ranges),
                Item::Boundary(boundary) => self.out.push_str(boundary),
            },
            '[' => return self.brackets(),
            '.' => self.out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '{' if self.is_repetition() => self.out.push('{'),
            '{' | ']' => self.push(next),
            '}' | ',' if self.is_in_repetition() => self.out.push(next),
            '(' => return self.group(),
            ')' | '^' | '$' | '|' | '*' | '+' | '?' => self.out.push(next),
            other => self.push(other),
        }
        Ok(())
    }

    /// Whether `{` starts `{2}`, `{2,}` or `{2,3}`. Anything else is text.
    fn is_repetition(&self) -> bool {
        let mut ahead = self.left.clone();
        let mut digits = 0;
        while ahead.next_if(char::is_ascii_digit).is_some() {
            digits += 1;
        }
        if ahead.next_if_eq(&',').is_some() {
            while ahead.next_if(char::is_ascii_digit).is_some() {}
        }
        digits > 0 && ahead.next() == Some('}')
    }

    /// Whether the output ends in an open repetition: text never leaves a bare `{` behind.
    fn is_in_repetition(&self) -> bool {
        let tail = self.out.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
        tail.ends_with('{') && !tail.ends_with("\\u{")
    }

    /// After `(`: accepts groups, rejects lookaround.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if self.left.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        let rest: String = self.left.clone().take(2).collect();
        if rest.starts_with(['=', '!']) || rest == "<=" || rest == "<!" {
            return Err("it uses lookaround, which takes unbounded time".to_owned());
        }
        self.out.push('?');
        // Flags and names are the same in both syntaxes, up to the end of the opening.
        let end = if rest.starts_with(['<', 'P']) { '>' } else { ':' };
        for next in self.left.by_ref() {
            self.out.push(next);
            if next == end || next == ')' {
                break;
            }
        }
        Ok(())
    }

    fn brackets(&mut self) -> Result<(), String> {
        let negated = self.left.next_if_eq(&'^').is_some();
        let start = self.out.len();
        self.out.push_str(if negated { "[^" } else { "[" });
        if self.left.next_if_eq(&']').is_some() {
            if !negated {
                return Err("`[]` matches nothing".to_owned());
            }
            self.out.truncate(start);
            self.out.push_str(r"[\x00-\u{10ffff}]");
            return Ok(());
        }
        loop {
            let next = self.left.next().ok_or("a bracket is not closed")?;
            if next == ']' {
                self.out.push(']');
                return Ok(());
            }
            self.range(next)?;
        }
    }

    /// One item within brackets: a character, a set, or a range of characters.
    fn range(&mut self, next: char) -> Result<(), String> {
        let first = self.item(next)?;
        let mut ahead = self.left.clone();
        if ahead.next() != Some('-') || matches!(ahead.next(), None | Some(']')) {
            self.push_item(&first);
            return Ok(());
        }
        self.left.next();
        let next = self.left.next().ok_or("a bracket is not closed")?;
        let last = self.item(next)?;
        self.push_item(&first);
        if let (Item::Char(_), Item::Char(_)) = (&first, &last) {
            self.out.push('-');
        } else {
            self.push('-');
        }
        self.push_item(&last);
        Ok(())
    }

    fn item(&mut self, next: char) -> Result<Item, String> {
        if next == '\\' { self.escape(true) } else { Ok(Item::Char(next)) }
    }

    /// What follows a backslash.
    fn escape(&mut self, in_brackets: bool) -> Result<Item, String> {
        let next = self.left.next().ok_or("it ends in a backslash")?;
        Ok(match next {
            'd' => Item::Set("0-9"),
            'D' => Item::Set(r"\x00-\x2f\x3a-\u{10ffff}"),
            'w' => Item::Set("0-9A-Z_a-z"),
            'W' => Item::Set(r"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\u{10ffff}"),
            's' => Item::Set(SPACE),
            'S' => Item::Set(NOT_SPACE),
            'b' if in_brackets => Item::Char('\x08'),
            'b' => Item::Boundary(r"\b"),
            'B' if !in_brackets => Item::Boundary(r"\B"),
            't' => Item::Char('\t'),
            'n' => Item::Char('\n'),
            'r' => Item::Char('\r'),
            'f' => Item::Char('\x0c'),
            'v' => Item::Char('\x0b'),
            '0' => Item::Char('\0'),
            'c' => {
                let letter = self.left.next().filter(char::is_ascii_alphabetic);
                let letter = letter.ok_or(r"`\c` needs a letter")?;
                Item::Char(char::from(letter as u8 % 32))
            }
            'x' => Item::Char(self.hex(2)?),
            'u' => Item::Char(self.unicode()?),
            '1'..='9' | 'k' => return Err("it uses a backreference".to_owned()),
            'p' | 'P' => return Err("Unicode properties are not supported".to_owned()),
            other if other.is_ascii_alphabetic() => {
                return Err(format!(r"`\{other}` is not a valid escape"));
            }
            other => Item::Char(other),
        })
    }

    /// `\u0041`, `\u{1F600}` or a pair of surrogates.
    fn unicode(&mut self) -> Result<char, String> {
        let wrong = || r"`\u` needs a character's number".to_owned();
        if self.left.next_if_eq(&'{').is_some() {
            let digits: String = self.left.by_ref().take_while(|c| *c != '}').collect();
            return u32::from_str_radix(&digits, 16)
                .ok()
                .and_then(char::from_u32)
                .ok_or_else(wrong);
        }
        let high = self.hex_number(4)?;
        if let Some(character) = char::from_u32(high) {
            return Ok(character);
        }
        if self.left.next() != Some('\\') || self.left.next() != Some('u') {
            return Err(wrong());
        }
        let low = self.hex_number(4)?;
        let both = u16::try_from(high).and_then(|high| Ok([high, u16::try_from(low)?]));
        let both = both.map_err(|_| wrong())?;
        char::decode_utf16(both).next().and_then(Result::ok).ok_or_else(wrong)
    }

    fn hex(&mut self, digits: usize) -> Result<char, String> {
        self.hex_number(digits).map(|number| char::from_u32(number).unwrap_or('\0'))
    }

    fn hex_number(&mut self, digits: usize) -> Result<u32, String> {
        let text: String = self.left.by_ref().take(digits).collect();
        let number = u32::from_str_radix(&text, 16).ok().filter(|_| text.len() == digits);
        number.ok_or_else(|| format!("an escape needs {digits} hexadecimal digits"))
    }

    fn push(&mut self, literal: char) {
        if literal.is_alphanumeric() {
            self.out.push(literal);
        } else {
            let _ = write!(self.out, "\\u{{{:x}}}", u32::from(literal));
        }
    }

    fn push_item(&mut self, item: &Item) {
        match item {
            Item::Char(literal) => self.push(*literal),
            Item::Set(ranges) => self.out.push_str(ranges),
            Item::Boundary(_) => {}
        }
    }

    fn push_set(&mut self, ranges: &str) {
        let _ = write!(self.out, "[{ranges}]");
    }
}

#[cfg(test)]
mod tests {
    use crate::pattern::Pattern;

    #[test]
    fn patterns_mean_what_the_standard_says() {
        fn check(pattern: &str, text: &str, expected: bool) {
            let compiled = Pattern::compile(pattern, 1 << 20).unwrap();
            assert_eq!(compiled.is_match(text), expected, "{pattern} {text}");
        }
        check("es", "expression", true);
        check("^a*$", "aaa", true);
        check("^a*$", "ab", false);
        check(r"^\d+$", "12", true);
        check(r"^\d+$", "१२", false);
        check(r"^\w$", "é", false);
        check(r"^\W$", "é", true);
        check(r"^\s$", "\u{feff}", true);
        check(r"^[\s]$", "\u{2003}", true);
        check(r"^\S$", "\u{2003}", false);
        check(r"^[^\S]$", "\u{2003}", true);
        check("^.$", "\u{2028}", false);
        check(r"^\<\-\/$", "<-/", true);
        check(r"^[\w-.]+$", "a-b.c", true);
        check(r"^[a-z&&[^b]+$", "b&[^", true);
        check("^[--a]$", "A", true);
        check("^[a-]$", "-", true);
        check("^[^]$", "\n", true);
        check("^{a}$", "{a}", true);
        check("^a{2}$", "aa", true);
        check("^a{2,}$", "aaaa", true);
        check("^a{2,3}$", "aaaa", false);
        check("^a{,3}$", "a{,3}", true);
        check(r"^\u{41},}$", "A,}", true);
        check("^{4,$", "{4,", true);
        check("a$", "a\n", false);
        check(r"^\cC$", "\u{3}", true);
        check(r"^\uD83D\uDC32$", "🐲", true);
        check(r"^\u0041\x42$", "AB", true);
        check("^(?<year>[0-9]{4})(?:-x)?$", "2024-x", true);
        check("^(?i)abc$", "ABC", true);
        check("^(a|b)+?$", "abba", true);
        check("^🐲*$", "🐲🐲", true);
        check(r"\bcat\b", "a cat.", true);
    }

    #[test]
    fn what_is_not_linear_is_refused() {
        fn check(pattern: &str, expected: &str) {
            let error = Pattern::compile(pattern, 1 << 20).unwrap_err();
            assert!(error.contains(expected), "{pattern}: {error}");
        }
        check("(?=a)", "lookaround");
        check("(?<!a)b", "lookaround");
        check(r"(a)\1", "backreference");
        check(r"\p{L}", "Unicode properties");
        check(r"\Z", "not a valid escape");
        check("(((((a{100}){100}){100}){100}){100})", "more memory");
        check(&format!("{}a{}", "(".repeat(500), ")".repeat(500)), "nest");
        check("[a", "not closed");
        check("(a", "");
        check("*", "");
    }
}
