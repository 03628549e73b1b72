//! The syntax of a line. Whether the tools and methods in it exist is decided later.

use std::collections::BTreeMap;

use bowline::Json;
use serde_json::Value;
use serde_json::value::RawValue;

use super::words::WORDS;
use crate::arguments::{ArgumentArgs, Given};
use crate::loose::{self, Typed};

/// The longest statement, in bytes: 16 MiB.
const LONGEST: usize = 16 << 20;

/// A line of a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    pub(crate) action: Action,
    /// The line ended in `&`: the prompt comes back at once.
    pub(crate) in_background: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// An empty line, or a comment.
    Nothing,
    /// JSON-RPC messages, to be sent as they are.
    Messages(Vec<Message>),
    /// `tool(key: value)`.
    Call { tool: String, members: Vec<(String, Typed)> },
    /// A command of the session, and what follows it. `tool {json}` stands for `call tool {json}`,
    /// `method/name {json}` for `raw method/name {json}`.
    Command { name: String, rest: String },
    /// A word that may be a tool, and what follows it.
    Word { name: String, rest: String },
}

/// A JSON-RPC message as the user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Request { id: Json, method: String, params: Json },
    Notification { method: String, params: Option<Json> },
    Response { id: Value, answer: Result<Json, Json> },
}

/// The lines of a statement that is not complete yet.
#[derive(Debug, Default)]
pub(crate) struct Lines(String);

impl Lines {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a line. Returns the statement if it is complete, too long, or ended by an empty line.
    pub(crate) fn add(&mut self, line: &str) -> Option<String> {
        if !self.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(line);
        let is_over = !is_open(&self.0) || line.trim().is_empty() || self.0.len() > LONGEST;
        is_over.then(|| self.take())
    }

    /// Takes the lines, complete or not.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

/// Parses a line.
pub(crate) fn parse(line: &str) -> Result<Statement, String> {
    let mut text = line.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(Statement { action: Action::Nothing, in_background: false });
    }
    let before = text.strip_suffix('&');
    let before = before.filter(|it| it.is_empty() || it.ends_with([' ', ')', '}', ']']));
    let in_background = before.is_some();
    text = before.map_or(text, str::trim_end);
    let is_json = text.starts_with(['{', '[']);
    let action = if is_json { Action::Messages(messages(text)?) } else { words(text)? };
    Ok(Statement { action, in_background })
}

fn words(text: &str) -> Result<Action, String> {
    let end = text.find(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '{'));
    let (word, after) = text.split_at(end.unwrap_or(text.len()));
    if word.is_empty() {
        return Err(format!("expected a word or JSON at the start, got {:?}", &text[..1]));
    }
    let (name, rest) = (word.to_owned(), after.trim().to_owned());
    let command = |name: &str| Action::Command { name: name.to_owned(), rest: text.to_owned() };
    if after.starts_with('(') {
        let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let inner = inner.ok_or("missing closing parenthesis")?.trim();
        if inner.starts_with('{') {
            return Ok(Action::Command {
                name: "call".to_owned(),
                rest: format!("{name} {inner}"),
            });
        }
        let members = loose::parse_members(inner).map_err(|error| format!("arguments: {error}"))?;
        return Ok(Action::Call { tool: name, members });
    }
    // After a word that takes none itself, JSON is the arguments of a tool with that name.
    let has_json = rest.starts_with('{');
    let takes_json = matches!(word, "call" | "raw" | "notify" | "prompt");
    if WORDS.iter().any(|known| known.0 == word) && (!has_json || takes_json) {
        return Ok(Action::Command { name, rest });
    }
    if word.contains('/') && (rest.is_empty() || has_json) {
        return Ok(command("raw"));
    }
    Ok(if has_json { command("call") } else { Action::Word { name, rest } })
}

/// The first word, and what follows it. JSON need not be separated by a blank.
pub(crate) fn first_word(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| letter.is_whitespace() || letter == '{');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word, rest.trim())
}

/// What follows the name of a tool: JSON, `key=value` words, or nothing.
pub(crate) fn given(rest: &str) -> Result<Given, String> {
    if rest.starts_with('{') {
        return object(rest).map(Given::from).map_err(|problem| format!("arguments: {problem}"));
    }
    let words = split_words(rest)?;
    if let Some(word) = words.iter().find(|word| word.ends_with("=-")) {
        return Err(format!("{word}: the session reads standard input; it cannot be an argument"));
    }
    ArgumentArgs::default().read(&words).map_err(|failure| failure.what)
}

/// The parameters of a method.
pub(crate) fn params(method: &str, rest: &str) -> Result<Json, String> {
    if rest.is_empty() {
        return Ok(Json::empty_object());
    }
    object(rest).map_err(|problem| format!("{method}: params: {problem}"))
}

/// An object: strict JSON, to the letter, or what is close to it.
fn object(text: &str) -> Result<Json, String> {
    let json = Json::from_text(text.to_owned())
        .or_else(|_| loose::parse_value(text).map(|value| Json::from(&value)))?;
    if json.is_object() { Ok(json) } else { Err("expected an object: {…}".to_owned()) }
}

/// Words as in a shell: separated by blanks, kept together by quotes.
pub(crate) fn split_words(text: &str) -> Result<Vec<String>, String> {
    shlex::split(text).ok_or_else(|| "unclosed quote, or backslash at the end".to_owned())
}

/// Whether a bracket or a quote of JSON or of a call is still open.
fn is_open(text: &str) -> bool {
    let Some(start) = start_of_brackets(text) else { return false };
    let mut depth = 0_usize;
    let mut quote = None;
    let mut letters = text[start..].chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some('"'),
            // An apostrophe inside a word opens nothing.
            (None, '\'') if opens(&text[start..], letters.as_str()) => quote = Some('\''),
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}' | ']' | ')') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return false;
                }
            }
            _ => {}
        }
    }
    depth > 0
}

/// Whether the quote just before `rest` stands where a value begins.
fn opens(text: &str, rest: &str) -> bool {
    let before = &text[..text.len() - rest.len() - 1];
    before.trim_end().ends_with(['(', '[', '{', ',', ':', '='])
}

/// Where brackets begin to count: at JSON, at the parenthesis of `tool(`, or at the JSON after
/// words. Nowhere in `call tool text=(`.
fn start_of_brackets(text: &str) -> Option<usize> {
    let trimmed = text.trim_start();
    let start = text.len() - trimmed.len();
    let found = trimmed.find(['{', '[', '(', '=', '"', '\''])?;
    let before = &trimmed[..found];
    match trimmed.as_bytes()[found] {
        b'(' if !before.is_empty() && !before.contains(char::is_whitespace) => Some(start + found),
        b'{' if before.is_empty() || before.ends_with(char::is_whitespace) => Some(start + found),
        b'[' if before.is_empty() => Some(start + found),
        _ => None,
    }
}

/// A JSON-RPC response, if the line is one: its id, and its result or error.
pub(crate) fn response(line: &str) -> Option<(Value, Result<Json, Json>)> {
    let text = line.trim();
    if !text.starts_with('{') {
        return None;
    }
    match messages(text).ok()?.pop()? {
        Message::Response { id, answer } => Some((id, answer)),
        _ => None,
    }
}

fn messages(text: &str) -> Result<Vec<Message>, String> {
    let read = |error: serde_json::Error| format!("invalid JSON: {error}");
    let messages: Vec<&RawValue> = if text.starts_with('[') {
        serde_json::from_str(text).map_err(read)?
    } else {
        vec![serde_json::from_str(text).map_err(read)?]
    };
    if messages.is_empty() {
        return Err("the batch is empty".to_owned());
    }
    messages.into_iter().map(message).collect()
}

/// A message; its members stay as they were written.
fn message(raw: &RawValue) -> Result<Message, String> {
    let members: BTreeMap<String, Json> = serde_json::from_str(raw.get())
        .map_err(|_| "a JSON-RPC message must be an object".to_owned())?;
    let member = |name: &str| members.get(name).cloned();
    let id = member("id");
    if let Some(method) = members.get("method") {
        let method: String = method
            .parse()
            .map_err(|_| format!("the method must be a string, got {}", method.as_str()))?;
        let params = member("params");
        if params.as_ref().is_some_and(|params| !params.is_object()) {
            return Err(format!("{method}: params must be an object"));
        }
        return Ok(match id {
            Some(id) => {
                let params = params.unwrap_or_else(Json::empty_object);
                Message::Request { id, method, params }
            }
            None => Message::Notification { method, params },
        });
    }
    let answer = match (member("result"), member("error")) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(error),
        _ => {
            return Err("a message needs a method, a result or an error".to_owned());
        }
    };
    match id {
        Some(id) => Ok(Message::Response { id: id.to_value(), answer }),
        None => Err("a response needs the id of its request".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(line: &str, expected: Action) {
        let found = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(found, Statement { action: expected, in_background: false }, "{line}");
    }

    fn command(name: &str, rest: &str) -> Action {
        Action::Command { name: name.to_owned(), rest: rest.to_owned() }
    }

    fn call(members: Vec<(String, Typed)>) -> Action {
        Action::Call { tool: "echo".to_owned(), members }
    }

    #[test]
    fn lines_are_told_apart() {
        check("  ", Action::Nothing);
        check("# a comment", Action::Nothing);
        check("status", command("status", ""));
        check("log tools/call", command("log", "tools/call"));
        check("echo", Action::Word { name: "echo".into(), rest: String::new() });
        check("echo a=b", Action::Word { name: "echo".into(), rest: "a=b".into() });
        check("echo()", call(vec![]));
        check("status()", Action::Call { tool: "status".to_owned(), members: vec![] });
        check("status {a: 1}", command("call", "status {a: 1}"));
        check("echo {\"a\": 1}", command("call", "echo {\"a\": 1}"));
        check("echo({\"a\": 1})", command("call", "echo {\"a\": 1}"));
        let members = vec![
            ("a".to_owned(), Typed::Bare("1".to_owned())),
            ("b".to_owned(), Typed::Exact(json!("x)"))),
        ];
        check("echo(a: 1, b: \"x)\")", call(members));
        check("tools/list", command("raw", "tools/list"));
        check("tools/list {cursor: x}", command("raw", "tools/list {cursor: x}"));
        check("call echo {", command("call", "echo {"));
        assert_eq!(first_word("tools/list{}"), ("tools/list", "{}"));
        assert_eq!(first_word("echo a=b c=d"), ("echo", "a=b c=d"));
    }

    #[test]
    fn an_ampersand_at_the_end_means_background() {
        for line in ["echo() &", "echo()&", "echo {}&", "status &"] {
            assert!(parse(line).unwrap().in_background, "{line}");
        }
        assert!(!parse("call echo a=b&").unwrap().in_background);
    }

    #[test]
    fn messages_are_taken_as_they_are() {
        let messages = |text: &str| match parse(text).unwrap().action {
            Action::Messages(messages) => messages,
            other => panic!("{other:?}"),
        };
        let request = Message::Request {
            id: Json::from(&json!("a")),
            method: "ping".into(),
            params: Json::empty_object(),
        };
        let found = messages(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
        assert_eq!(found, std::slice::from_ref(&request));
        let notice = Message::Notification {
            method: "notifications/x".into(),
            params: Some(Json::from(&json!({ "a": 1 }))),
        };
        let text = r#"[{"id":"a","method":"ping"},{"method":"notifications/x","params":{"a":1}}]"#;
        assert_eq!(messages(text), [request, notice]);
        let answer =
            Message::Response { id: json!(1), answer: Err(Json::from(&json!({ "code": 1 }))) };
        assert_eq!(messages(r#"{"id":1,"error":{"code":1}}"#), [answer]);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("{\"a\":", "invalid JSON"),
            ("{}", "needs a method"),
            ("[]", "empty"),
            ("[1]", "must be an object"),
            ("{\"result\":1}", "needs the id"),
            (r#"{"id":1,"method":"x","params":[1]}"#, "params must be an object"),
            ("echo(a: 1", "closing parenthesis"),
            ("echo(text)", "has no value"),
            ("(x)", "expected a word"),
        ] {
            let error = match parse(line) {
                Err(error) => error,
                Ok(found) => panic!("{line}: {found:?}"),
            };
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn numbers_are_sent_as_they_were_written() {
        let line = r#"{"id":1.50,"method":"x","params":{"a":1.0e2}}"#;
        let Action::Messages(messages) = parse(line).unwrap().action else { panic!() };
        let [Message::Request { id, params, .. }] = messages.as_slice() else { panic!() };
        assert_eq!((id.as_str(), params.as_str()), ("1.50", r#"{"a":1.0e2}"#));
    }

    #[test]
    fn arguments_are_words_or_json() {
        let built = |rest: &str| given(rest).unwrap().build(None, false).unwrap().to_value();
        assert!(given("").unwrap().is_empty());
        assert_eq!(
            built(r#"a=1 b="two words" c:=[1,2] d= e='{"x":"\n"}'"#),
            json!({ "a": "1", "b": "two words", "c": [1, 2], "d": "", "e": r#"{"x":"\n"}"# })
        );
        assert_eq!(built("{a: 1}"), json!({ "a": 1 }));
        assert!(given("a='x").unwrap_err().contains("unclosed quote"));
        assert!(given("a=-").unwrap_err().contains("standard input"));
        assert!(given("{a").unwrap_err().contains("arguments: "));
        assert!(params("tools/list", "{a").unwrap_err().contains("tools/list: params"));
    }

    #[test]
    fn open_brackets_and_quotes_want_more_lines() {
        let open = |text: &str, expected| assert_eq!(is_open(text), expected, "{text}");
        open("", false);
        open("status", false);
        open("{", true);
        open("{\"a\": \"}\"", true);
        open("{\"a\": \"}\"}", false);
        open("{\"a\": \"\\\"}", true);
        open("[1,", true);
        open("[1, {\"a\": []}]", false);
        open("echo(", true);
        open("echo(message: 'a)", true);
        open("echo(message: don't)", false);
        open("echo(message: 'a)')", false);
        open("echo {", true);
        open("call echo {\"a\":\n1}", false);
        open("call echo message=a(b", false);
        open("call echo message=\"{", false);
        open("read test://{x", false);
    }
}
