//! A notes server: SQLite, five tools, resources, a prompt, questions, sampling and progress.
//!
//! `notes [FILE]` serves on stdio, `notes [FILE] --http 127.0.0.1:8080` over HTTP.

use std::sync::{Mutex, MutexGuard};

use anyhow::{Context as _, anyhow};
use bowline::model::CreateMessageParams;
use bowline::{Completing, Context, Server, Structured, server};
use rusqlite::{Connection, OptionalExtension, Row, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const ALL: &str = "notes://all";

/// One note.
#[derive(Serialize, JsonSchema)]
struct Note {
    id: i64,
    title: String,
    body: String,
}

/// A note to add.
#[derive(Deserialize, JsonSchema)]
struct Draft {
    title: String,
    body: String,
}

struct Notes {
    database: Mutex<Connection>,
}

impl Notes {
    fn open(path: &str) -> anyhow::Result<Self> {
        let database = Connection::open(path).with_context(|| format!("cannot open {path}"))?;
        database.execute_batch(
            "CREATE TABLE IF NOT EXISTS notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL)",
        )?;
        Ok(Self { database: Mutex::new(database) })
    }

    fn database(&self) -> MutexGuard<'_, Connection> {
        self.database.lock().expect("no query panics")
    }

    fn insert(&self, draft: Draft) -> anyhow::Result<Note> {
        let Draft { title, body } = draft;
        let database = self.database();
        database.execute("INSERT INTO notes(title, body) VALUES (?1, ?2)", params![title, body])?;
        Ok(Note { id: database.last_insert_rowid(), title, body })
    }

    fn find(&self, id: i64) -> anyhow::Result<Note> {
        let database = self.database();
        let found = database.query_row("SELECT * FROM notes WHERE id = ?1", [id], read).optional()?;
        found.ok_or_else(|| anyhow!("there is no note {id}"))
    }

    fn matching(&self, query: &str, limit: u32) -> anyhow::Result<Vec<Note>> {
        let pattern = format!("%{query}%");
        let database = self.database();
        let mut select = database.prepare(
            "SELECT * FROM notes WHERE title LIKE ?1 OR body LIKE ?1 ORDER BY id LIMIT ?2",
        )?;
        let rows = select.query_map(params![pattern, limit], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Note> {
    Ok(Note { id: row.get(0)?, title: row.get(1)?, body: row.get(2)? })
}

#[server]
impl Notes {
    /// Add a note.
    #[tool(destructive = false)]
    async fn add(&self, title: String, body: String, context: Context) -> anyhow::Result<Note> {
        let note = self.insert(Draft { title, body })?;
        context.registry().resource_updated(ALL);
        Ok(note)
    }

    /// Find notes by a word in their title or text.
    #[tool(read_only)]
    async fn search(
        &self,
        query: String,
        #[arg(default = 10)] limit: u32,
    ) -> anyhow::Result<Vec<Note>> {
        self.matching(&query, limit)
    }

    /// Delete a note, after asking the user.
    #[tool(destructive = true)]
    async fn delete(&self, id: i64, context: Context) -> anyhow::Result<String> {
        let title = self.find(id)?.title;
        if !context.confirm(format!("Delete “{title}”?")).await? {
            return Ok(format!("note {id} was kept"));
        }
        self.database().execute("DELETE FROM notes WHERE id = ?1", [id])?;
        context.registry().resource_updated(ALL);
        Ok(format!("note {id} was deleted"))
    }

    /// Summarize a note in one sentence.
    #[tool(read_only)]
    async fn summarize(&self, id: i64, context: Context) -> anyhow::Result<String> {
        let Note { title, body, .. } = self.find(id)?;
        let request = format!("Summarize in one sentence:\n\n# {title}\n\n{body}");
        Ok(context.sample(CreateMessageParams::text(request, 200)).await?.text())
    }

    /// Add many notes.
    #[tool(destructive = false)]
    async fn import(&self, notes: Vec<Draft>, context: Context) -> anyhow::Result<String> {
        let total = notes.len();
        for (done, draft) in notes.into_iter().enumerate() {
            let note = self.insert(draft)?;
            context.registry().resource_updated(ALL);
            context.progress((done + 1) as f64, total as f64, &note.title);
            tokio::task::yield_now().await;
        }
        Ok(format!("{total} notes were added"))
    }

    /// All notes.
    #[resource("notes://all", mime_type = "application/json")]
    async fn all(&self) -> anyhow::Result<Vec<Note>> {
        self.matching("", u32::MAX)
    }

    /// The text of a note.
    #[resource("notes://{id}", mime_type = "text/plain", complete(id = Self::ids))]
    async fn note(&self, id: i64) -> anyhow::Result<String> {
        Ok(self.find(id)?.body)
    }

    /// Review a note.
    #[prompt(complete(id = Self::ids))]
    async fn review(&self, id: i64) -> anyhow::Result<String> {
        Ok(format!("Please review this note:\n\n{}", self.find(id)?.body))
    }

    async fn ids(&self, typed: Completing) -> Vec<String> {
        let notes = self.matching("", 1000).unwrap_or_default();
        typed.matching(notes.iter().map(|note| note.id.to_string()))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (path, address) = match arguments[..] {
        [] => (":memory:", None),
        [path] => (path, None),
        ["--http", address] => (":memory:", Some(address)),
        [path, "--http", address] => (path, Some(address)),
        _ => return Err(anyhow!("usage: notes [FILE] [--http ADDRESS]")),
    };
    let server = Server::new("notes", env!("CARGO_PKG_VERSION")).with(Notes::open(path)?);
    match address {
        Some(address) => server.serve_http(address).await?,
        None => server.serve_stdio().await?,
    }
    Ok(())
}
