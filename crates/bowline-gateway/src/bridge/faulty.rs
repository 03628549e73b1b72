//! A client's stream on which things go wrong on purpose.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};

use crate::fault::{Fate, Faults};

/// What is written there reaches `output` line by line, as far as the faults let it. The second
/// value is the work of passing it on; when that ends, the connection is broken.
pub fn faulty(
    faults: Arc<Faults>,
    mut output: impl AsyncWrite + Unpin,
) -> (DuplexStream, impl Future<Output = ()>) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let passing = async move {
        let mut lines = BufReader::new(theirs);
        let mut line = Vec::new();
        while let Ok(1..) = lines.read_until(b'\n', &mut line).await {
            match faults.next() {
                Fate::Passes(delay) => {
                    if let Some(delay) = delay {
                        tokio::time::sleep(delay).await;
                    }
                    let written = output.write_all(&line).await;
                    if written.is_err() || output.flush().await.is_err() {
                        return;
                    }
                }
                Fate::IsDropped => {}
                Fate::IsCut => return,
            }
            line.clear();
        }
    };
    (ours, passing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_pass_until_the_connection_breaks() {
        let faults = Arc::new(Faults::new("cut-after=2".parse().unwrap(), 0));
        let mut output = Vec::new();
        let (mut ours, passing) = faulty(faults, &mut output);
        ours.write_all(b"one\ntwo\nthree\n").await.unwrap();
        passing.await;
        assert_eq!(output, b"one\ntwo\n");
    }
}
