//! Origins that a document uses, as far as its text shows. Only what is certainly loaded counts:
//! links to follow, namespaces and comments do not.

use bowline::model::ui::UiCsp;

/// The list of the policy that an origin must be in.
const CONNECT: &str = "connectDomains";
const RESOURCE: &str = "resourceDomains";
const FRAME: &str = "frameDomains";
const BASE: &str = "baseUriDomains";

const SCHEMES: [&str; 4] = ["https://", "http://", "wss://", "ws://"];

/// What is before a URL that a script connects to.
const CONNECTING: [&str; 4] = ["fetch(", "WebSocket(", "EventSource(", "sendBeacon("];

/// What is before a URL that a style or a script loads.
const LOADING: [&str; 5] = ["url(", "@import", "import(", " from", "importScripts("];

/// The origins that a document uses and a policy does not allow, each with its list, once.
pub(super) fn undeclared(html: &str, csp: &UiCsp) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let html = without_comments(html);
    for (place, url) in urls(&html) {
        let Some(list) = use_of(&html[..place]) else { continue };
        let Some(origin) = origin(url) else { continue };
        let is_allowed = csp.sources().any(|(own, it)| own == list && allows(it, &origin));
        let entry = (list, origin);
        if !is_allowed && !found.contains(&entry) {
            found.push(entry);
        }
    }
    found
}

fn without_comments(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, comment)) = rest.split_once("<!--") {
        text += before;
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    text + rest
}

/// Where absolute URLs begin, and the text from there on.
fn urls(html: &str) -> impl Iterator<Item = (usize, &str)> {
    html.match_indices("://").filter_map(|(at, _)| {
        let scheme = SCHEMES.iter().find(|it| html[..at + 3].ends_with(**it))?;
        let start = at + 3 - scheme.len();
        let is_word = |letter: char| letter.is_ascii_alphanumeric();
        (!html[..start].ends_with(is_word)).then(|| (start, &html[start..]))
    })
}

/// What the text before a URL uses it for.
fn use_of(before: &str) -> Option<&'static str> {
    let before = before.trim_end().trim_end_matches(['"', '\'', '`']).trim_end();
    if CONNECTING.iter().any(|it| before.ends_with(it)) {
        return Some(CONNECT);
    }
    if LOADING.iter().any(|it| before.ends_with(it)) {
        return Some(RESOURCE);
    }
    let attribute = before.strip_suffix('=')?.trim_end();
    let (_, tag) = attribute.rsplit_once('<')?;
    let element = tag.split_whitespace().next()?.to_ascii_lowercase();
    let attribute = tag.split_whitespace().last()?.to_ascii_lowercase();
    match (element.as_str(), attribute.as_str()) {
        ("iframe" | "frame", "src") => Some(FRAME),
        ("base", "href") => Some(BASE),
        (_, "src" | "srcset" | "poster") | ("link", "href") => Some(RESOURCE),
        _ => None,
    }
}

/// The origin of a URL in the middle of a text.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let is_in_host = |letter: char| letter.is_ascii_alphanumeric() || "-._:".contains(letter);
    let host = &rest[..rest.find(|letter| !is_in_host(letter)).unwrap_or(rest.len())];
    let host = host.trim_end_matches([':', '.']);
    (!host.is_empty()).then(|| format!("{scheme}://{}", host.to_ascii_lowercase()))
}

/// Whether a source of a policy allows an origin.
fn allows(source: &str, origin: &str) -> bool {
    let source = source.to_ascii_lowercase();
    if let Some((scheme, domain)) = source.split_once("://*.") {
        let host = origin.strip_prefix(scheme).and_then(|it| it.strip_prefix("://"));
        return host.and_then(|it| it.strip_suffix(domain)).is_some_and(|it| it.ends_with('.'));
    }
    match source.strip_suffix(":*") {
        Some(any_port) => origin.split(':').take(2).eq(any_port.split(':')),
        None => source == origin,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(html: &str, expected: &[(&str, &str)]) {
        let found = undeclared(html, &UiCsp::default());
        let found: Vec<_> = found.iter().map(|(list, origin)| (*list, origin.as_str())).collect();
        assert_eq!(found, expected, "{html}");
    }

    #[test]
    fn what_is_loaded_is_found() {
        check(r#"<script src="https://a.example/x.js">"#, &[(RESOURCE, "https://a.example")]);
        check("<img alt=x src='http://A.example:80/i'>", &[(RESOURCE, "http://a.example:80")]);
        check("<link rel=stylesheet href=https://a.example/s>", &[(RESOURCE, "https://a.example")]);
        check(r#"<iframe src = "https://a.example">"#, &[(FRAME, "https://a.example")]);
        check(r#"<base href="https://a.example/">"#, &[(BASE, "https://a.example")]);
        check(
            "<style>p { background: url(https://a.example/i) }",
            &[(RESOURCE, "https://a.example")],
        );
        check("fetch('https://a.example/v1')", &[(CONNECT, "https://a.example")]);
        check("new WebSocket(`wss://a.example`)", &[(CONNECT, "wss://a.example")]);
        check("import x from \"https://a.example/m.js\"", &[(RESOURCE, "https://a.example")]);
        let twice = r#"<img src="https://a.example/1"><img src="https://a.example/2">"#;
        check(twice, &[(RESOURCE, "https://a.example")]);
    }

    #[test]
    fn what_is_not_loaded_is_left_alone() {
        check(r#"<a href="https://a.example">"#, &[]);
        check(r#"<svg xmlns="http://www.w3.org/2000/svg">"#, &[]);
        check("<!-- <img src='https://a.example'> -->", &[]);
        check("<p>See https://a.example for more.", &[]);
        check("<img src='data:image/png;base64,AAAA'>", &[]);
        check("<script src='ui://a/b'>", &[]);
    }

    #[test]
    fn what_is_declared_is_allowed() {
        let html = r#"<img src="https://tiles.a.example/1"><script>fetch("http://b.example:81")"#;
        for (csp, expected) in [
            (json!({}), 2),
            (json!({ "resourceDomains": ["https://tiles.a.example"] }), 1),
            (json!({ "resourceDomains": ["https://*.a.example"] }), 1),
            (json!({ "resourceDomains": ["https://*.iles.a.example"] }), 2),
            (json!({ "resourceDomains": ["http://*.a.example"] }), 2),
            (json!({ "connectDomains": ["https://tiles.a.example"] }), 2),
            (json!({ "connectDomains": ["http://b.example:*"] }), 1),
            (json!({ "connectDomains": ["http://b.example:81"] }), 1),
            (json!({ "connectDomains": ["http://b.example"] }), 2),
        ] {
            let read: UiCsp = serde_json::from_value(csp.clone()).unwrap();
            assert_eq!(undeclared(html, &read).len(), expected, "{csp}");
        }
    }
}
