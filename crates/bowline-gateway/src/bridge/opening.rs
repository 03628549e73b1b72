//! The first frame of a client, which tells its era and what it can be asked.

use std::io;

use bowline_proto::method::{Initialize, Method};
use bowline_proto::model::{ClientCapabilities, meta_key, task_extension};
use bowline_proto::revision::{Era, Revision};
use bowline_proto::wire::{Id, Message};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The first frame of a client.
pub(super) struct Opening {
    /// With its line end.
    frame: Vec<u8>,
    id: Option<Id>,
    method: String,
    params: Value,
}

impl Opening {
    /// Reads the first frame that is not blank; `None` if there is none.
    pub(super) async fn read(
        input: &mut (impl AsyncBufRead + Unpin),
        longest: usize,
    ) -> io::Result<Option<Self>> {
        let mut frame = Vec::new();
        while frame.trim_ascii().is_empty() {
            frame.clear();
            let limit = u64::try_from(longest).unwrap_or(u64::MAX);
            if input.take(limit).read_until(b'\n', &mut frame).await? == 0 {
                return Ok(None);
            }
        }
        if frame.len() >= longest {
            let what = format!("the first message exceeds {longest} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(Some(Self::of(frame)))
    }

    fn of(frame: Vec<u8>) -> Self {
        let (mut id, mut method, mut params) = (None, String::new(), Value::Null);
        if let Ok(Message::Request(request)) = Message::parse(&frame) {
            id = Some(request.id);
            method = request.method.into_owned();
            let read = request.params.raw().map(|raw| serde_json::from_str(raw.get()));
            params = read.and_then(Result::ok).unwrap_or_default();
        }
        Self { frame, id, method, params }
    }

    /// The era, if the frame is a request that tells.
    pub(super) fn era(&self) -> Option<Era> {
        if self.method == Initialize::NAME {
            return Some(Era::Legacy);
        }
        let claimed = self.params.get("_meta")?.get(meta_key::PROTOCOL_VERSION)?.as_str()?;
        let known = claimed.parse::<Revision>().ok()?;
        known.is_modern().then_some(Era::Modern)
    }

    /// What the client can do, if the frame tells. Later requests of a modern client may declare
    /// something else, which a legacy server has no way to hear.
    pub(super) fn capabilities(&self) -> Option<ClientCapabilities> {
        let declared = match self.era()? {
            Era::Legacy => self.params.get("capabilities")?,
            Era::Modern => self.params.get("_meta")?.get(meta_key::CLIENT_CAPABILITIES)?,
        };
        let mut declared: ClientCapabilities = serde_json::from_value(declared.clone()).ok()?;
        // Tasks are agreed on between neighbours: the bridge waits for those of the server.
        declared.tasks = None;
        if let Some(extensions) = &mut declared.extensions {
            extensions.remove(task_extension::ID);
        }
        declared.extensions = declared.extensions.filter(|it| !it.is_empty());
        Some(declared)
    }

    /// What the answer must carry.
    pub(super) fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// The `_meta` of the request.
    pub(super) fn meta(&self) -> Value {
        self.params.get("_meta").cloned().unwrap_or_default()
    }

    /// The frame, with its line end.
    pub(super) fn frame(&self) -> &[u8] {
        &self.frame
    }

    pub(super) fn into_frame(self) -> Vec<u8> {
        self.frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frame_tells_the_era() {
        let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, Some(Era::Legacy)),
            (modern, Some(Era::Modern)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, None),
            (r#"{"jsonrpc":"2.0","method":"initialize"}"#, None),
            ("nonsense", None),
        ];
        for (frame, era) in cases {
            assert_eq!(Opening::of(frame.into()).era(), era, "{frame}");
        }
    }

    #[tokio::test]
    async fn blank_lines_come_before_the_first_frame() {
        let mut input = &b"\n  \r\n{}\nrest"[..];
        let opening = Opening::read(&mut input, 100).await.unwrap().unwrap();
        assert_eq!((opening.frame(), input), (&b"{}\n"[..], &b"rest"[..]));
        assert!(Opening::read(&mut &b"\n\n"[..], 100).await.unwrap().is_none());
        assert!(Opening::read(&mut &b"0123456789"[..], 5).await.is_err());
    }
}
