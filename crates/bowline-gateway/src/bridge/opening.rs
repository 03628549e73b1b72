//! The first frame of a client, which tells its era and what it can be asked.

use std::io;

use bowline_proto::method::{Initialize, Method};
use bowline_proto::model::{ClientCapabilities, meta_key, task_extension};
use bowline_proto::revision::{Era, Revision};
use bowline_proto::wire::{Id, Message};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use super::lines::{Filled, Lines};
use super::splice::{Ledger, send};

/// The first frame of a client.
pub(super) struct Opening {
    /// With its line end.
    frame: Vec<u8>,
    id: Option<Id>,
    method: String,
    params: Value,
}

impl Opening {
    /// Reads the first frame that is not blank; `None` if there is none. Lines that are too long
    /// are answered, as later ones are.
    pub(super) async fn read(
        client: &mut Lines<impl AsyncRead + Unpin>,
        output: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<Option<Self>> {
        loop {
            match client.fill().await? {
                Filled::Lines => {}
                Filled::TooLong => {
                    let mut ledger = Ledger::default();
                    ledger.refuse(&client.skip());
                    send(output, &ledger.take_answers()).await?;
                }
                Filled::Ended => return Ok(None),
            }
            let frame = client.take_first().filter(|frame| !frame.trim_ascii().is_empty());
            if let Some(frame) = frame {
                return Ok(Some(Self::of(frame)));
            }
        }
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
        let mut client = Lines::new(&b"\n  \r\n{}\nrest"[..], 100);
        let opening = Opening::read(&mut client, &mut Vec::new()).await.unwrap().unwrap();
        assert_eq!(opening.frame(), b"{}\n");
        assert_eq!(client.take_first(), None);
        assert!(matches!(client.fill().await, Ok(Filled::Lines)));
        assert_eq!(client.take_first().unwrap(), b"rest\n");
        let mut blank = Lines::new(&b"\n\n"[..], 100);
        assert!(Opening::read(&mut blank, &mut Vec::new()).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_first_frame_that_is_too_long_is_answered() {
        let frame = br#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#;
        let mut client = Lines::new(&frame[..], 40);
        let mut output = Vec::new();
        assert!(Opening::read(&mut client, &mut output).await.unwrap().is_none());
        let answer: Value = serde_json::from_slice(&output).unwrap();
        assert_eq!(answer["id"], 7);
        let what = answer["error"]["message"].as_str().unwrap();
        assert!(what.contains("longer than 40 bytes") && what.contains("--max-size"), "{what}");
    }
}
