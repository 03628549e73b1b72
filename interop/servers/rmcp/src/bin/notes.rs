//! The notes server with the official Rust SDK, in both eras: `notes [DATABASE] [--http ADDRESS]`.
//! `docs/compare.md` says what it does, and compares it with the same server written with other
//! SDKs.

// The SDK marks sampling and legacy subscriptions as deprecated.
#![allow(deprecated)]

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::tool::InputResponses;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::service::{ElicitationError, RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ErrorData, Json, ServerHandler, ServiceExt, elicit_safe, prompt, prompt_handler, prompt_router,
    schemars, tool, tool_handler, tool_router,
};
use rusqlite::{Connection, Params, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

const ALL: &str = "notes://all";
const TEMPLATE: &str = "notes://{id}";

#[derive(Serialize, JsonSchema)]
struct Note {
    /// The id of the note.
    id: i64,
    /// The title of the note.
    title: String,
    /// The text of the note.
    body: String,
}

/// Structured content must be an object before 2026-07-28.
#[derive(Serialize, JsonSchema)]
struct Found {
    /// The notes that were found.
    notes: Vec<Note>,
}

#[derive(Deserialize, JsonSchema)]
struct NewNote {
    /// The title of the note.
    title: String,
    /// The text of the note.
    body: String,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What the title or the text must contain.
    query: String,
    /// The most notes to return.
    #[serde(default = "default_limit")]
    limit: u32,
}

fn default_limit() -> u32 {
    10
}

#[derive(Deserialize, JsonSchema)]
struct Import {
    /// The notes to add.
    notes: Vec<NewNote>,
}

#[derive(Deserialize, JsonSchema)]
struct Select {
    /// The id of the note.
    id: i64,
}

/// Clients send the arguments of prompts as strings.
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The id of the note.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to delete the note.
    confirm: bool,
}

elicit_safe!(Confirmation);

/// What all sessions share.
struct Store {
    db: Mutex<Connection>,
    changes: watch::Sender<()>,
}

impl Store {
    fn open(path: Option<String>) -> rusqlite::Result<Self> {
        let db = match path {
            Some(path) => Connection::open(path)?,
            None => Connection::open_in_memory()?,
        };
        db.execute(
            "CREATE TABLE IF NOT EXISTS \
             notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL)",
            (),
        )?;
        Ok(Self { db: Mutex::new(db), changes: watch::Sender::default() })
    }

    fn query(&self, sql: &str, params: impl Params) -> Result<Vec<Note>, String> {
        let read = |row: &Row| Ok(Note { id: row.get(0)?, title: row.get(1)?, body: row.get(2)? });
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        let query = || db.prepare_cached(sql)?.query_map(params, read)?.collect();
        let notes: rusqlite::Result<_> = query();
        notes.map_err(|error| error.to_string())
    }

    fn one(&self, sql: &str, params: impl Params) -> Result<Option<Note>, String> {
        Ok(self.query(sql, params)?.pop())
    }

    fn all(&self) -> Result<Vec<Note>, String> {
        self.query("SELECT * FROM notes ORDER BY id", ())
    }

    fn find(&self, id: i64) -> Result<Note, String> {
        let note = self.one("SELECT * FROM notes WHERE id = ?", [id])?;
        note.ok_or_else(|| format!("there is no note {id}"))
    }

    fn insert(&self, NewNote { title, body }: NewNote) -> Result<Note, String> {
        let sql = "INSERT INTO notes(title, body) VALUES (?, ?) RETURNING *";
        self.one(sql, (title, body))?.ok_or_else(|| "the note was not added".to_owned())
    }
}

/// The server of one session, or of one request.
#[derive(Clone)]
struct Notes {
    store: Arc<Store>,
    /// What notifies the subscriber, in the legacy era.
    subscription: Arc<Mutex<Option<AbortHandle>>>,
}

impl Notes {
    fn new(store: Arc<Store>) -> Self {
        Self { store, subscription: Arc::default() }
    }

    fn replace_subscription(&self, subscription: Option<AbortHandle>) {
        let mut current = self.subscription.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(previous) = std::mem::replace(&mut *current, subscription) {
            previous.abort();
        }
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|it| it >= ProtocolVersion::V_2026_07_28)
}

/// Asks the client in the result, as 2026-07-28 demands.
fn require(request: InputRequest) -> CallToolResponse {
    let requests = InputRequests::from([("answer".to_owned(), request)]);
    InputRequiredResult::new(Some(requests), None).into()
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

#[tool_router]
impl Notes {
    #[tool(description = "Add a note")]
    fn add(&self, Parameters(note): Parameters<NewNote>) -> Result<Json<Note>, String> {
        let note = self.store.insert(note)?;
        self.store.changes.send_replace(());
        Ok(Json(note))
    }

    #[tool(description = "Search the notes", annotations(read_only_hint = true))]
    fn search(
        &self,
        Parameters(Search { query, limit }): Parameters<Search>,
    ) -> Result<Json<Found>, String> {
        let sql = "SELECT * FROM notes WHERE instr(title, ?1) OR instr(body, ?1) \
                   ORDER BY id LIMIT ?2";
        Ok(Json(Found { notes: self.store.query(sql, (query, limit))? }))
    }

    #[tool(
        description = "Delete a note, after the user has confirmed it",
        annotations(destructive_hint = true)
    )]
    async fn delete(
        &self,
        Parameters(Select { id }): Parameters<Select>,
        InputResponses(answers): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, String> {
        let note = self.store.find(id)?;
        let question = format!("Delete the note {:?}?", note.title);
        let confirmed = if !is_modern(&context) {
            match context.peer.elicit::<Confirmation>(question).await {
                Ok(answer) => answer.is_some_and(|answer| answer.confirm),
                Err(ElicitationError::UserDeclined | ElicitationError::UserCancelled) => false,
                Err(error) => return Err(error.to_string()),
            }
        } else if let Some(answer) = answers.and_then(|mut answers| answers.remove("answer")) {
            let answer = ElicitResult::deserialize(answer).map_err(|error| error.to_string())?;
            let content = answer.content.map(Confirmation::deserialize).transpose();
            let content = content.map_err(|error| error.to_string())?;
            answer.action == ElicitationAction::Accept && content.is_some_and(|it| it.confirm)
        } else {
            let form = ElicitationSchema::from_type::<Confirmation>();
            let form = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: question,
                requested_schema: form.map_err(|error| error.to_string())?,
            };
            return Ok(require(InputRequest::Elicitation(ElicitRequest::new(form))));
        };
        if !confirmed {
            return Ok(text(format!("note {id} was not deleted")));
        }
        self.store.query("DELETE FROM notes WHERE id = ?", [id])?;
        self.store.changes.send_replace(());
        Ok(text(format!("note {id} was deleted")))
    }

    #[tool(description = "Summarize a note in one sentence, with the client's model")]
    async fn summarize(
        &self,
        Parameters(Select { id }): Parameters<Select>,
        InputResponses(answers): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, String> {
        let Note { title, body, .. } = self.store.find(id)?;
        let question = format!("Summarize this note in one sentence.\n\n{title}\n\n{body}");
        let messages = vec![SamplingMessage::user_text(question)];
        let request = CreateMessageRequestParams::new(messages, 200);
        let answer = if !is_modern(&context) {
            context.peer.create_message(request).await.map_err(|error| error.to_string())?
        } else if let Some(answer) = answers.and_then(|mut answers| answers.remove("answer")) {
            CreateMessageResult::deserialize(answer).map_err(|error| error.to_string())?
        } else {
            return Ok(require(InputRequest::CreateMessage(CreateMessageRequest::new(request))));
        };
        let summary = answer.message.content.first().and_then(|content| content.as_text());
        let summary = summary.ok_or("the client's model did not answer with text")?;
        Ok(text(&summary.text))
    }

    #[tool(name = "import", description = "Add many notes")]
    async fn import_notes(
        &self,
        Parameters(Import { notes }): Parameters<Import>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let total = notes.len();
        let token = context.meta.get_progress_token();
        for (done, note) in (1..).zip(notes) {
            if context.ct.is_cancelled() {
                return Err("the import was cancelled".to_owned());
            }
            let note = self.store.insert(note)?;
            self.store.changes.send_replace(());
            if let Some(token) = token.clone() {
                let progress = ProgressNotificationParam::new(token, f64::from(done))
                    .with_total(total as f64)
                    .with_message(format!("added {:?}", note.title));
                let sent = context.peer.notify_progress(progress).await;
                sent.map_err(|error| error.to_string())?;
            }
        }
        Ok(format!("{total} notes were added"))
    }
}

#[prompt_router]
impl Notes {
    #[prompt(description = "Review a note")]
    async fn review(
        &self,
        Parameters(Review { id }): Parameters<Review>,
    ) -> Result<Vec<PromptMessage>, ErrorData> {
        let invalid = |error: String| ErrorData::invalid_params(error, None);
        let id = id.parse().map_err(|_| invalid(format!("{id:?} must be an integer")))?;
        let Note { title, body, .. } = self.store.find(id).map_err(invalid)?;
        let question = format!("Review this note.\n\n{title}\n\n{body}");
        Ok(vec![PromptMessage::new_text(Role::User, question)])
    }
}

#[tool_handler]
#[prompt_handler]
impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("notes", "1.0.0"))
            .with_instructions("Keep notes, and search them.")
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = Resource::new(ALL, "all")
            .with_description("All notes")
            .with_mime_type("application/json");
        Ok(ListResourcesResult::with_all_items(vec![all]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let note = ResourceTemplate::new(TEMPLATE, "note")
            .with_description("A note")
            .with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![note]))
    }

    async fn read_resource(
        &self,
        ReadResourceRequestParams { uri, .. }: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let failed = |error: String| ErrorData::internal_error(error, None);
        let missing = |error: String| ErrorData::resource_not_found(error, None);
        let contents = if uri == ALL {
            let notes = serde_json::to_string(&self.store.all().map_err(failed)?);
            let notes = notes.map_err(|error| failed(error.to_string()))?;
            ResourceContents::text(notes, uri).with_mime_type("application/json")
        } else {
            let id = uri.strip_prefix("notes://").and_then(|id| id.parse().ok());
            let id = id.ok_or_else(|| missing(format!("there is no resource {uri}")))?;
            let note = self.store.find(id).map_err(missing)?;
            ResourceContents::text(note.body, uri).with_mime_type("text/plain")
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        CompleteRequestParams { r#ref, argument, .. }: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let failed = |error: String| ErrorData::internal_error(error, None);
        let values = match r#ref {
            Reference::Resource(template) if template.uri == TEMPLATE && argument.name == "id" => {
                let ids = self.store.all().map_err(failed)?.into_iter().map(|it| it.id.to_string());
                let ids = ids.filter(|id| id.starts_with(&argument.value));
                ids.take(CompletionInfo::MAX_VALUES).collect()
            }
            _ => Vec::new(),
        };
        Ok(CompleteResult::new(CompletionInfo::new(values).map_err(failed)?))
    }

    async fn subscribe(
        &self,
        SubscribeRequestParams { uri, .. }: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if uri != ALL {
            let error = format!("{uri} cannot be subscribed to");
            return Err(ErrorData::resource_not_found(error, None));
        }
        let (mut changes, peer) = (self.store.changes.subscribe(), context.peer);
        let forward = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let update = ResourceUpdatedNotificationParam::new(ALL);
                if peer.notify_resource_updated(update).await.is_err() {
                    break;
                }
            }
        });
        self.replace_subscription(Some(forward.abort_handle()));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.replace_subscription(None);
        Ok(())
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().resource_subscription(ALL).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.store.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                Ok(()) = changes.changed() => {
                    let sent = context.sink().notify_resource_updated(ALL).await;
                    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                }
            }
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (mut database, mut http) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--http" => http = arguments.next(),
            _ => database = Some(argument),
        }
    }
    let store = Arc::new(Store::open(database)?);
    let Some(address) = http else {
        Notes::new(store).serve(stdio()).await?.waiting().await?;
        return Ok(());
    };
    let stop = CancellationToken::new();
    let service = StreamableHttpService::new(
        move || Ok(Notes::new(Arc::clone(&store))),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_cancellation_token(stop.child_token()),
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(address).await?;
    let shutdown = async move {
        let _ = tokio::signal::ctrl_c().await;
        stop.cancel();
    };
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await?;
    Ok(())
}
