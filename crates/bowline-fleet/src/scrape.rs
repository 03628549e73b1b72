//! `/metrics`, for Prometheus: one short answer to each connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Fleet;

/// How long one request may take, how long its head may be, and how many there are at a time.
const TIME: Duration = Duration::from_secs(5);
const HEAD: usize = 8 << 10;
const AT_A_TIME: usize = 16;
/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

impl Fleet {
    /// Answers `GET /metrics` on a listening socket with the [metrics](Self::metrics) of this node,
    /// for as long as the future is polled. Keep the socket to those that may see them.
    ///
    /// # Cancel safety
    /// Dropping the future closes the socket and drops what is being answered.
    pub async fn serve_metrics(&self, listener: TcpListener) {
        let mut answering = JoinSet::new();
        loop {
            while answering.try_join_next().is_some() {}
            if answering.len() >= AT_A_TIME {
                answering.join_next().await;
                continue;
            }
            match listener.accept().await {
                Ok((stream, _)) => {
                    let fleet = self.clone();
                    let answer = async move { fleet.answer(stream).await };
                    answering.spawn(async move { drop(tokio::time::timeout(TIME, answer).await) });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            if head.len() > HEAD || stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let is_asked = head.starts_with(b"GET /metrics ") || head.starts_with(b"GET /metrics?");
        let (status, body) = match is_asked {
            true => ("200 OK", self.metrics().to_string()),
            false => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    }
}
