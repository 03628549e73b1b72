//! A client of the notes server: `notes-client COMMAND…` or `notes-client URL`.
//!
//! Adds notes with progress, searches into a type, answers what the server asks, follows changes.

use bowline::Client;
use bowline::client::{Command, FormAnswer, Target, Wanted};
use bowline::model::CreateMessageResult;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Deserialize)]
struct Note {
    id: i64,
    title: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let target: Target = match words.next() {
        Some(url) if url.starts_with("http") => url.into(),
        Some(program) => Command::new(program).args(words).into(),
        None => anyhow::bail!("usage: notes-client COMMAND… | URL"),
    };
    let client = Client::builder("notes-client", "1.0.0")
        .on_form(|form| async move {
            println!("asked: {}", form.message);
            Ok(FormAnswer::accept(&json!({ "confirm": true })))
        })
        .on_sampling(|_| async { Ok(CreateMessageResult::text("fake", "A note about knots.")) })
        .connect(target)
        .await?;

    let mut changes = client.changes(Wanted::new().resource("notes://all")).await?;
    let drafts = json!([{ "title": "Bowline", "body": "A knot." }, { "title": "Cleat", "body": "Holds it." }]);
    let imported = client
        .call_tool("import", json!({ "notes": drafts }))
        .on_progress(|report| println!("imported {} of {:?}", report.progress, report.total))
        .text()
        .await?;
    println!("{imported}");
    if let Some(change) = changes.next().await {
        println!("changed: {:?}", change?);
    }

    let found: Vec<Note> = client.call_tool("search", json!({ "query": "knot" })).structured().await?;
    for Note { id, title } in &found {
        println!("{id}: {title}");
        println!("{}", client.call_tool("summarize", json!({ "id": id })).text().await?);
        println!("{}", client.call_tool("delete", json!({ "id": id })).text().await?);
    }
    match client.call_tool("delete", json!({ "id": 99 })).text().await {
        Ok(text) => println!("{text}"),
        Err(error) => println!("error: {error}"),
    }
    client.close().await;
    Ok(())
}
