//! `bowline apps`: the apps of a server, judged without a browser.

use std::collections::BTreeMap;

use bowline::model::ui::{ID, client_settings};
use bowline::{Json, Revision, with_causes};
use bowline_check::apps::{AppProblem, Apps as Found, Document};
use bowline_check::{Profile, Severity};
use clap::Args;
use serde_json::{Value, json};

use super::list::TOOLS;
use crate::failure::{Code, Failure, malformed};
use crate::render::content::size;
use crate::render::table;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Invocation, Session};
use crate::target::TargetArgs;
use crate::text::{line, plain};

/// Check the apps of a server without a browser: tools with a user interface, and their documents
///
/// Reads each app, and calls tools with an app that are marked read-only and need no arguments. The
/// rules are those of `bowline check --only apps`, in one revision. Fails with 9 if the server
/// breaks one that the specification demands.
#[derive(Args)]
pub(crate) struct Apps {
    /// Also count recommendations, and problems that only some hosts have
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    target: TargetArgs,
}

impl Apps {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        // Some servers hide apps from clients that do not declare that they show them.
        let shows_apps =
            |builder: bowline::client::ClientBuilder| builder.extension(ID, client_settings());
        Invocation::new(&self.target, root)?
            .run_as(&shows_apps, async |session| {
                let screen = &session.screen;
                let found = survey(session).await?;
                let problems = found.problems();
                let result = report(&found, &problems)?;
                screen.show(&result, || Ok(render(&found, &problems, screen)))?;
                let profile = if self.strict { Profile::Strict } else { Profile::Default };
                let counting = problems.iter().filter(|it| it.rule.counts_in(profile));
                match counting.map(|it| it.rule.severity).min() {
                    None => Ok(()),
                    Some(Severity::Must | Severity::Should) => Err(Failure::silent(Code::Broken)),
                    Some(_) => Err(Failure::silent(Code::NotPortable)),
                }
            })
            .await
    }
}

/// Everything that the server says about its apps.
async fn survey(session: &Session) -> Result<Found, Failure> {
    let list = TOOLS.fetch(session).await?;
    let items = TOOLS.items(&list, &session.screen)?;
    let tools: Vec<Value> = items.iter().map(Json::to_value).collect();
    let client = &session.client;
    let mut documents = BTreeMap::new();
    for uri in Found::uris(&tools) {
        let read = client.call_json("resources/read", json!({ "uri": uri })).await;
        let read = read.map(|it| it.to_value()).map_err(|error| with_causes(&error));
        documents.insert(uri, read);
    }
    let mut results = Vec::new();
    for name in Found::callable(&tools) {
        let params = json!({ "name": name, "arguments": {} });
        match client.call_json("tools/call", params).await {
            Ok(result) => results.push((name.to_owned(), result.to_value())),
            Err(error) => {
                let why = with_causes(&error);
                session.screen.warn(&format!("{name} could not be called: {why}"));
            }
        }
    }
    let peer = client.peer().filter(|peer| peer.revision >= Revision::EXTENSIONS);
    let is_declared = peer.map(|peer| peer.capabilities.has_extension(ID));
    Ok(Found { is_declared, tools, documents, results })
}

/// The report for programs.
fn report(found: &Found, problems: &[AppProblem]) -> Result<Json, Failure> {
    let apps = found.documents.keys().map(|uri| {
        let document = found.document(uri);
        json!({
            "uri": uri,
            "tools": found.tools_of(uri).collect::<Vec<_>>(),
            "mimeType": document.as_ref().and_then(|it| it.mime_type.clone()),
            "bytes": document.as_ref().map(|it| it.html.len()),
            "ui": document.as_ref().map(Document::ui),
        })
    });
    let problems = problems.iter().map(|AppProblem { rule, said }| {
        let severity = rule.severity.as_str();
        let (fix, see) = (rule.remedy, rule.main_link());
        json!({ "rule": rule.id, "severity": severity, "said": said, "fix": fix, "see": see })
    });
    let (apps, problems): (Vec<Value>, Vec<Value>) = (apps.collect(), problems.collect());
    Json::new(&json!({ "apps": apps, "problems": problems }))
        .map_err(|error| malformed(&error.to_string()))
}

/// The report for people.
fn render(found: &Found, problems: &[AppProblem], screen: &Screen) -> String {
    let rows = found.documents.keys().map(|uri| {
        let document = found.document(uri);
        let tools: Vec<_> = found.tools_of(uri).collect();
        let csp = document.as_ref().and_then(|it| it.ui().csp).unwrap_or_default().to_string();
        let bytes = document.map(|it| size(it.html.len())).unwrap_or_default();
        vec![line(uri), line(&tools.join(", ")), bytes, line(&csp)]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut text = match rows.is_empty() {
        true => "no apps\n".to_owned(),
        false => table::render(&["APP", "TOOLS", "SIZE", "ORIGINS"], rows, screen),
    };
    for AppProblem { rule, said } in problems {
        let style = if rule.severity == Severity::Must { Style::Red } else { Style::Yellow };
        let word = screen.out.paint(style, rule.severity.as_str());
        text += &format!("\n{word} {}: {}\n  fix: {}\n", rule.id, plain(said), rule.remedy);
    }
    text
}
