//! Apps: what tools say about them, and the documents themselves. [`Apps`] judges both.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline::Revision;
use bowline::model::ui::ID;
use serde_json::json;

use crate::apps::Apps;
use crate::probe::{NotPassed, Outcome, Probe, TOOLS, all_good, skip};
use crate::rule::{Rule, table};

/// The first revision whose tools have metadata.
const SINCE: Revision = Revision::V2025_06_18;

/// The page of the extension.
const PAGE: &str =
    "https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx";

table! { |probe| Rule::group(PAGE).since(SINCE);
    Must "apps.metadata" => judge(probe, "apps.metadata"),
        "what tools say about their apps can be read",
        "Write _meta.ui as {\"resourceUri\": \"ui://…\", \"visibility\": [\"model\", \"app\"]}; both are optional.";
    Must "apps.resource" => judge(probe, "apps.resource"),
        "the app of each tool can be read",
        "Answer resources/read for each resourceUri with one entry: an HTML document as text, or as a blob.";
    Must "apps.mime-type" => judge(probe, "apps.mime-type"),
        "apps have the type text/html;profile=mcp-app",
        "Give the contents the mimeType text/html;profile=mcp-app, without a blank: hosts compare it as text.";
    Must "apps.csp" => judge(probe, "apps.csp"),
        "the origins that apps declare are origins",
        "Write scheme and host, as in https://api.example.com or https://*.example.com, and nothing after them.";
    Should "apps.document" => judge(probe, "apps.document"),
        "apps are complete HTML documents",
        "Begin the document with <!doctype html>.";
    Should "apps.declared" [.since(Revision::V2025_11_25)] => judge(probe, "apps.declared"),
        "servers with apps declare the extension",
        "Declare capabilities.extensions[\"io.modelcontextprotocol/ui\"] as {}.";
    Should "apps.origins" => judge(probe, "apps.origins"),
        "apps declare the origins that they use",
        "Put everything into the document, or declare the origin in _meta.ui.csp of its contents: hosts block all others.";
    Should "apps.text" => judge(probe, "apps.text"),
        "results that an app shows make sense without it",
        "Return text in content, too: most clients show no apps, and models do not see them.";
    Should "apps.reachable" => judge(probe, "apps.reachable"),
        "each tool can be called by somebody",
        "Leave out visibility, or add the app that calls the tool.";
    Portability "apps.misplaced" => judge(probe, "apps.misplaced"),
        "tools say nothing that belongs to the resource",
        "Move csp, permissions, domain and prefersBorder to _meta.ui of the resource's contents: hosts ignore them on tools.";
    Portability "apps.spellings" => judge(probe, "apps.spellings"),
        "tools name their app in both spellings",
        "Write the URI to _meta.ui.resourceUri and to _meta[\"ui/resourceUri\"].";
    Info "apps.size" => judge(probe, "apps.size"),
        "apps have at most 1 MiB",
        "Remove what the document does not need: hosts load it for each result that they show.";
}

async fn judge(probe: &mut Probe, rule: &str) -> Outcome {
    let apps = apps(probe).await?;
    all_good(apps.judge(rule))
}

/// The apps of the server, read once. Skips the check if no tool says anything about one.
async fn apps(probe: &mut Probe) -> Result<Arc<Apps>, NotPassed> {
    if let Some(known) = &probe.apps {
        return Ok(Arc::clone(known));
    }
    let tools = probe.list(TOOLS).await?;
    let uris = Apps::uris(&tools);
    if uris.is_empty() && !tools.iter().any(|it| it.pointer("/_meta/ui").is_some()) {
        return skip("no tool has an app");
    }
    let has_extensions = probe.revision >= Revision::V2025_11_25;
    let declared = probe.capabilities().await?;
    let is_declared = has_extensions.then(|| declared["extensions"].get(ID).is_some());
    let mut documents = BTreeMap::new();
    for uri in uris.into_iter().take(probe.settings.samples) {
        let reply = probe.ask("resources/read", json!({ "uri": uri })).await?;
        let answer = reply.message.unwrap_or_default();
        let read = match (answer.get("result"), &answer["error"]["message"]) {
            (Some(result), _) => Ok(result.clone()),
            (None, message) => Err(message.as_str().unwrap_or("no answer").to_owned()),
        };
        documents.insert(uri, read);
    }
    let with_app: Vec<&str> = Apps::callable(&tools).collect();
    let calls = probe.calls().await?;
    let calls = calls.iter().filter(|it| with_app.contains(&it.name.as_str()));
    let results = calls.filter_map(|it| Some((it.name.clone(), it.result()?.clone()))).collect();
    let apps = Arc::new(Apps { is_declared, tools, documents, results });
    probe.apps = Some(Arc::clone(&apps));
    Ok(apps)
}
