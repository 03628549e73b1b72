//! Expands a template to a URI, with percent-encoding.

use super::{Expression, Part, Variable};

pub(super) fn expand(parts: &[Part], values: &[(&str, &str)]) -> String {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => uri.push_str(text),
            Part::Expression(expression) => expand_expression(&mut uri, expression, values),
        }
    }
    uri
}

fn expand_expression(uri: &mut String, expression: &Expression, values: &[(&str, &str)]) {
    let operator = expression.operator;
    let separator = Some(operator.separator());
    let mut sign = operator.first();
    for variable in &expression.variables {
        let mut list =
            values.iter().filter(|(name, _)| *name == variable.name).map(|(_, value)| *value);
        while let Some(value) = list.next() {
            uri.extend(sign.map(char::from));
            sign = separator;
            push_named_value(uri, expression, variable, value);
            if variable.exploded {
                continue;
            }
            for more in list.by_ref() {
                uri.push(',');
                push_value(uri, expression, variable, more);
            }
        }
    }
}

fn push_named_value(uri: &mut String, expression: &Expression, variable: &Variable, value: &str) {
    if expression.operator.is_named() {
        uri.push_str(&variable.name);
        // RFC 6570, 3.2.7: `;x` for an empty value, but `?x=`.
        if !value.is_empty() || expression.operator.separator() == b'&' {
            uri.push('=');
        }
    }
    push_value(uri, expression, variable, value);
}

fn push_value(uri: &mut String, expression: &Expression, variable: &Variable, value: &str) {
    let end = variable.prefix.and_then(|most| value.char_indices().nth(most));
    let value = end.map_or(value, |(end, _)| &value[..end]);
    if expression.operator.keeps_reserved() {
        push_reserved(uri, value);
    } else {
        value.bytes().for_each(|byte| push_encoded(uri, byte, is_unreserved(byte)));
    }
}

/// Appends a segment of a path, with everything encoded that could mean something else.
#[cfg(feature = "skills")]
pub(crate) fn push_segment(uri: &mut String, segment: &str) {
    segment.bytes().for_each(|byte| push_encoded(uri, byte, is_unreserved(byte)));
}

/// Appends text, and encodes only what a URI must not contain.
pub(super) fn push_reserved(uri: &mut String, text: &str) {
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let keep = is_unreserved(byte) || is_reserved(byte) || is_triplet(&bytes[at..]);
        push_encoded(uri, byte, keep);
    }
}

/// Appends a byte, encoded unless it is to be kept.
pub(super) fn push_encoded(uri: &mut String, byte: u8, keep: bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if keep {
        uri.push(char::from(byte));
    } else {
        let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        uri.push('%');
        uri.extend(digits.map(char::from));
    }
}

/// Whether `bytes` begin with an encoded byte: `%` and two digits.
pub(super) fn is_triplet(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

pub(super) fn is_reserved(byte: u8) -> bool {
    b":/?#[]@!$&'()*+,;=".contains(&byte)
}
