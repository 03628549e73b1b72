//! An extension of the protocol, written outside the SDK: receipts.
//!
//! A client that knows receipts gets one instead of the result of a tool, fetches the result when
//! it needs it, and hears when a receipt has been redeemed. Nobody else sees it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowline::client::{CallError, ClientBuilder};
use bowline::model::{CallToolResult, Meta};
use bowline::{
    Answer, Caller, Client, Context, Era, ErrorObject, Extension, HandlerError, Incoming, Json,
    Next, Outcome, Revision, Server, tool,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The id of the extension, and the key of what it adds to metadata.
pub const ID: &str = "com.example/receipts";
/// The kind of result that a call has instead of its own.
pub const RECEIPT: &str = "com.example/receipt";
/// The member of `subscriptions/listen` that lists receipts.
pub const TOPIC: &str = "com.example/receipts";
/// The notification about one of them.
pub const REDEEMED: &str = "notifications/com.example/receipt";

/// The most receipts that are kept.
const MOST: usize = 1_000;

/// A server with a tool, and the extension around it.
pub fn shop() -> Server {
    Server::new("shop", env!("CARGO_PKG_VERSION")).with(brew).with(receipts())
}

/// Brew tea.
#[tool]
async fn brew(
    /// How many cups.
    cups: u32,
) -> String {
    format!("{cups} cups of tea")
}

/// The server's side.
pub fn receipts() -> Extension {
    let book = Arc::new(Book::default());
    let [wrapped, got, listed, read] = std::array::from_fn(|_| Arc::clone(&book));
    Extension::new(ID)
        .setting("most", MOST)
        .method("receipts/get", .., move |context: Context, wanted: Wanted| {
            let book = Arc::clone(&got);
            async move { book.redeem(&context, &wanted.id) }
        })
        // Clients of the legacy era cannot listen, so they ask.
        .method("receipts/list", ..Revision::MODERN, move |_: Context, _: Json| {
            let book = Arc::clone(&listed);
            async move { Ok::<_, HandlerError>(json!({ "receipts": book.list() })) }
        })
        .topic(TOPIC, REDEEMED, move |_: Caller, id: String| {
            let book = Arc::clone(&read);
            async move { book.find(&id) }
        })
        // What comes before this is for clients that have declared the extension.
        .for_declaring_clients()
        .around_calls(move |incoming: Incoming, next: Next| {
            let book = Arc::clone(&wrapped);
            async move { book.around(incoming, next).await }
        })
        .decorate_tools(|tool, _| tool.meta.get_or_insert_default().set(ID, true))
}

#[derive(Deserialize)]
struct Wanted {
    id: String,
}

/// The receipts of a server.
#[derive(Default)]
struct Book {
    next: AtomicU64,
    kept: Mutex<HashMap<String, Kept>>,
}

struct Kept {
    result: CallToolResult,
    is_redeemed: bool,
}

/// A receipt as clients see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    id: String,
    is_redeemed: bool,
}

impl Book {
    /// Calls the tool, and answers with a receipt. Results of the legacy era have no kind, so the
    /// receipt is metadata there.
    async fn around(&self, incoming: Incoming, next: Next) -> Outcome {
        let era = incoming.context.caller().era();
        let mut result = match next.run(incoming).await? {
            Answer::Tool(result) if result.is_error != Some(true) => result,
            other => return Ok(other),
        };
        let Some(id) = self.keep(&result) else { return Ok(Answer::Tool(result)) };
        if era == Era::Legacy {
            result.meta.get_or_insert_with(Meta::default).set(ID, id);
            return Ok(Answer::Tool(result));
        }
        Ok(Answer::Verbatim(json!({ "resultType": RECEIPT, "id": id }).into()))
    }

    /// Keeps a result. There is no receipt if there is no room.
    fn keep(&self, result: &CallToolResult) -> Option<String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        kept.insert(id.clone(), Kept { result: result.clone(), is_redeemed: false });
        Some(id)
    }

    /// The result behind a receipt. Those who listen are told.
    fn redeem(&self, context: &Context, id: &str) -> Result<CallToolResult, HandlerError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.get_mut(id).ok_or_else(|| {
            ErrorObject::invalid_params("receipts/get: params.id: there is no such receipt")
        })?;
        found.is_redeemed = true;
        context.registry().topic_changed(TOPIC, id);
        Ok(found.result.clone())
    }

    fn find(&self, id: &str) -> Option<Receipt> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Receipt { id: id.to_owned(), is_redeemed: kept.get(id)?.is_redeemed })
    }

    fn list(&self) -> Vec<Receipt> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = kept
            .iter()
            .map(|(id, kept)| Receipt { id: id.clone(), is_redeemed: kept.is_redeemed })
            .collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }
}

/// The client's side: it declares the extension, and turns receipts into results.
pub fn with_receipts(client: ClientBuilder) -> ClientBuilder {
    client.extension(ID, Default::default()).on_result(RECEIPT, redeem)
}

async fn redeem(client: Client, receipt: Json) -> Result<Json, CallError> {
    let id = receipt.to_value()["id"].clone();
    client.call_json("receipts/get", json!({ "id": id })).await
}
