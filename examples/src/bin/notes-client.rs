//! A client of the notes server: `notes-client URL` or `notes-client COMMAND…`.
//!
//! Imports notes with progress, follows changes, searches into a type, and answers the server's
//! questions.

#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use bowline::Client;
use bowline::client::{Command, FormAnswer, Target, Wanted};
use bowline::model::CreateMessageResult;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
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
        None => anyhow::bail!("usage: notes-client URL | COMMAND…"),
    };
    let client = Client::builder("notes-client", "1.0.0")
        .on_form(async |form| {
            println!("{} yes", form.message);
            Ok(FormAnswer::defaults())
        })
        .on_sampling(async |_| Ok(CreateMessageResult::text("fake", "It is about knots.")))
        .connect(target)
        .await?;

    let mut changes = client.changes(Wanted::new().resource("notes://all")).await?;
    let notes = json!([
        { "title": "Bowline", "body": "A knot." },
        { "title": "Cleat", "body": "Holds it." },
    ]);
    let imported = client
        .call_tool("import", json!({ "notes": notes }))
        .on_progress(|report| println!("{} of 2", report.progress));
    println!("{}", imported.text().await?);
    if let Some(change) = changes.next().await {
        println!("{:?}", change?);
    }

    let found = client.call_tool("search", json!({ "query": "knot" }));
    for Note { id, title } in found.structured::<Vec<Note>>().await? {
        println!("{id}: {title}");
        println!("{}", client.call_tool("summarize", json!({ "id": id })).text().await?);
        println!("{}", client.call_tool("delete", json!({ "id": id })).text().await?);
        if let Err(error) = client.call_tool("delete", json!({ "id": id })).text().await {
            println!("{error}");
        }
    }
    client.close().await;
    Ok(())
}
