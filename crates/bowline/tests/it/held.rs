//! A stream that buffers until it is flushed, like encrypted streams.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bowline::{Server, Tool};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadBuf,
};
use tokio::time::Sleep;

use crate::raw::{call, modern, text};

/// Passes bytes on when a flush is complete, which takes a while.
struct Held {
    stream: DuplexStream,
    bytes: Vec<u8>,
    flushing: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Held {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let while_it_takes = || Box::pin(tokio::time::sleep(Duration::from_millis(10)));
        if self.flushing.get_or_insert_with(while_it_takes).as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.flushing = None;
        let this = self.get_mut();
        while !this.bytes.is_empty() {
            match Pin::new(&mut this.stream).poll_write(cx, &this.bytes) {
                Poll::Ready(written) => drop(this.bytes.drain(..written?)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Regression: any other event during a flush made the server forget it, and the answer stayed in
/// the buffer until the next one.
#[tokio::test(start_paused = true)]
async fn an_answer_is_flushed_whatever_else_happens() {
    let (mut ours, stream) = tokio::io::duplex(64 << 10);
    let server = Server::new("held", "1.0.0").with(Tool::new("tool", || async { "called" }));
    let serving = tokio::spawn(server.serve(Held { stream, bytes: Vec::new(), flushing: None }));
    for id in 0..10 {
        let request = modern(call(id, "tool", json!({})));
        // The blank line is read while the answer is being flushed.
        ours.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        ours.write_all(b"\n").await.unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(&mut ours);
        let read = tokio::time::timeout(Duration::from_secs(1), reader.read_line(&mut line));
        assert!(read.await.is_ok(), "the answer to {id} is held back");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["id"], text(&answer)), (&json!(id), "called"));
    }
    ours.shutdown().await.unwrap();
    serving.await.unwrap().unwrap();
}
