//! Standard output of a program: what is not a message, and why the program wrote it.

use serde_json::Value;

use super::report::Diagnosis;
use super::seen::quoted;

/// What a program wrote to standard output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// The first bytes.
    pub(crate) head: Vec<u8>,
    /// The first lines that are not messages.
    pub(crate) strays: Vec<Stray>,
    pub(crate) stray_count: u64,
    pub(crate) messages: u64,
}

/// A line that is not a message.
#[derive(Debug, Clone)]
pub(crate) struct Stray {
    pub(crate) line: Vec<u8>,
    /// How many messages came before it.
    pub(crate) after: u64,
}

impl Output {
    /// How many stray lines are kept, and how much of each.
    const STRAYS: usize = 16;
    const STRAY: usize = 4 << 10;

    pub(crate) fn take_stray(&mut self, line: &[u8]) {
        self.stray_count += 1;
        if self.strays.len() < Self::STRAYS {
            let line = line[..line.len().min(Self::STRAY)].to_vec();
            self.strays.push(Stray { line, after: self.messages });
        }
    }

    pub(crate) fn seen(&self) -> String {
        let Some(stray) = self.strays.first() else {
            return match framing(&self.head) {
                Some(_) => format!("it begins {}", quoted(&self.head[..self.head.len().min(32)])),
                None => format!("{} messages and nothing else", self.messages),
            };
        };
        let position = match stray.after {
            0 => "before the first message".to_owned(),
            count => format!("after message {count}"),
        };
        let more = match self.stray_count {
            1 => String::new(),
            count => format!(" ({count} such lines)"),
        };
        format!("{position}: {}{more}", quoted(&stray.line))
    }

    /// Why it is not all messages; `None` if it is.
    pub(crate) fn diagnose(&self) -> Option<Diagnosis> {
        let (cause, fix) = framing(&self.head)
            .or_else(|| self.strays.first().map(|stray| diagnose_stray(&stray.line)))?;
        Some(Diagnosis::broken(cause, fix))
    }
}

/// A cause and a fix.
type Finding = (&'static str, &'static str);

const STDERR: &str = "Write logs and banners to standard error: on stdio, standard output is for \
                      messages only.";

/// Framing errors, which make every message unreadable.
fn framing(head: &[u8]) -> Option<Finding> {
    if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'{', 0, b'"', 0, ..] | [0, b'{', 0, b'"', ..] =
        head
    {
        return Some((
            "the output is UTF-16, not UTF-8",
            "Set the encoding of standard output to UTF-8 without a byte order mark \
             (PowerShell: [Console]::OutputEncoding = [Text.UTF8Encoding]::new($false)).",
        ));
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        return Some((
            "the output begins with a byte order mark, which is not part of a message",
            "Write UTF-8 without a byte order mark (.NET: new UTF8Encoding(false)).",
        ));
    }
    const HEADER: &[u8] = b"content-length:";
    let start = head.trim_ascii_start();
    if start.get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER)) {
        return Some((
            "messages are framed with Content-Length headers, as in the language server protocol",
            "Write each message as one line of JSON followed by a line feed, without headers.",
        ));
    }
    let message = first_message(head)?;
    if message.contains(&b'\n') {
        return Some((
            "messages are spread over several lines",
            "Write each message on one line, without indentation (JavaScript: \
             JSON.stringify(message) without a third argument; Python: json.dumps without indent).",
        ));
    }
    (!head.contains(&b'\n')).then_some((
        "the message does not end with a line feed, so readers cannot tell that it is complete",
        "Write a line feed after each message.",
    ))
}

/// The first JSON-RPC message in the output, wherever it begins and however it is formatted.
fn first_message(head: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    // Each attempt may scan the rest, so there are only a few.
    for _ in 0..16 {
        at += head[at..].iter().position(|byte| *byte == b'{')?;
        let mut values = serde_json::Deserializer::from_slice(&head[at..]).into_iter::<Value>();
        if let Some(Ok(value)) = values.next()
            && value.get("jsonrpc").is_some()
        {
            return Some(&head[at..at + values.byte_offset()]);
        }
        at += 1;
    }
    None
}

/// What a line reveals about the code that wrote it.
fn diagnose_stray(line: &[u8]) -> Finding {
    let text = String::from_utf8_lossy(line).to_lowercase();
    let has = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    match serde_json::from_slice::<Value>(line) {
        _ if std::str::from_utf8(line).is_err() => (
            "standard output contains bytes that are not UTF-8",
            "Encode messages as UTF-8 (Python on Windows: PYTHONUTF8=1), and write everything \
             else to standard error.",
        ),
        _ if line.starts_with(b"> ") && has(&["@", "node ", "start"]) => (
            "`npm run` writes its banner to standard output",
            "Start the program itself (node server.js), or use `npm run --silent`.",
        ),
        _ if has(&[
            "listening on",
            "running on http",
            "running at http",
            "server started on",
            "localhost:",
        ]) =>
        {
            (
                "the program announces on standard output where it listens, like a web server",
                "If it serves HTTP, connect to its URL instead of starting it as a command; \
                 otherwise write such lines to standard error.",
            )
        }
        _ if has(&[
            "using launch settings",
            "building...",
            "restore complete",
            "build succeeded",
        ]) =>
        {
            (
                "`dotnet run` writes build messages to standard output",
                "Build first and start the built program, or use `dotnet run --no-build -v q`.",
            )
        }
        _ if line.starts_with(b"\x1b") => ("a coloured log goes to standard output", STDERR),
        _ if text.starts_with("<!doctype") || text.starts_with("<html") => {
            ("a web page goes to standard output", STDERR)
        }
        Ok(Value::Object(members)) if members.contains_key("jsonrpc") => (
            "a line looks like a message but violates JSON-RPC 2.0",
            "A message has \"jsonrpc\": \"2.0\" and either a method, or an id with a result or \
             an error.",
        ),
        Ok(Value::Object(_)) => ("a JSON log goes to standard output", STDERR),
        Ok(Value::Array(_)) => (
            "the server writes a JSON array, a batch, which only revision 2025-03-26 allows",
            "Write each message on a line of its own.",
        ),
        _ => ("a line on standard output is not a message", STDERR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output as a conversation collects it.
    fn output(bytes: &[u8]) -> Output {
        let mut output = Output { head: bytes.to_vec(), ..Output::default() };
        for line in bytes.split(|byte| *byte == b'\n') {
            match bowline::proto::wire::Message::parse(line) {
                _ if line.trim_ascii().is_empty() => {}
                Ok(_) => output.messages += 1,
                Err(_) => output.take_stray(line),
            }
        }
        output
    }

    #[test]
    fn each_kind_of_output_has_its_cause() {
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        for (bytes, cause) in [
            (format!("Content-Length: 36\r\n\r\n{message}"), "Content-Length"),
            (format!("\u{feff}{message}\n"), "byte order mark"),
            (
                "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n".to_owned(),
                "spread over",
            ),
            (message.to_owned(), "not end with a line feed"),
            (format!("{message}{message}"), "not end with a line feed"),
            (format!("> server@1.0.0 start\n{message}\n"), "npm run"),
            (format!("Listening on port 3000\n{message}\n"), "like a web server"),
            (format!("\u{1b}[32mINFO\u{1b}[0m ready\n{message}\n"), "coloured log"),
            (format!("{{\"level\":30,\"msg\":\"hi\"}}\n{message}\n"), "a JSON log"),
            (format!("[{message}]\n"), "batch"),
            ("{\"jsonrpc\":\"2.0\"}\n".to_owned(), "violates JSON-RPC"),
            (format!("Hello!\n{message}\n"), "is not a message"),
            ("<!DOCTYPE html>\n".to_owned(), "web page"),
            ("Using launch settings from x\n".to_owned(), "dotnet run"),
        ] {
            let found = output(bytes.as_bytes()).diagnose().unwrap_or_else(|| panic!("{bytes}"));
            assert!(found.cause.contains(cause), "{bytes}: {found:?}");
        }
        assert_eq!(output(format!("{message}\n\n{message}\r\n").as_bytes()).diagnose(), None);
        let found = output(b"caf\xe9\n").diagnose().unwrap();
        assert!(found.cause.contains("not UTF-8"), "{found:?}");
        let found = output(b"{\0\"\0j\0").diagnose().unwrap();
        assert!(found.cause.contains("UTF-16"), "{found:?}");
    }

    #[test]
    fn stray_lines_are_shown_with_their_position() {
        let output = output(b"hello\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nagain\n");
        assert_eq!(output.seen(), "before the first message: \"hello\" (2 such lines)");
    }
}
