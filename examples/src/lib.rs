//! A notes server: `SQLite`, five tools, resources, a prompt, questions, sampling and progress.
//! [`receipts`] is an extension of the protocol.

// The same file is a package of its own, outside this workspace: `examples/receipts`.
#[path = "../receipts/src/lib.rs"]
pub mod receipts;

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use bowline::model::{CreateMessageParams, SamplingMessage};
use bowline::{Completing, Context, Server, server};
use rusqlite::{Connection, OptionalExtension, Row, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const ALL: &str = "notes://all";

/// One note.
#[derive(Serialize, JsonSchema)]
pub struct Note {
    id: i64,
    title: String,
    body: String,
}

/// A note to add.
#[derive(Deserialize, JsonSchema)]
pub struct Draft {
    /// A few words.
    title: String,
    /// The text.
    body: String,
}

/// The notes in a database.
pub struct Notes(Mutex<Connection>);

/// The server of the notes in a file.
pub fn notes(path: &str) -> anyhow::Result<Server> {
    Ok(Server::new("notes", env!("CARGO_PKG_VERSION")).with(Notes::open(path)?))
}

#[server]
impl Notes {
    /// Add a note.
    #[tool(destructive = false)]
    async fn add(
        &self,
        context: &Context,
        /// A few words.
        title: String,
        /// The text.
        body: String,
    ) -> anyhow::Result<Note> {
        self.insert(context, Draft { title, body })
    }

    /// Find notes by a word in their title or text.
    #[tool(read_only)]
    async fn search(
        &self,
        /// The word.
        query: String,
        /// How many notes, at most.
        #[arg(default = 10)]
        limit: u32,
    ) -> anyhow::Result<Vec<Note>> {
        self.matching(&query, limit)
    }

    /// Delete a note, if the user agrees.
    #[tool(destructive = true)]
    async fn delete(
        &self,
        context: &Context,
        /// Which note.
        id: i64,
    ) -> anyhow::Result<String> {
        let title = self.find(id)?.title;
        if !context.confirm(format!("Delete {title:?}?")).await? {
            return Ok(format!("note {id} was kept"));
        }
        self.lock().execute("DELETE FROM notes WHERE id = ?1", [id])?;
        context.registry().resource_updated(ALL);
        Ok(format!("note {id} was deleted"))
    }

    /// Summarize a note in one sentence.
    #[tool(read_only)]
    async fn summarize(
        &self,
        context: &Context,
        /// Which note.
        id: i64,
    ) -> anyhow::Result<String> {
        let Note { title, body, .. } = self.find(id)?;
        let request = format!("Summarize in one sentence:\n\n# {title}\n\n{body}");
        let request = CreateMessageParams::new(vec![SamplingMessage::user(request)], 200);
        Ok(context.sample(request).await?.content.text())
    }

    /// Add many notes.
    #[tool(destructive = false)]
    async fn import(
        &self,
        context: &Context,
        /// The notes, in order.
        notes: Vec<Draft>,
    ) -> anyhow::Result<String> {
        let total = u32::try_from(notes.len())?;
        for (done, draft) in (1..).zip(notes) {
            let note = self.insert(context, draft)?;
            context.progress(f64::from(done), f64::from(total), &note.title);
            // A cancelled call ends here.
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
    #[resource("notes://{id}", mime_type = "text/plain", complete(id = self.ids))]
    async fn note(&self, id: i64) -> anyhow::Result<Option<String>> {
        Ok(self.get(id)?.map(|note| note.body))
    }

    /// Review a note.
    #[prompt(complete(id = self.ids))]
    async fn review(&self, id: i64) -> anyhow::Result<String> {
        Ok(format!("Please review this note:\n\n{}", self.find(id)?.body))
    }

    async fn ids(&self, typed: Completing) -> Vec<String> {
        let notes = self.matching("", 1000).unwrap_or_default();
        let ids: Vec<_> = notes.iter().map(|note| note.id.to_string()).collect();
        typed.matching(&ids)
    }
}

impl Notes {
    /// Opens the notes in a file; `:memory:` keeps them in memory.
    pub fn open(path: &str) -> anyhow::Result<Self> {
        let database = Connection::open(path).with_context(|| format!("cannot open {path}"))?;
        database.execute_batch(
            "CREATE TABLE IF NOT EXISTS notes
             (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL)",
        )?;
        Ok(Self(Mutex::new(database)))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, context: &Context, Draft { title, body }: Draft) -> anyhow::Result<Note> {
        let database = self.lock();
        database.execute("INSERT INTO notes(title, body) VALUES (?1, ?2)", params![title, body])?;
        context.registry().resource_updated(ALL);
        Ok(Note { id: database.last_insert_rowid(), title, body })
    }

    fn get(&self, id: i64) -> rusqlite::Result<Option<Note>> {
        let select = "SELECT id, title, body FROM notes WHERE id = ?1";
        self.lock().query_row(select, [id], read).optional()
    }

    fn find(&self, id: i64) -> anyhow::Result<Note> {
        self.get(id)?.with_context(|| format!("there is no note {id}"))
    }

    /// Notes that contain some text.
    pub fn matching(&self, text: &str, limit: u32) -> anyhow::Result<Vec<Note>> {
        let database = self.lock();
        let mut select = database.prepare(
            "SELECT id, title, body FROM notes
             WHERE title LIKE ?1 OR body LIKE ?1 ORDER BY id LIMIT ?2",
        )?;
        let rows = select.query_map(params![format!("%{text}%"), limit], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Note> {
    Ok(Note { id: row.get(0)?, title: row.get(1)?, body: row.get(2)? })
}
