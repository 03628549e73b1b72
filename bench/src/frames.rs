//! The frames to send, and the expected answers.

use memchr::memmem::{self, Finder};

/// The revisions to measure: the last of each era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    Legacy,
    Modern,
}

impl Revision {
    pub(crate) const BOTH: [Self; 2] = [Self::Legacy, Self::Modern];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }

    pub(crate) fn era(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

pub(crate) const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}"#,
);

pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#,
);

/// A subscription to changes, in the modern era.
pub(crate) fn listen() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    )
}

/// Calls of a tool that echoes its argument.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) revision: Revision,
    pub(crate) tool: String,
    /// Whether each client has a name of its own.
    pub(crate) has_identities: bool,
    /// Everything after the id.
    rest: String,
    echoed: Finder<'static>,
}

impl Calls {
    pub(crate) fn new(revision: Revision, tool: &str, bytes: usize) -> Self {
        let message: String = "abcdefghijklmnop".chars().cycle().take(bytes).collect();
        let meta = match revision {
            Revision::Legacy => String::new(),
            Revision::Modern => format!(",{META}"),
        };
        let rest = format!(
            r#","method":"tools/call","params":{{"name":"{tool}","arguments":{{"message":"{message}"}}{meta}}}}}"#
        );
        let echoed = Finder::new(&format!("\"{message}\"")).into_owned();
        Self { revision, tool: tool.to_owned(), has_identities: false, rest, echoed }
    }

    /// The calls of one of several clients.
    pub(crate) fn of_client(&self, number: usize) -> Self {
        let mut calls = self.clone();
        if self.has_identities {
            let name = format!(r#""name":"bench-{number}""#);
            calls.rest = calls.rest.replace(r#""name":"bench""#, &name);
        }
        calls
    }

    /// The same calls, by a client that can use tasks, and wants one where it has to say so.
    pub(crate) fn with_tasks(mut self) -> Self {
        self.rest = match self.revision {
            Revision::Legacy => self.rest.replace(r#""arguments""#, r#""task":{},"arguments""#),
            Revision::Modern => self.rest.replace(
                r#"clientCapabilities":{}"#,
                r#"clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            ),
        };
        self
    }

    /// Appends one call.
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: u64) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.to_string().as_bytes());
        out.extend_from_slice(self.rest.as_bytes());
    }

    /// The id of the call that a frame answers, if it echoes the argument.
    pub(crate) fn answered(&self, frame: &[u8]) -> Result<u64, String> {
        let id = id_of(frame).filter(|_| self.echoed.find(frame).is_some());
        id.ok_or_else(|| {
            let start = String::from_utf8_lossy(&frame[..frame.len().min(300)]).into_owned();
            format!("not an answer to a call: {start}")
        })
    }
}

fn id_of(frame: &[u8]) -> Option<u64> {
    let start = memmem::find(frame, br#""id":"#)? + 5;
    let digits = frame[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&frame[start..start + digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_id_and_the_message() {
        let calls = Calls::new(Revision::Modern, "echo", 5);
        let mut out = Vec::new();
        calls.write(&mut out, 42);
        let request: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(request["params"]["arguments"]["message"], "abcde");
        let answer = br#"{"id":42,"result":{"content":[{"text":"abcde"}]}}"#;
        assert_eq!(calls.answered(answer), Ok(42));
        for wrong in [r#"{"id":42,"result":{}}"#, r#"{"result":"abcde"}"#, ""] {
            assert!(calls.answered(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let mut calls = calls;
        calls.has_identities = true;
        out.clear();
        calls.of_client(7).write(&mut out, 1);
        let request: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let info = &request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"];
        assert_eq!(info["name"], "bench-7");
        out.clear();
        calls.with_tasks().write(&mut out, 1);
        let request: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let can = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert!(can["extensions"]["io.modelcontextprotocol/tasks"].is_object());
        let listen: serde_json::Value = serde_json::from_str(&listen()).unwrap();
        assert_eq!(listen["method"], "subscriptions/listen");
    }
}
