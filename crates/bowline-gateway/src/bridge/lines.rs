//! A stream, cut into lines.

use std::io::{self, Cursor};
use std::time::Duration;

use bowline_proto::wire::ParseError;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What is read at a time: what a pipe holds.
const BUFFER: usize = 64 << 10;
/// How much of a stream is read ahead while nobody takes it.
const AHEAD: usize = 1 << 20;

/// What a stream has.
pub(super) enum Filled {
    /// Whole lines.
    Lines,
    /// A line that is too long, until it is [skipped](Lines::skip).
    TooLong,
    /// Nothing more.
    Ended,
}

/// Cuts a stream into lines. Nothing is lost if reading is given up.
pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// How much of the buffer is whole lines.
    whole: usize,
    longest: usize,
    /// Whether what comes belongs to a line that is too long, of which nothing is kept.
    is_skipping: bool,
    is_ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(stream: R, longest: usize) -> Self {
        let (buffer, whole) = (Vec::new(), 0);
        Self { stream, buffer, whole, longest, is_skipping: false, is_ended: false }
    }

    /// Waits for whole lines.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn fill(&mut self) -> io::Result<Filled> {
        while self.whole == 0 {
            if self.is_ended {
                return Ok(Filled::Ended);
            }
            if self.buffer.len() > self.longest {
                return Ok(Filled::TooLong);
            }
            self.read().await?;
        }
        Ok(Filled::Lines)
    }

    /// Gives up the line that is too long. The error knows whom to answer, if its beginning tells.
    pub(super) fn skip(&mut self) -> ParseError {
        self.is_skipping = true;
        ParseError::too_long(self.longest, &std::mem::take(&mut self.buffer))
    }

    /// Waits until the stream has ended, and then so much longer. Reads ahead to find out, up to a
    /// limit; beyond it, the stream counts as there.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn left(&mut self, patience: Duration) {
        self.gone().await;
        tokio::time::sleep(patience).await;
    }

    /// The same without the patience.
    pub(super) async fn gone(&mut self) {
        while !self.is_ended {
            if self.buffer.len() >= AHEAD {
                return std::future::pending().await;
            }
            if self.read().await.is_err() {
                self.is_ended = true;
            }
        }
    }

    /// Reads once.
    async fn read(&mut self) -> io::Result<()> {
        let before = self.buffer.len();
        self.buffer.reserve(BUFFER);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            self.is_ended = true;
            // The last line may lack its end.
            if before > self.whole {
                self.buffer.push(b'\n');
            }
        }
        if self.is_skipping {
            let end = self.buffer.iter().position(|byte| *byte == b'\n');
            self.is_skipping = end.is_none();
            self.buffer.drain(..end.map_or(self.buffer.len(), |end| end + 1));
        }
        let before = before.min(self.buffer.len());
        let end = self.buffer[before..].iter().rposition(|byte| *byte == b'\n');
        self.whole = end.map_or(self.whole, |end| before + end + 1);
        Ok(())
    }

    /// Takes the whole lines that pass.
    pub(super) fn take(&mut self, mut passes: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
        let rest = self.buffer.split_off(self.whole);
        let mut lines = std::mem::replace(&mut self.buffer, rest);
        self.whole = 0;
        let mut at = 0;
        while let Some(length) = lines[at..].iter().position(|byte| *byte == b'\n') {
            let end = at + length + 1;
            if passes(&lines[at..end]) {
                at = end;
            } else {
                lines.drain(at..end);
            }
        }
        lines
    }

    /// Takes the first whole line, with its end.
    pub(super) fn take_first(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer[..self.whole].iter().position(|byte| *byte == b'\n')? + 1;
        let rest = self.buffer.split_off(end);
        self.whole -= end;
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// Everything that was not taken, after these bytes.
    pub(super) fn into_stream(self, mut first: Vec<u8>) -> impl AsyncRead + Unpin {
        first.extend(self.buffer);
        Cursor::new(first).chain(self.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a stream, each at most ten bytes long, and the ids of those that are longer.
    async fn cut(chunks: &[&str]) -> Vec<String> {
        let mut reader = of(chunks);
        let mut found = Vec::new();
        loop {
            found.push(match reader.fill().await.unwrap() {
                Filled::Ended => return found,
                Filled::Lines => String::from_utf8(reader.take_first().unwrap()).unwrap(),
                Filled::TooLong => format!("{:?}", reader.skip().id.map(|id| id.to_string())),
            });
        }
    }

    /// A stream that yields these chunks, one at a time.
    fn of(chunks: &[&str]) -> Lines<impl AsyncRead + Unpin> {
        let mut stream: Box<dyn AsyncRead + Unpin> = Box::new(tokio::io::empty());
        for chunk in chunks.iter().rev() {
            stream = Box::new(Cursor::new(chunk.as_bytes().to_vec()).chain(stream));
        }
        Lines::new(stream, 10)
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_whatever_comes_with_it() {
        let cases: [(&[&str], &[&str]); 5] = [
            (&["a\nb\n"], &["a\n", "b\n"]),
            (&["a\nb"], &["a\n", "b\n"]),
            (&["{\"id\":1, \"a", "\":0}\nb\n", "c\n"], &["Some(\"1\")", "b\n", "c\n"]),
            (&["0123456789x", "y", "z"], &["None"]),
            (&["a\n0123456789x", "\n", "b\n"], &["a\n", "None", "b\n"]),
        ];
        for (chunks, expected) in cases {
            assert_eq!(cut(chunks).await, expected, "{chunks:?}");
        }
    }

    #[tokio::test]
    async fn nothing_is_lost_of_what_was_read_ahead() {
        let mut lines = of(&["a\nb\nc"]);
        lines.gone().await;
        assert_eq!(lines.take_first().unwrap(), b"a\n");
        let mut rest = Vec::new();
        lines.into_stream(b"0\n".to_vec()).read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"0\nb\nc\n");
    }
}
