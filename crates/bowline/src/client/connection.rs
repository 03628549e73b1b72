//! One server on a byte stream: one task reads, writes and enforces deadlines.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use super::error::CloseReason;
use super::notification::start_of;
use super::shared::{Link, Shared, lock};
use super::wire::tell_lines;
use crate::clock;
use crate::outbox::Outbox;
use crate::stream::{Input, Output};

/// A byte stream to read from.
pub(super) type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// A byte stream to write to.
pub(super) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Reads and writes until the stream ends, and returns the reason.
///
/// Once the outbox is closed and empty, the writer is dropped, which the server sees as the end of
/// input. Whatever the server still sends is handled.
pub(super) async fn drive(
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    reader: Reader,
    writer: Writer,
) -> CloseReason {
    let mut input = Input::new(reader, shared.profile.limits.message_length);
    let mut output = Some(Output::new(writer));
    let link = Link::Stream(Arc::clone(&outbox));
    let mut alarm = std::pin::pin!(Alarm::new());
    // When to stop reading from a server that no longer reads.
    let mut last_words = None;
    loop {
        take_in(&shared, &mut input, &link);
        let hook = shared.profile.on_wire.as_ref();
        let has_work = output
            .as_mut()
            .is_some_and(|output| output.refill_shown(&outbox, |lines| tell_lines(hook, lines)));
        if !has_work && outbox.is_closed() {
            end(&mut output).await;
        }
        let deadline = lock(&shared.calls).next_deadline();
        tokio::select! {
            biased;
            written = write(&mut output), if has_work => {
                if let Err(error) = written {
                    // What the server sent before it stopped reading may explain why.
                    tracing::debug!(%error, "the server no longer reads");
                    outbox.close();
                    outbox.take(&mut Vec::new());
                    output = None;
                    last_words = Some(clock::now() + LAST_WORDS);
                }
            }
            () = outbox.filled(), if !has_work && output.is_some() => {}
            () = alarm.as_mut().ring(deadline.map(Instant::from_std)) => shared.expire(&outbox),
            () = until(last_words) => break CloseReason::Failed("the server no longer reads".to_owned()),
            read = input.read(), if input.is_empty() => match read {
                Ok(()) if input.is_open() => {}
                Ok(()) => break take_in_last(&shared, &mut input, &link),
                Err(error) => break CloseReason::Failed(format!("reading failed: {error}")),
            },
        }
    }
}

/// Signals the end of input to the server: a pipe by being dropped, a socket or an in-memory stream
/// by being shut down.
async fn end(output: &mut Option<Output<Writer>>) {
    const PATIENCE: Duration = Duration::from_secs(1);
    if let Some(mut output) = output.take() {
        let _ = tokio::time::timeout(PATIENCE, output.shutdown()).await;
    }
}

/// How long to keep reading from a server that no longer reads.
const LAST_WORDS: Duration = Duration::from_secs(1);

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

async fn write(output: &mut Option<Output<Writer>>) -> std::io::Result<()> {
    match output {
        Some(output) => output.write().await,
        None => Ok(()),
    }
}

fn take_in(shared: &Arc<Shared>, input: &mut Input<Reader>, link: &Link) {
    while let Some(frame) = input.next_frame() {
        match frame {
            Ok(frame) => drop(shared.handle_frame(frame, link, None)),
            Err(error) => {
                tracing::warn!(start = start_of(&error.prefix), "a message was too long");
                shared.handle_too_long(&error);
            }
        }
    }
}

/// The stream has ended; its last line may lack a line break.
fn take_in_last(shared: &Arc<Shared>, input: &mut Input<Reader>, link: &Link) -> CloseReason {
    if let Some(frame) = input.last_frame() {
        let _ = shared.handle_frame(&frame, link, None);
    }
    CloseReason::EndOfStream
}

/// One timer for all calls, reset only when the earliest deadline changes.
struct Alarm {
    set_to: Option<Instant>,
    timer: std::pin::Pin<Box<tokio::time::Sleep>>,
}

impl Alarm {
    fn new() -> Self {
        Self { set_to: None, timer: Box::pin(sleep_until(clock::now())) }
    }

    async fn ring(mut self: std::pin::Pin<&mut Self>, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return std::future::pending().await };
        if self.set_to != Some(deadline) {
            self.set_to = Some(deadline);
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().await;
        self.set_to = None;
    }
}
