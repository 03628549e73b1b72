//! Structured data, which RFC 5424 puts between the header and the text.

use std::collections::BTreeMap;

use crate::escape::escape;

/// The elements by name, and their parameters by name. Sorted, so that the same data always becomes
/// the same bytes.
pub type StructuredData = BTreeMap<String, BTreeMap<String, String>>;

/// The names that RFC 5424 registers; all others have the form `name@number`.
pub const REGISTERED: [&str; 3] = ["timeQuality", "origin", "meta"];

/// The maximum length of a name.
const MAX_NAME: usize = 32;

/// Why structured data is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StructuredDataError {
    /// An invalid name.
    #[error(
        "structured_data: name {0:?} must be 1 to {MAX_NAME} printable ASCII characters \
         without space, '=', ']' and '\"'"
    )]
    Name(String),
    /// An element that is neither registered nor private.
    #[error(
        "structured_data: element {0:?} is not registered ({registered}); write it as name@number, \
         with the private enterprise number of your organization, such as \"{0}@32473\"",
        registered = REGISTERED.join(", ")
    )]
    Unregistered(String),
}

/// The field as it is sent; `-` if it is empty. Always UTF-8, whatever the encoding of the text.
///
/// # Errors
/// If a name is invalid.
pub fn encode(data: &StructuredData) -> Result<String, StructuredDataError> {
    if data.is_empty() {
        return Ok("-".to_owned());
    }
    let mut field = String::new();
    for (id, parameters) in data {
        check_name(id)?;
        if !id.contains('@') && !REGISTERED.contains(&id.as_str()) {
            return Err(StructuredDataError::Unregistered(id.clone()));
        }
        field.push('[');
        field += id;
        for (name, value) in parameters {
            check_name(name)?;
            field.push(' ');
            field += name;
            field += "=\"";
            push_value(&mut field, value);
            field.push('"');
        }
        field.push(']');
    }
    Ok(field)
}

fn check_name(name: &str) -> Result<(), StructuredDataError> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"=]\"".contains(&byte);
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(StructuredDataError::Name(name.to_owned()))
}

/// Always escapes control characters: no receiver needs them in a value.
fn push_value(field: &mut String, value: &str) {
    for character in escape(value).chars() {
        if matches!(character, '"' | '\\' | ']') {
            field.push('\\');
        }
        field.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(elements: &[(&str, &[(&str, &str)])]) -> StructuredData {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let element = |(id, parameters): &(&str, &[(&str, &str)])| {
            ((*id).to_owned(), parameters.iter().map(text).collect())
        };
        elements.iter().map(element).collect()
    }

    #[test]
    fn values_are_escaped_and_kept() {
        fn check(elements: &[(&str, &[(&str, &str)])], field: &str) {
            assert_eq!(encode(&data(elements)).unwrap(), field);
        }
        check(&[], "-");
        check(&[("origin", &[])], "[origin]");
        check(&[("app@32473", &[("a", r#"say "x]\"#)])], r#"[app@32473 a="say \"x\]\\"]"#);
        check(&[("b@1", &[("k", "改行\n")]), ("a@1", &[])], "[a@1][b@1 k=\"改行#012\"]");
    }

    #[test]
    fn invalid_names_are_rejected() {
        fn check(elements: &[(&str, &[(&str, &str)])], part: &str) {
            let error = encode(&data(elements)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        check(&[("mine", &[])], "write it as name@number");
        check(&[("", &[])], "must be 1 to 32");
        check(&[("a@1", &[("b c", "")])], "\"b c\"");
        check(&[("a@1", &[("b=", "")])], "\"b=\"");
        check(&[("a]@1", &[])], "\"a]@1\"");
        check(&[("é@1", &[])], "printable ASCII");
        check(&[("a@12345678901234567890123456789012", &[])], "must be 1 to 32");
    }
}
