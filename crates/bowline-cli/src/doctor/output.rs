//! Standard output of a program: what is not a message, and why the program wrote it.

use bowline_check::Strays;
use serde_json::Value;

use super::report::{Diagnosis, broken};
use super::seen::quoted;
use super::stderr::{Sign, sign};

/// What a program wrote to standard output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// The first bytes.
    pub(crate) head: Vec<u8>,
    pub(crate) strays: Strays,
}

impl Output {
    pub(crate) fn seen(&self) -> String {
        let Some((line, after)) = &self.strays.first else {
            return match framing(&self.head) {
                Some(_) => format!("it begins {}", quoted(&self.head[..self.head.len().min(32)])),
                None => format!("{} messages and nothing else", self.strays.messages),
            };
        };
        let position = match after {
            0 => "before the first message".to_owned(),
            count => format!("after message {count}"),
        };
        let more = match self.strays.count {
            1 => String::new(),
            count => format!(" ({count} such lines)"),
        };
        format!("{position}: {}{more}", quoted(line))
    }

    /// Why it is not all messages; `None` if it is.
    pub(crate) fn diagnose(&self) -> Option<Diagnosis> {
        framing(&self.head)
            .or_else(|| self.strays.first.as_ref().map(|(line, _)| diagnose_stray(line)))
    }
}

const STDERR: &str = "Write logs and banners to standard error: on stdio, standard output is for \
                      messages only.";

/// Framing errors, which make every message unreadable.
fn framing(head: &[u8]) -> Option<Diagnosis> {
    const HEADER: &[u8] = b"content-length:";
    let start = head.trim_ascii_start();
    let is_framed = start.get(..HEADER.len()).is_some_and(|it| it.eq_ignore_ascii_case(HEADER));
    Some(match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'{', 0, b'"', 0, ..] | [0, b'{', 0, b'"', ..] => {
            broken("the output is UTF-16, not UTF-8").fix(
                "Set the encoding of standard output to UTF-8 without a byte order mark \
                 (PowerShell: [Console]::OutputEncoding = [Text.UTF8Encoding]::new($false)).",
            )
        }
        [0xef, 0xbb, 0xbf, ..] => {
            broken("the output begins with a byte order mark, which is not part of a message")
                .fix("Write UTF-8 without a byte order mark (.NET: new UTF8Encoding(false)).")
        }
        _ if is_framed => {
            broken("messages have Content-Length headers, as in the language server protocol")
                .fix("Write each message as one line of JSON, without headers.")
        }
        _ if first_message(head)?.contains(&b'\n') => {
            broken("messages are spread over several lines").fix(
                "Write each message on one line, without indentation (JavaScript: \
                 JSON.stringify(message) without a third argument; Python: json.dumps without \
                 indent).",
            )
        }
        _ if head.contains(&b'\n') => return None,
        _ => broken("the message does not end with a line feed, so it never seems complete")
            .fix("Write a line feed after each message."),
    })
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

/// Lines that reveal the program that wrote them.
const SIGNS: &[Sign] = &[
    sign(
        &["listening on", "running on http", "running at http", "server started on", "localhost:"],
        "the program announces on standard output where it listens, like a web server",
    )
    .fix(
        "If it serves HTTP, connect to its URL instead of starting it as a command; otherwise \
         write such lines to standard error.",
    ),
    sign(
        &["using launch settings", "building...", "restore complete", "build succeeded"],
        "`dotnet run` writes build messages to standard output",
    )
    .fix("Build first and start the built program, or use `dotnet run --no-build -v q`."),
];

/// What a line reveals about the code that wrote it.
fn diagnose_stray(line: &[u8]) -> Diagnosis {
    let Ok(text) = std::str::from_utf8(line) else {
        return broken("standard output contains bytes that are not UTF-8").fix(
            "Encode messages as UTF-8 (Python on Windows: PYTHONUTF8=1), and write everything \
             else to standard error.",
        );
    };
    let text = text.to_lowercase();
    if text.starts_with("> ") && ["@", "node ", "start"].iter().any(|word| text.contains(word)) {
        return broken("`npm run` writes its banner to standard output")
            .fix("Start the program itself (node server.js), or use `npm run --silent`.");
    }
    if let Some(sign) = SIGNS.iter().find(|sign| sign.any.iter().any(|it| text.contains(it))) {
        return broken(sign.cause).fix(sign.fix);
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(members)) if members.contains_key("jsonrpc") => {
            broken("a line looks like a message but violates JSON-RPC 2.0").fix(
                "A message has \"jsonrpc\": \"2.0\" and either a method, or an id with a result \
                 or an error.",
            )
        }
        Ok(Value::Object(_)) => broken("a JSON log goes to standard output").fix(STDERR),
        Ok(Value::Array(_)) => {
            broken("the server writes a batch, which only revision 2025-03-26 allows")
                .fix("Write each message on a line of its own.")
        }
        _ if text.starts_with('\x1b') => {
            broken("a coloured log goes to standard output").fix(STDERR)
        }
        _ if text.starts_with("<!doctype") || text.starts_with("<html") => {
            broken("a web page goes to standard output").fix(STDERR)
        }
        _ => broken("a line on standard output is not a message").fix(STDERR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output as a conversation collects it.
    fn output(bytes: &[u8]) -> Output {
        let mut output = Output { head: bytes.to_vec(), ..Output::default() };
        let lines = bytes.split(|byte| *byte == b'\n').filter(|it| !it.trim_ascii().is_empty());
        lines.for_each(|line| output.strays.take(line));
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
