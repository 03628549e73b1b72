//! The same resource under another spelling.
//!
//! A rule is about a text, and servers read many texts as one file: `file:///a/../etc/passwd`,
//! `FILE:///etc//passwd`, `file:///%65tc/passwd`. So rules also judge the plainest spelling.

/// The plainest spelling of a URI: nothing encoded, no `.` and `..`, no empty segments, scheme and
/// host in lower case. For comparison only.
pub(super) fn plainest(uri: &str) -> String {
    let mut text = uri.to_owned();
    // Some servers decode twice.
    for _ in 0..4 {
        let next = decoded(&text);
        if next == text {
            break;
        }
        text = next;
    }
    let text = text.replace('\\', "/");
    let Some((scheme, rest)) = text.split_once(':') else { return text };
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.to_ascii_lowercase();
            let is_here = scheme == "file" && host == "localhost";
            (format!("//{}", if is_here { "" } else { &host }), path)
        }
        None => (String::new(), rest),
    };
    format!("{scheme}:{authority}{}", resolved(path))
}

fn resolved(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').filter(|it| !it.is_empty()) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let begin = if path.starts_with('/') { "/" } else { "" };
    let end = if path.len() > 1 && path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    format!("{begin}{}{end}", kept.join("/"))
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
        let encoded = (*byte == b'%').then(|| Some(16 * digit(at + 1)? + digit(at + 2)?)).flatten();
        match encoded.and_then(|it| u8::try_from(it).ok()) {
            Some(value) => {
                plain.push(value);
                at += 3;
            }
            None => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_file_are_one() {
        for uri in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            "file:///etc//passwd",
            "file:///pub/../etc/./passwd",
            "file:///pub/%2e%2e/etc/passwd",
            "file:///pub/%252e%252e/etc/passwd",
            "file:///%65tc/passwd",
            "file:///pub\\..\\etc\\passwd",
            "file:////etc/passwd",
            "file://localhost/etc/passwd",
            "file:///../../etc/passwd",
        ] {
            assert_eq!(plainest(uri), "file:///etc/passwd", "{uri}");
        }
        for (uri, expected) in [
            ("https://A.b/C?x=%20y", "https://a.b/C?x= y"),
            ("memo:x/../y", "memo:y"),
            ("notes", "notes"),
            ("a:%zz%", "a:%zz%"),
            ("file:///a/", "file:///a/"),
        ] {
            assert_eq!(plainest(uri), expected, "{uri}");
        }
    }
}
