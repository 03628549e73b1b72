//! A client's stream on which things go wrong on purpose.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::time::Instant;

use crate::fault::{Fate, Faults, IS_CUT, IS_DROPPED};
use crate::observe::{Channel, Framing, Observer};
use crate::session_file::Way;

/// The most bytes that are late; more are not read meanwhile.
const MOST: usize = 16 << 20;

/// A line that arrives at this time.
struct Late<'a> {
    at: Instant,
    line: Vec<u8>,
    _room: Option<SemaphorePermit<'a>>,
}

/// What is written there reaches `output` line by line, as far as the faults let it. The second
/// value is the work of passing it on. It ends when the connection is broken, or when everything
/// has arrived after the stream was closed. The observer sees every line, and which fault it met.
pub fn faulty(
    faults: Arc<Faults>,
    output: impl AsyncWrite + Unpin,
    observer: Option<Observer>,
) -> (DuplexStream, impl Future<Output = ()>) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let passing = async move {
        let room = Semaphore::new(MOST);
        // Bounded by the room.
        let (late, arriving) = mpsc::unbounded_channel();
        let mut arriving = std::pin::pin!(deliver(arriving, output));
        tokio::select! {
            () = read((&faults, observer.as_ref()), theirs, &room, late) => arriving.await,
            () = &mut arriving => {}
        }
    };
    (ours, passing)
}

/// Reads lines, until they end or a fault breaks the connection.
async fn read<'a>(
    (faults, observer): (&Faults, Option<&Observer>),
    from: DuplexStream,
    room: &'a Semaphore,
    late: mpsc::UnboundedSender<Late<'a>>,
) {
    let watch = observer.map(|observer| {
        let (way, framing) = (Some(Way::Received), Framing::Lines);
        observer.watch(Channel { way, exchange: 0, framing })
    });
    let tell = |what: &str| observer.into_iter().for_each(|observer| observer.fault(what));
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    while let Ok(1..) = lines.read_until(b'\n', &mut line).await {
        watch.iter().for_each(|watch| watch.bytes(&line));
        match faults.next() {
            Fate::Passes(delay) => {
                let at = Instant::now() + delay.unwrap_or_default();
                let length = u32::try_from(line.len().min(MOST)).unwrap_or(u32::MAX);
                let taken = room.acquire_many(length).await.ok();
                let line = std::mem::take(&mut line);
                if late.send(Late { at, line, _room: taken }).is_err() {
                    return;
                }
            }
            Fate::IsDropped => tell(IS_DROPPED),
            Fate::IsCut => return tell(IS_CUT),
        }
        line.clear();
    }
}

/// Writes each line when its time has come, until they end or nobody reads.
async fn deliver(
    mut arriving: mpsc::UnboundedReceiver<Late<'_>>,
    mut output: impl AsyncWrite + Unpin,
) {
    while let Some(Late { at, line, _room }) = arriving.recv().await {
        tokio::time::sleep_until(at).await;
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_pass_until_the_connection_breaks() {
        let faults = Arc::new(Faults::new("cut-after=2".parse().unwrap(), 0));
        let mut output = Vec::new();
        let (mut ours, passing) = faulty(faults, &mut output, None);
        ours.write_all(b"one\ntwo\nthree\n").await.unwrap();
        passing.await;
        assert_eq!(output, b"one\ntwo\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_limits_neither_how_many_lines_pass_nor_which_ones_arrive() {
        let faults = Arc::new(Faults::new("delay=200ms".parse().unwrap(), 0));
        let (mut output, begun) = (Vec::new(), Instant::now());
        let (mut ours, passing) = faulty(faults, &mut output, None);
        let sent: Vec<u8> = (0..100).flat_map(|id| format!("{id}\n").into_bytes()).collect();
        ours.write_all(&sent).await.unwrap();
        drop(ours);
        passing.await;
        assert_eq!(output, sent);
        // The clock is paused: this is not how long it took, but how long it waited.
        assert_eq!(begun.elapsed().as_millis() / 10, 20);
    }
}
