//! References within one document: JSON pointers in the fragment of a URL.

use std::borrow::Cow;

use serde_json::Value;

/// What a `$ref` within the same document leads to: `#`, or `#` and a JSON pointer, which may be
/// percent-encoded. `None` for any other reference, and for one that leads nowhere.
///
/// ```
/// use serde_json::json;
///
/// let schema = json!({ "$defs": { "a b": { "type": "string" } } });
/// let target = bowline_schema::target(&schema, "#/$defs/a%20b");
/// assert_eq!(target, Some(&json!({ "type": "string" })));
/// ```
pub fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = decode(reference.strip_prefix('#')?)?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return None;
    }
    pointer.split('/').skip(1).try_fold(root, step)
}

/// One token of a JSON pointer.
pub(crate) fn step<'s>(value: &'s Value, token: &str) -> Option<&'s Value> {
    match value {
        Value::Object(map) => map.get(&token.replace("~1", "/").replace("~0", "~")),
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    }
}

/// A fragment with its percent-encoding removed.
pub(crate) fn decode(fragment: &str) -> Option<Cow<'_, str>> {
    if !fragment.contains('%') {
        return Some(Cow::Borrowed(fragment));
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_to_parts_of_the_document() {
        let root = json!({ "$defs": { "a/b": 1, "c~d": 2, "e f": 3, "": 4 }, "allOf": [{}, 5] });
        for (reference, expected) in [
            ("#", &root),
            ("#/$defs/a~1b", &json!(1)),
            ("#/%24defs/a~1b", &json!(1)),
            ("#/$defs/c~0d", &json!(2)),
            ("#/$defs/e%20f", &json!(3)),
            ("#/$defs/", &json!(4)),
            ("#/allOf/1", &json!(5)),
        ] {
            assert_eq!(target(&root, reference), Some(expected), "{reference}");
        }
        for nowhere in ["", "$defs", "#$defs", "#/$defs/x", "#/allOf/2", "#/%", "#/%zz", "a#/$defs"]
        {
            assert_eq!(target(&root, nowhere), None, "{nowhere}");
        }
    }
}
