//! What a program wrote to its standard output that is no message, and what that tells of it.

use serde_json::Value;

use super::report::Diagnosis;
use super::seen::quoted;

/// What came on standard output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// The first bytes of all that came, up to [`Output::HEAD`].
    pub(crate) head: Vec<u8>,
    /// Lines that are no messages: the first of them.
    pub(crate) strays: Vec<Stray>,
    /// How many such lines there were.
    pub(crate) stray_count: u64,
    /// How many messages there were.
    pub(crate) messages: u64,
}

/// A line that is no message.
#[derive(Debug, Clone)]
pub(crate) struct Stray {
    pub(crate) line: Vec<u8>,
    /// How many messages came before it.
    pub(crate) after: u64,
}

impl Output {
    /// How much of the output is kept.
    pub(crate) const HEAD: usize = 64 << 10;
    /// How many stray lines are kept, and how much of each.
    const STRAYS: usize = 16;
    const STRAY: usize = 4 << 10;

    pub(crate) fn take_bytes(&mut self, bytes: &[u8]) {
        let room = Self::HEAD - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    pub(crate) fn take_stray(&mut self, line: &[u8]) {
        self.stray_count += 1;
        if self.strays.len() < Self::STRAYS {
            let line = line[..line.len().min(Self::STRAY)].to_vec();
            self.strays.push(Stray { line, after: self.messages });
        }
    }

    /// What was seen of lines that are no messages, for people.
    pub(crate) fn seen(&self) -> String {
        match self.strays.first() {
            None if framing(&self.head).is_some() => {
                format!("it begins {}", quoted(&self.head[..self.head.len().min(32)]))
            }
            None => format!("{} messages and nothing else", self.messages),
            Some(stray) => {
                let place = match stray.after {
                    0 => "before the first message".to_owned(),
                    count => format!("after message {count}"),
                };
                let more = match self.stray_count {
                    1 => String::new(),
                    count => format!(" ({count} such lines)"),
                };
                format!("{place}: {}{more}", quoted(&stray.line))
            }
        }
    }
}

const STDERR: &str = "Write logs and banners to standard error: on stdio, standard output is for \
                      messages alone.";

/// Why lines are no messages; `None` when all are.
pub(crate) fn diagnose(output: &Output) -> Option<Diagnosis> {
    framing(&output.head).or_else(|| {
        let stray = output.strays.first()?;
        Some(diagnose_stray(&stray.line))
    })
}

/// Faults of framing, which make every message unreadable.
fn framing(head: &[u8]) -> Option<Diagnosis> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") || looks_like_utf16(head) {
        return Some(Diagnosis::broken(
            "the output is UTF-16, not UTF-8",
            "Set the encoding of standard output to UTF-8 without a byte order mark \
             (PowerShell: [Console]::OutputEncoding = [Text.UTF8Encoding]::new($false)).",
        ));
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        return Some(Diagnosis::broken(
            "the output begins with a byte order mark, which is no part of a message",
            "Write UTF-8 without a byte order mark (.NET: new UTF8Encoding(false)).",
        ));
    }
    let text = head.trim_ascii_start();
    if starts_with_header(text) {
        return Some(Diagnosis::broken(
            "messages are framed with Content-Length headers, as language servers do",
            "MCP on stdio is one message to a line: write each as one line of JSON and a line \
             feed, without headers.",
        ));
    }
    if let Some(whole) = first_message(head) {
        if whole.contains(&b'\n') {
            return Some(Diagnosis::broken(
                "messages are spread over several lines",
                "Write each message as one line: no indentation (JavaScript: \
                 JSON.stringify(message) without a third argument; Python: json.dumps without \
                 indent).",
            ));
        }
        if !head.contains(&b'\n') {
            return Some(Diagnosis::broken(
                "the message has no line feed at its end, so nobody knows that it is complete",
                "Write a line feed after each message.",
            ));
        }
    }
    None
}

fn starts_with_header(text: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length:";
    text.len() > NAME.len() && text[..NAME.len()].eq_ignore_ascii_case(NAME)
}

fn looks_like_utf16(head: &[u8]) -> bool {
    matches!(head, [b'{', 0, b'"', 0, ..] | [0, b'{', 0, b'"', ..])
}

/// The first JSON-RPC message in the output, wherever it begins and however it is written.
fn first_message(head: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    // Each attempt costs the rest, so there are few of them.
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

/// What one line says about whoever wrote it.
fn diagnose_stray(line: &[u8]) -> Diagnosis {
    let text = String::from_utf8_lossy(line).to_lowercase();
    let has = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    if std::str::from_utf8(line).is_err() {
        return Diagnosis::broken(
            "standard output carries bytes that are not UTF-8",
            "Encode messages as UTF-8 (Python on Windows: PYTHONUTF8=1), and write everything \
             else to standard error.",
        );
    }
    if line.starts_with(b"> ") && has(&["@", "node ", "start"]) {
        return Diagnosis::broken(
            "`npm run` writes its banner to standard output",
            "Start the program itself (node server.js), or use `npm run --silent`.",
        );
    }
    if has(&[
        "listening on",
        "running on http",
        "running at http",
        "server started on",
        "localhost:",
    ]) {
        return Diagnosis::broken(
            "the program tells on standard output where it listens, like a web server",
            "If it serves HTTP, connect to its URL instead of starting it as a command; otherwise \
             write such lines to standard error.",
        );
    }
    if has(&["using launch settings", "building...", "restore complete", "build succeeded"]) {
        return Diagnosis::broken(
            "`dotnet run` writes about the build to standard output",
            "Build first and start the built program, or `dotnet run --no-build -v q`.",
        );
    }
    if line.starts_with(b"\x1b") {
        return Diagnosis::broken("a coloured log goes to standard output", STDERR);
    }
    if text.starts_with("<!doctype") || text.starts_with("<html") {
        return Diagnosis::broken("standard output carries a web page", STDERR);
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(members)) if members.contains_key("jsonrpc") => Diagnosis::broken(
            "a line looks like a message and breaks JSON-RPC 2.0",
            "A message has \"jsonrpc\": \"2.0\" and either a method, or an id with a result or \
             an error.",
        ),
        Ok(Value::Object(_)) => {
            Diagnosis::broken("a log written as JSON goes to standard output", STDERR)
        }
        Ok(Value::Array(_)) => Diagnosis::broken(
            "the server writes a JSON array, a batch, which only revision 2025-03-26 knows",
            "Write each message on a line of its own.",
        ),
        _ => Diagnosis::broken("a line on standard output is no message", STDERR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output as the process reader would collect it.
    fn output(bytes: &[u8]) -> Output {
        let mut output = Output::default();
        output.take_bytes(bytes);
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
    fn what_is_written_tells_who_wrote_it() {
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        for (bytes, cause) in [
            (format!("Content-Length: 36\r\n\r\n{message}"), "Content-Length"),
            (format!("\u{feff}{message}\n"), "byte order mark"),
            (
                "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n".to_owned(),
                "spread over",
            ),
            (message.to_owned(), "no line feed"),
            (format!("{message}{message}"), "no line feed"),
            (format!("> server@1.0.0 start\n{message}\n"), "npm run"),
            (format!("Listening on port 3000\n{message}\n"), "like a web server"),
            (format!("\u{1b}[32mINFO\u{1b}[0m ready\n{message}\n"), "coloured log"),
            (format!("{{\"level\":30,\"msg\":\"hi\"}}\n{message}\n"), "log written as JSON"),
            (format!("[{message}]\n"), "batch"),
            ("{\"jsonrpc\":\"2.0\"}\n".to_owned(), "breaks JSON-RPC"),
            (format!("Hello!\n{message}\n"), "is no message"),
            ("<!DOCTYPE html>\n".to_owned(), "web page"),
            ("Using launch settings from x\n".to_owned(), "dotnet run"),
        ] {
            let found = diagnose(&output(bytes.as_bytes())).unwrap_or_else(|| panic!("{bytes}"));
            assert!(found.cause.contains(cause), "{bytes}: {found:?}");
        }
        assert_eq!(diagnose(&output(format!("{message}\n\n{message}\r\n").as_bytes())), None);
        let found = diagnose(&output(b"caf\xe9\n")).unwrap();
        assert!(found.cause.contains("not UTF-8"), "{found:?}");
        let found = diagnose(&output(b"{\0\"\0j\0")).unwrap();
        assert!(found.cause.contains("UTF-16"), "{found:?}");
    }

    #[test]
    fn the_line_is_shown_with_its_place() {
        let output = output(b"hello\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nagain\n");
        assert_eq!(output.seen(), "before the first message: \"hello\" (2 such lines)");
    }
}
