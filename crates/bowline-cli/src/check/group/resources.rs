//! Resources: lists, templates, reading, subscriptions.

use bowline::base64;
use bowline::model::{ListResourceTemplatesResult, ListResourcesResult};
use bowline::proto::decode::decode;
use bowline::uri_template::UriTemplate;
use serde_json::{Value, json};

use super::tools::{bad_cursor_of, twice};
use crate::check::probe::{
    Outcome, PASS, Probe, RESOURCES, TEMPLATES, Trouble, all_good, broken, skip,
};
use crate::check::table::Check;

const PAGE: &str = "server/resources";

pub(super) const CHECKS: &[Check] = &[
    Check::must("resources.list", "resources/list gives resources that are whole, and ends", |probe| {
        Box::pin(list(probe))
    })
    .page(PAGE)
    .fix("Give each resource a uri and a name; leave nextCursor out on the last page."),
    Check::should("resources.bad-cursor", "a cursor that nobody gave out is refused with -32602", |probe| {
        Box::pin(bad_cursor(probe))
    })
    .page("server/utilities/pagination")
    .fix("Refuse cursors that the server did not make with error -32602."),
    Check::must("resources.uris", "resources have URIs", |probe| Box::pin(uris(probe)))
        .page(PAGE)
        .fix("Write a scheme, a colon, and no blanks or characters outside of ASCII (RFC 3986)."),
    Check::should("resources.uris-unique", "no two resources have the same URI", |probe| {
        Box::pin(uris_unique(probe))
    })
    .page(PAGE)
    .fix("Give each resource a URI of its own."),
    Check::must("resources.templates", "templates are whole and follow RFC 6570", |probe| {
        Box::pin(templates(probe))
    })
    .page(PAGE)
    .fix("Give each template a name and a uriTemplate such as file:///{path} (RFC 6570)."),
    Check::must("resources.read", "contents of resources are whole", |probe| Box::pin(read(probe)))
        .page(PAGE)
        .fix("Answer with contents: entries with a uri and either text or blob."),
    Check::portability("resources.readable", "what is listed can be read", |probe| {
        Box::pin(readable(probe))
    })
    .page(PAGE)
    .fix("List only what is there: clients offer the list to users."),
    Check::must("resources.blob", "binary contents are base64", |probe| Box::pin(blob(probe)))
        .page(PAGE)
        .fix("Encode blob with the standard alphabet and padding."),
    Check::must("resources.unknown", "a resource that does not exist is not said to be empty", |probe| {
        Box::pin(unknown(probe))
    })
    .page(PAGE)
    .fix("Answer with an error: -32002 up to 2025-11-25, -32602 from 2026-07-28 on."),
    Check::should("resources.unknown-code", "a resource that does not exist has the revision's error code", |probe| {
        Box::pin(unknown_code(probe))
    })
    .page(PAGE)
    .fix("Use -32002 up to 2025-11-25 and -32602 from 2026-07-28 on, with the uri in data."),
    Check::must("resources.subscribe", "declared subscriptions work", |probe| {
        Box::pin(subscribe(probe))
    })
    .legacy()
    .page(PAGE)
    .fix("Answer resources/subscribe and resources/unsubscribe with {}, or do not declare subscribe."),
];

async fn list(probe: &mut Probe) -> Outcome {
    let resources = probe.list(&RESOURCES).await?;
    let problem = |resource: &Value| {
        let one = json!({"resources": [resource]}).to_string();
        decode::<ListResourcesResult>("resources/list", "result", &one).err()
    };
    all_good(resources.iter().filter_map(problem).map(|error| error.to_string()).collect())
}

async fn bad_cursor(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    bad_cursor_of(probe, RESOURCES.method).await
}

fn uri(value: &Value) -> &str {
    value.get("uri").and_then(Value::as_str).unwrap_or_default()
}

async fn uris(probe: &mut Probe) -> Outcome {
    let resources = probe.list(&RESOURCES).await?;
    let bad = resources.iter().map(uri).filter(|uri| !is_uri(uri));
    all_good(bad.map(|uri| format!("{uri:?} is no URI")).collect())
}

/// A scheme, and only characters that URIs have.
fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    let is_allowed = |letter: char| letter.is_ascii_graphic() && !"\"<>\\^`{|}".contains(letter);
    is_scheme && text.chars().all(is_allowed)
}

async fn uris_unique(probe: &mut Probe) -> Outcome {
    let resources = probe.list(&RESOURCES).await?;
    all_good(twice(resources.iter().map(uri)))
}

async fn templates(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    let reply = probe.ask(TEMPLATES.method, json!({})).await?;
    if !reply.is_result() {
        return skip("resources/templates/list gives no list");
    }
    let templates = probe.list(&TEMPLATES).await?;
    let mut problems = Vec::new();
    for template in &templates {
        let one = json!({"resourceTemplates": [template]}).to_string();
        if let Err(error) =
            decode::<ListResourceTemplatesResult>("resources/templates/list", "result", &one)
        {
            problems.push(error.to_string());
            continue;
        }
        let text = template.get("uriTemplate").and_then(Value::as_str).unwrap_or_default();
        if let Err(error) = UriTemplate::parse(text) {
            problems.push(format!("{text:?}: {error}"));
        }
    }
    all_good(problems)
}

/// Reads the first few resources.
async fn contents(probe: &mut Probe) -> Result<Vec<(String, Value)>, Trouble> {
    let resources = probe.list(&RESOURCES).await?;
    let most = probe.settings.samples;
    let mut read = Vec::new();
    for resource in resources.iter().take(most) {
        let uri = uri(resource).to_owned();
        let reply = probe.ask("resources/read", json!({"uri": uri})).await?;
        let message = reply.message().cloned().unwrap_or_default();
        read.push((uri, message));
    }
    match read.is_empty() {
        true => skip("there are no resources"),
        false => Ok(read),
    }
}

async fn read(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let read = contents(probe).await?;
    for (uri, message) in &read {
        let Some(result) = message.get("result") else {
            continue;
        };
        let Some(entries) = result.get("contents").and_then(Value::as_array) else {
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

async fn readable(probe: &mut Probe) -> Outcome {
    let read = contents(probe).await?;
    let failed = read.iter().filter(|(_, message)| message.get("result").is_none());
    all_good(failed.map(|(uri, message)| format!("{uri}: {}", message["error"])).collect())
}

async fn blob(probe: &mut Probe) -> Outcome {
    let read = contents(probe).await?;
    let mut problems = Vec::new();
    let mut count = 0;
    for (uri, message) in &read {
        let entries = message.pointer("/result/contents").and_then(Value::as_array);
        let blobs = entries.into_iter().flatten().filter_map(|entry| entry.get("blob")?.as_str());
        for blob in blobs {
            count += 1;
            if base64::STANDARD.decode(blob).is_none() {
                problems.push(format!("{uri}: blob is not base64"));
            }
        }
    }
    match count {
        0 => skip("no resource that was read is binary"),
        _ => all_good(problems),
    }
}

const NOWHERE: &str = "bowline-check://no/such/resource";

async fn unknown(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    let reply = probe.ask("resources/read", json!({"uri": NOWHERE})).await?;
    match reply.is_result() {
        false => PASS,
        true => broken(format!("{NOWHERE} was answered with a result")),
    }
}

async fn unknown_code(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    let code = if probe.revision.is_modern() { -32602 } else { -32002 };
    let reply = probe.ask("resources/read", json!({"uri": NOWHERE})).await?;
    reply.expect_code(&format!("reading {NOWHERE}"), &[code])
}

async fn subscribe(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    if capabilities.pointer("/resources/subscribe") != Some(&json!(true)) {
        return skip("the server does not declare resources.subscribe");
    }
    let resources = probe.list(&RESOURCES).await?;
    let Some(first) = resources.first() else { return skip("there are no resources") };
    let params = json!({"uri": uri(first)});
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
