//! Relative references, RFC 3986 section 5, for identifiers within one document.

/// The identifier and the fragment; an absent fragment counts as empty.
pub(super) fn split_fragment(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// Resolves `reference`, which has no fragment, against `base`.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let to = Parts::of(reference);
    if to.scheme.is_some() {
        return reference.to_owned();
    }
    let from = Parts::of(base);
    let scheme = from.scheme.map(|scheme| format!("{scheme}:")).unwrap_or_default();
    if let Some(authority) = to.authority {
        return format!("{scheme}//{authority}{}", to.path);
    }
    let authority = from.authority.map(|authority| format!("//{authority}")).unwrap_or_default();
    let path = if to.path.starts_with('/') {
        without_dots(to.path)
    } else if from.authority.is_some() && from.path.is_empty() {
        without_dots(&format!("/{}", to.path))
    } else {
        let directory = from.path.rfind('/').map_or("", |end| &from.path[..=end]);
        without_dots(&format!("{directory}{}", to.path))
    };
    format!("{scheme}{authority}{path}")
}

struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    /// Includes the query: identifiers that differ there are different.
    path: &'a str,
}

impl<'a> Parts<'a> {
    fn of(uri: &'a str) -> Self {
        let (scheme, rest) = match uri.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, uri),
        };
        let Some(rest) = rest.strip_prefix("//") else {
            return Self { scheme, authority: None, path: rest };
        };
        let end = rest.find('/').unwrap_or(rest.len());
        Self { scheme, authority: Some(&rest[..end]), path: &rest[end..] }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." if kept.len() > 1 => {
                kept.pop();
            }
            ".." => {}
            other => {
                kept.push(other);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve() {
        fn check(base: &str, reference: &str, expected: &str) {
            assert_eq!(resolve(base, reference), expected, "{base} {reference}");
        }
        check("", "a.json", "a.json");
        check("", "", "");
        check("http://h/d/root.json", "a.json", "http://h/d/a.json");
        check("http://h/d/", "a/b.json", "http://h/d/a/b.json");
        check("http://h/d/e/f", "../g", "http://h/d/g");
        check("http://h/d/e", "./g", "http://h/d/g");
        check("http://h/d/e", "../../../g", "http://h/g");
        check("http://h/d", "/x/y", "http://h/x/y");
        check("http://h", "x", "http://h/x");
        check("http://h/d", "//other/x", "http://other/x");
        check("http://h/d", "urn:uuid:1", "urn:uuid:1");
        check("urn:uuid:1", "", "urn:uuid:1");
        check("file:///a/b", "c", "file:///a/c");
    }
}
