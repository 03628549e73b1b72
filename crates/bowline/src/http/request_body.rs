//! Reads the body of a request within limits of size and time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::{Body as HttpBody, Frame};
use tokio::time::Instant;

use super::options::HttpLimits;
use super::reply::{self, Reply};
use crate::clock;
use crate::server::account::{Account, Reservation, Spent, UNCOUNTED};
use crate::server::audit::Why;
use bowline_proto::error::ErrorObject;
use bowline_proto::http::Refusal;

/// The least capacity of the buffer, if that much was announced.
const AT_FIRST: usize = 16 << 10;

/// Growth factor for the buffer, relative to what has arrived so far.
const TRUST: usize = 8;

/// Reads a whole body, which is held on an account.
///
/// # Errors
/// When it is too long, pauses too long or breaks off, or when there is no memory left for it; this
/// is the answer.
pub(super) async fn read_body<B: HttpBody>(
    body: B,
    limits: &HttpLimits,
    account: Arc<Account>,
) -> Result<(Bytes, Reservation), Reply> {
    let HttpLimits { body: limit, body_idle: idle, .. } = *limits;
    let mut reserved = Reservation::new(account);
    let mut body = std::pin::pin!(body);
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(reply::refusal(&Refusal::TooLarge(limit)));
    }
    // It is not larger than the limit, which is a `usize`.
    let announced = usize::try_from(announced).unwrap_or(limit);
    let mut all: Vec<u8> = Vec::new();
    let mut end = None;
    loop {
        let frame = match next_frame(body.as_mut(), idle, &mut end).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(Broken))) => {
                return Err(reply::status(StatusCode::BAD_REQUEST).because(Why::Body));
            }
            Ok(None) => return Ok((all.into(), reserved)),
            Err(Late) => {
                return Err(reply::status(StatusCode::REQUEST_TIMEOUT).because(Why::Body));
            }
        };
        let Ok(mut data) = frame.into_data() else { continue };
        // A long body is read in turns, too.
        if !all.is_empty() && reserved.account().must_wait() {
            Box::pin(reserved.account().wait()).await;
        }
        let length = all.len() + data.remaining();
        if length > limit {
            return Err(reply::refusal(&Refusal::TooLarge(limit)));
        }
        if all.is_empty() && body.is_end_stream() {
            // The whole body in one piece is not copied. Most are short, and do not count.
            if length > UNCOUNTED {
                reserved.resize(length).map_err(refused)?;
            }
            return Ok((data.copy_to_bytes(length), reserved));
        }
        if length > all.capacity() {
            // An announced length costs the client nothing, so only what was sent is trusted.
            let trusted = (length * TRUST).max(AT_FIRST);
            let room = announced.max(2 * all.len()).min(trusted).clamp(length, limit);
            reserved.resize(room).map_err(refused)?;
            all.reserve_exact(room - all.len());
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            all.extend_from_slice(chunk);
            let read = chunk.len();
            data.advance(read);
        }
    }
}

/// The answer to a body that there is no memory for.
fn refused(spent: Spent) -> Reply {
    let message = format!("the body of the request: {spent}");
    if spent.is_too_long {
        let error = ErrorObject::invalid_request(message);
        return reply::error(StatusCode::PAYLOAD_TOO_LARGE, None, &error);
    }
    reply::busy(&message)
}

/// The body timed out.
struct Late;

/// The body broke off. The transport's error is dropped, because it may not be `Send`.
struct Broken;

fn poll_frame<B: HttpBody>(
    body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<B::Data>, Broken>>> {
    body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(|_| Broken)))
}

/// The next piece of a body. `end` is the deadline of the whole body, set on the first wait.
async fn next_frame<B: HttpBody>(
    mut body: Pin<&mut B>,
    idle: Duration,
    end: &mut Option<Instant>,
) -> Result<Option<Result<Frame<B::Data>, Broken>>, Late> {
    // Most bodies arrive with their head; then the clock is not read.
    let at_once = poll_fn(|cx| Poll::Ready(poll_frame(body.as_mut(), cx))).await;
    if let Poll::Ready(frame) = at_once {
        return Ok(frame);
    }
    let now = clock::now();
    let late = (now + idle).min(*end.get_or_insert(now + 10 * idle));
    let next = poll_fn(|cx| poll_frame(body.as_mut(), cx));
    tokio::time::timeout_at(late, next).await.map_err(|_| Late)
}
