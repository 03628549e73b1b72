//! Resources: lists, templates, reading, subscriptions.

use bowline::base64;
use bowline::model::{ListResourceTemplatesResult, ListResourcesResult};
use bowline::uri_template::UriTemplate;
use serde_json::{Value, json};

use super::{bad_cursor, each, readable, text, unique, unreadable};
use crate::probe::{NotPassed, Outcome, PASS, Probe, RESOURCES, TEMPLATES, all_good, skip};
use crate::rule::{Rule, table};

table! { |probe| Rule::group("server/resources");
    Must "resources.list" => readable::<ListResourcesResult>(probe, RESOURCES),
        "resources/list returns complete resources, and ends",
        "Give each resource a uri and a name; omit nextCursor on the last page.";
    Should "resources.bad-cursor" [.page("server/utilities/pagination")] => bad_cursor(probe, RESOURCES),
        "a made-up cursor is rejected with -32602",
        "Reject cursors that the server did not create with error -32602.";
    Must "resources.uris" => each(probe, RESOURCES, bad_uri),
        "resources have valid URIs",
        "Write a scheme, a colon, and no blanks or non-ASCII characters (RFC 3986).";
    Should "resources.uris-unique" => unique(probe, RESOURCES, "uri"),
        "no two resources have the same URI",
        "Give each resource a URI of its own.";
    Must "resources.templates" => templates(probe),
        "templates are complete and follow RFC 6570",
        "Give each template a name and a uriTemplate such as file:///{path} (RFC 6570).";
    Must "resources.read" => read(probe),
        "contents of resources are complete",
        "Answer with contents: entries with a uri and either text or blob.";
    Portability "resources.readable" => listed_can_be_read(probe),
        "resources in the list can be read",
        "List only what is there: clients offer the list to users.";
    Must "resources.blob" => blob(probe),
        "binary contents are base64",
        "Encode blob with the standard alphabet and padding.";
    Must "resources.unknown" => probe.fails("resources", unknown(), "reading a resource that does not exist"),
        "reading a resource that does not exist returns an error",
        "Answer with an error: -32002 up to 2025-11-25, -32602 from 2026-07-28 on.";
    Should "resources.unknown-code" => unknown_code(probe),
        "a resource that does not exist is rejected with the revision's error code",
        "Use -32002 up to 2025-11-25 and -32602 from 2026-07-28 on, with the uri in data.";
    Must "resources.subscribe" [.legacy()] => subscribe(probe),
        "declared subscriptions work",
        "Answer resources/subscribe and resources/unsubscribe with {}, or do not declare subscribe.";
}

fn bad_uri(resource: &Value) -> Option<String> {
    let uri = text(resource, "uri");
    (!is_uri(uri)).then(|| format!("{uri:?} is not a URI"))
}

/// Whether it is a URI: a scheme, and only characters that URIs have.
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    let is_allowed = |letter: char| letter.is_ascii_graphic() && !"\"<>\\^`{|}".contains(letter);
    is_scheme && text.chars().all(is_allowed)
}

async fn templates(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    if probe.ask(TEMPLATES.method, json!({})).await?.result().is_none() {
        return skip("resources/templates/list returns no list");
    }
    let problem = |template: &Value| {
        let text = text(template, "uriTemplate");
        let syntax = || UriTemplate::parse(text).err().map(|error| format!("{text:?}: {error}"));
        unreadable::<ListResourceTemplatesResult>(TEMPLATES, template).or_else(syntax)
    };
    each(probe, TEMPLATES, problem).await
}

/// Reads the first few resources; returns each URI and answer.
async fn contents(probe: &mut Probe) -> Result<Vec<(String, Value)>, NotPassed> {
    let resources = probe.list(RESOURCES).await?;
    let mut read = Vec::new();
    for resource in resources.iter().take(probe.settings.samples) {
        let uri = text(resource, "uri").to_owned();
        let reply = probe.ask("resources/read", json!({"uri": uri})).await?;
        read.push((uri, reply.message.unwrap_or_default()));
    }
    if read.is_empty() { skip("there are no resources") } else { Ok(read) }
}

async fn read(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let read = contents(probe).await?;
    for (uri, message) in &read {
        let Some(result) = message.get("result") else { continue };
        let Some(entries) = result["contents"].as_array() else {
            problems.push(format!("{uri}: contents is not an array"));
            continue;
        };
        for entry in entries {
            let has = |name: &str| entry.get(name).is_some_and(Value::is_string);
            if !has("uri") {
                problems.push(format!("{uri}: an entry of contents has no uri"));
            }
            if has("text") == has("blob") {
                problems.push(format!("{uri}: an entry of contents needs either text or blob"));
            }
        }
    }
    all_good(problems)?;
    Ok(Some(format!("{} read", read.len())))
}

async fn listed_can_be_read(probe: &mut Probe) -> Outcome {
    let read = contents(probe).await?;
    let failed = read.iter().filter(|(_, message)| message.get("result").is_none());
    all_good(failed.map(|(uri, message)| format!("{uri}: {}", message["error"])))
}

async fn blob(probe: &mut Probe) -> Outcome {
    let read = contents(probe).await?;
    let mut problems = Vec::new();
    let mut count = 0;
    for (uri, message) in &read {
        let entries = message["result"]["contents"].as_array().into_iter().flatten();
        for blob in entries.filter_map(|entry| entry.get("blob")?.as_str()) {
            count += 1;
            if base64::STANDARD.decode(blob).is_none() {
                problems.push(format!("{uri}: blob is not base64"));
            }
        }
    }
    if count == 0 { skip("no resource that was read is binary") } else { all_good(problems) }
}

/// A request for a resource that does not exist.
fn unknown() -> (&'static str, Value) {
    ("resources/read", json!({"uri": "bowline-check://no/such/resource"}))
}

async fn unknown_code(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    let code = if probe.revision.is_modern() { -32602 } else { -32002 };
    probe.gets_error(unknown(), "reading a resource that does not exist", code).await
}

async fn subscribe(probe: &mut Probe) -> Outcome {
    if probe.capabilities().await?["resources"]["subscribe"] != true {
        return skip("the server does not declare resources.subscribe");
    }
    let resources = probe.list(RESOURCES).await?;
    let Some(first) = resources.first() else { return skip("there are no resources") };
    let params = json!({"uri": text(first, "uri")});
    probe.result("resources/subscribe", params.clone()).await?;
    probe.result("resources/unsubscribe", params).await?;
    PASS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_told_from_other_text() {
        for good in
            ["file:///a/b.txt", "memo://insights", "urn:x:y", "a+b.c-d:%20?q#f", "str:////Users/x/"]
        {
            assert!(is_uri(good), "{good}");
        }
        for bad in ["", "name", "/a/b", "1a:b", "file:///a b", "memo://ü", ":x", "a:{b}"] {
            assert!(!is_uri(bad), "{bad}");
        }
    }
}
