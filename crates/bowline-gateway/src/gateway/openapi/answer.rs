//! What an API answers, as the result of a tool.
//!
//! An answer that is longer than the limit is cut. The tools of GET can read on: `next_part` says
//! how far the reader is and what it has read, as a digest. The same request is sent again, what
//! was read is skipped, and a digest that differs shows that the parts would not fit together.
//! Nothing is kept in between.

use bowline::Json;
use bowline::base64;
use bowline::model::{CallToolResult, ContentBlock};
use bowline_web::{Body, WebError};
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED, RETRY_AFTER,
};
use http::{HeaderMap, Method, Response, StatusCode};
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value, json};

use super::operation::{NEXT, Operation, is_json};

/// The most bytes of the body of an error.
const ERROR: usize = 16 << 10;

/// How far the reader of an answer is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Position {
    offset: usize,
    /// The digest of what is before.
    digest: String,
}

impl Position {
    /// What [`NEXT`] says.
    ///
    /// # Errors
    /// When it is not what an answer has said.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('-').and_then(|(offset, digest)| {
            let offset = offset.parse().ok()?;
            Some(Self { offset, digest: digest.to_owned() })
        });
        parsed.ok_or_else(|| format!("{NEXT}: expected what the last answer says, found {text:?}"))
    }
}

/// What was read of a body.
struct Part {
    bytes: Vec<u8>,
    /// Where to read on, if there is more.
    next: Option<Position>,
}

/// How the bytes of an answer are passed on.
enum Kind {
    Json,
    Text,
    Image(String),
}

/// Makes a response the result of a call.
///
/// # Errors
/// When the response breaks off.
pub(super) async fn answer(
    response: Response<Body>,
    operation: &Operation,
    from: Option<Position>,
    limit: usize,
) -> Result<CallToolResult, WebError> {
    let (head, body) = response.into_parts();
    let status = head.status;
    let kind = kind(&head.headers);
    if !status.is_success() {
        return failure(status, &head.headers, kind.ok(), body).await;
    }
    let said = |text| CallToolResult::success(vec![ContentBlock::text(text)]);
    if operation.method == Method::HEAD {
        return Ok(said(described(status, &head.headers)));
    }
    if http_body::Body::is_end_stream(&body) {
        return Ok(fitting(operation, said(format!("HTTP {status}, without content"))));
    }
    let from = from.unwrap_or_default();
    // An image is whole or not there.
    let room = if matches!(kind, Ok(Kind::Image(_))) { limit + 1 } else { limit };
    let what = match kind {
        Ok(kind) => match read(body, &from, room).await? {
            Ok(part) => return Ok(passed_on(operation, (status, kind), &from, (part, limit))),
            Err(why) => return Ok(CallToolResult::failure(why)),
        },
        Err(what) => what,
    };
    let why = format!("HTTP {status}, but the answer cannot be passed on: it is {what}");
    Ok(CallToolResult::failure(why))
}

fn passed_on(
    operation: &Operation,
    (status, kind): (StatusCode, Kind),
    from: &Position,
    (part, limit): (Part, usize),
) -> CallToolResult {
    match kind {
        Kind::Image(media) if part.bytes.len() > limit => {
            let what = format!("the answer is {media} of more than {limit} bytes");
            CallToolResult::failure(format!("HTTP {status}, but {what}"))
        }
        Kind::Image(media) => {
            let data = base64::STANDARD.encode(&part.bytes);
            fitting(operation, CallToolResult::success(vec![ContentBlock::image(data, media)]))
        }
        _ if from.offset > 0 || part.next.is_some() => partial(operation, from, &part),
        kind => {
            let text = String::from_utf8_lossy(&part.bytes).into_owned();
            if text.is_empty() {
                let text = format!("HTTP {status}, without content");
                return fitting(operation, CallToolResult::success(vec![ContentBlock::text(text)]));
            }
            match kind {
                Kind::Json => whole(operation, status, text),
                _ => fitting(operation, CallToolResult::success(vec![ContentBlock::text(text)])),
            }
        }
    }
}

/// What the head of an answer says.
fn described(status: StatusCode, headers: &HeaderMap) -> String {
    let names = [CONTENT_TYPE, CONTENT_LENGTH, LAST_MODIFIED, ETAG];
    let lines = names.iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(format!("\n{name}: {value}"))
    });
    format!("HTTP {status}{}", lines.collect::<String>())
}

/// How an answer is passed on, or what it is.
fn kind(headers: &HeaderMap) -> Result<Kind, String> {
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let encoding = text(CONTENT_ENCODING);
    if !matches!(encoding, "" | "identity") {
        return Err(format!("encoded as {encoding}"));
    }
    let media = text(CONTENT_TYPE).split(';').next().unwrap_or_default();
    let media = media.trim().to_ascii_lowercase();
    let is_text = media.starts_with("text/") && media != "text/event-stream"
        || media.ends_with("+xml")
        || matches!(
            media.as_str(),
            "" | "application/xml" | "application/yaml" | "application/x-ndjson"
        );
    match media.as_str() {
        media if is_json(media) => Ok(Kind::Json),
        _ if is_text => Ok(Kind::Text),
        media if media.starts_with("image/") => Ok(Kind::Image(media.to_owned())),
        _ => Err(media),
    }
}

/// Reads a part of a body.
async fn read(
    mut body: Body,
    from: &Position,
    limit: usize,
) -> Result<Result<Part, String>, WebError> {
    let (mut before, mut skipped) = (Context::new(&SHA256), 0);
    let (mut bytes, mut has_more) = (Vec::new(), false);
    while let Some(chunk) = body.chunk().await.transpose()? {
        let skip = chunk.len().min(from.offset - skipped);
        before.update(&chunk[..skip]);
        skipped += skip;
        let room = (chunk.len() - skip).min(limit - bytes.len());
        bytes.extend_from_slice(&chunk[skip..skip + room]);
        if skip + room < chunk.len() {
            has_more = true;
            break;
        }
    }
    if skipped < from.offset || from.offset > 0 && digest_of(before.clone()) != from.digest {
        let why = "the answer has changed meanwhile, so its parts would not fit together; help: \
                   call again without";
        return Ok(Err(format!("{why} {NEXT}")));
    }
    if !has_more {
        return Ok(Ok(Part { bytes, next: None }));
    }
    // Not within a character, unless it is not text at all.
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        bytes.truncate(error.valid_up_to());
    }
    before.update(&bytes);
    let next = Position { offset: from.offset + bytes.len(), digest: digest_of(before) };
    Ok(Ok(Part { bytes, next: Some(next) }))
}

fn digest_of(context: Context) -> String {
    let digest = context.finish();
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A whole answer in JSON.
fn whole(operation: &Operation, status: StatusCode, text: String) -> CallToolResult {
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        let what =
            format!("HTTP {status}, but the answer is not the JSON that it says it is:\n{text}");
        return CallToolResult::failure(what);
    };
    let structured = Json::from_text(text.clone()).unwrap_or_else(|_| Json::from(&value));
    let result = CallToolResult {
        structured_content: Some(structured),
        ..CallToolResult::success(vec![ContentBlock::text(text)])
    };
    fitting(operation, result)
}

/// A part of an answer, and how to read on.
fn partial(operation: &Operation, from: &Position, part: &Part) -> CallToolResult {
    let (start, end) = (from.offset, from.offset + part.bytes.len());
    let text = String::from_utf8_lossy(&part.bytes).into_owned();
    let mut members = Map::from_iter([("part".to_owned(), json!(text))]);
    let note = match &part.next {
        None => format!("[bytes {start} to {end}, the last ones]"),
        Some(next) if operation.has_next => {
            let next = format!("{}-{}", next.offset, next.digest);
            members.insert(NEXT.to_owned(), json!(next));
            format!(
                "[bytes {start} to {end}; for the next ones, call again with {NEXT} = \"{next}\"]"
            )
        }
        Some(_) => format!("[bytes {start} to {end}; the rest was left out]"),
    };
    let content = vec![ContentBlock::text(text), ContentBlock::text(note)];
    let structured = operation.output.is_some().then(|| Json::from(&Value::Object(members)));
    CallToolResult { structured_content: structured, ..CallToolResult::success(content) }
}

/// A result, if it is what the operation promises; otherwise a failed one that has it all the same.
fn fitting(operation: &Operation, result: CallToolResult) -> CallToolResult {
    let Some(output) = &operation.output else { return result };
    let problem = match &result.structured_content {
        None => Some("it is not JSON".to_owned()),
        Some(content) => {
            let checked = output.promised.validate("answer", &content.to_value());
            checked.err().map(|it| it.to_string())
        }
    };
    let Some(problem) = problem else { return result };
    let what = "[The request has succeeded, but the answer is not what the API's document promises";
    let mut failed = CallToolResult::failure(format!("{what}: {problem}]"));
    failed.content.splice(0..0, result.content);
    failed
}

/// What a caller is told about an error of the API.
async fn failure(
    status: StatusCode,
    headers: &HeaderMap,
    kind: Option<Kind>,
    body: Body,
) -> Result<CallToolResult, WebError> {
    let mut told = format!("HTTP {status}");
    if let Some(after) = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()) {
        told += &format!(", retry after {after}");
    }
    if status.is_redirection() {
        told += ": the API redirects to another place, which is not followed; help: correct base";
    }
    if let Some(Kind::Json | Kind::Text) = kind
        && let Ok(part) = read(body, &Position::default(), ERROR).await?
        && !part.bytes.is_empty()
    {
        told += &format!("\n{}", String::from_utf8_lossy(&part.bytes));
        told += if part.next.is_some() { "\n[the rest was left out]" } else { "" };
    }
    Ok(CallToolResult::failure(told))
}
