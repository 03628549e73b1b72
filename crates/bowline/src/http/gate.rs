//! Reading a request: its body within bounds, its message, its claim to be modern.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::Body as HttpBody;

use super::reply::{self, Reply};
use crate::clock;
use bowline_proto::http::Refusal;

/// How much room is made for a body before any of it has come.
const AT_FIRST: usize = 16 << 10;

/// Reads a whole body.
///
/// # Errors
/// When it is too long, pauses too long, or breaks off; this is the answer.
pub(super) async fn read_body<B>(body: B, limit: usize, idle: Duration) -> Result<Bytes, Reply>
where
    B: HttpBody,
{
    let mut body = std::pin::pin!(body);
    let hint = body.size_hint();
    if hint.lower() > limit as u64 {
        return Err(reply::refusal(&Refusal::TooLarge(limit)));
    }
    // What a client announces costs it nothing; what it sends does.
    let expected = usize::try_from(hint.lower()).unwrap_or(AT_FIRST).min(AT_FIRST);
    let mut all: Vec<u8> = Vec::with_capacity(expected);
    let end = clock::now() + 10 * idle;
    loop {
        let next = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx));
        let late = end.min(clock::now() + idle);
        let frame = match tokio::time::timeout_at(late, next).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return Err(reply::status(StatusCode::BAD_REQUEST)),
            Ok(None) => return Ok(all.into()),
            Err(_) => return Err(reply::status(StatusCode::REQUEST_TIMEOUT)),
        };
        let Ok(mut data) = frame.into_data() else { continue };
        while data.has_remaining() {
            let chunk = data.chunk();
            if all.len() + chunk.len() > limit {
                return Err(reply::refusal(&Refusal::TooLarge(limit)));
            }
            all.extend_from_slice(chunk);
            let read = chunk.len();
            data.advance(read);
        }
    }
}
