//! Bugs that were fixed, each named by its symptom.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bowline::{Server, Tool};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that ends right after its only line, and whose output arrives only if a flush is
/// awaited, like standard output when it is a file.
struct SlowToFlush {
    input: &'static [u8],
    pending: Vec<u8>,
    asked_to_flush: u32,
    output: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for SlowToFlush {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buffer.put_slice(std::mem::take(&mut self.input));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SlowToFlush {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pending.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.asked_to_flush += 1;
        if self.asked_to_flush < 3 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let written = std::mem::take(&mut self.pending);
        self.output.lock().expect("nobody panics with it").extend(written);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

#[tokio::test]
async fn answers_were_lost_when_the_input_ended_during_a_flush() {
    let output = Arc::new(Mutex::new(Vec::new()));
    let stream = SlowToFlush {
        input: b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
        pending: Vec::new(),
        asked_to_flush: 0,
        output: Arc::clone(&output),
    };
    let server = Server::new("flush", "1.0.0").with(Tool::new("echo", || async { "echo" }));
    server.serve(stream).await.unwrap();
    let output = String::from_utf8(output.lock().unwrap().clone()).unwrap();
    assert!(output.contains(r#""id":1"#), "{output:?}");
}
