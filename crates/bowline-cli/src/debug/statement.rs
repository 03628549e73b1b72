//! The syntax of a line. Whether the tools and methods in it exist is decided later.

use std::collections::BTreeMap;

use bowline::Json;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::loose::{self, Typed};

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
    /// Calls a tool.
    Tool { name: String, arguments: Given },
    /// Sends any request.
    Method { method: String, params: Json },
    /// A command of the session, and what follows it.
    Command { name: String, rest: String },
    /// A word that may be a tool, and what follows it.
    Word { name: String, rest: String },
}

/// How the arguments of a tool were given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    /// Not at all: they are asked for one by one.
    Nothing,
    Json(Json),
    /// `key=value` words.
    Words(Vec<String>),
    /// `(key: value)`.
    Members(Vec<(String, Typed)>),
}

/// A JSON-RPC message as the user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Request { id: Json, method: String, params: Json },
    Notification { method: String, params: Option<Json> },
    Response { id: Value, answer: Result<Json, Json> },
}

/// Parses a line. `commands` are the words of the session.
pub(crate) fn parse(line: &str, commands: &[&str]) -> Result<Statement, String> {
    let mut text = line.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(Statement { action: Action::Nothing, in_background: false });
    }
    let in_background = match text.strip_suffix('&') {
        Some(before) if before.is_empty() || before.ends_with([' ', ')', '}', ']']) => {
            text = before.trim_end();
            true
        }
        _ => false,
    };
    let is_json = text.starts_with(['{', '[']);
    let action = if is_json { Action::Messages(messages(text)?) } else { words(text, commands)? };
    Ok(Statement { action, in_background })
}

fn words(text: &str, commands: &[&str]) -> Result<Action, String> {
    let end = text.find(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '{'));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    if name.is_empty() {
        return Err(format!("expected a word or JSON at the start, got {:?}", &text[..1]));
    }
    let name = name.to_owned();
    let rest = rest.trim();
    if text[name.len()..].starts_with('(') {
        return Ok(Action::Tool { arguments: parenthesised(rest)?, name });
    }
    if commands.contains(&name.as_str()) && (!rest.starts_with('{') || takes_json(&name)) {
        return Ok(Action::Command { name, rest: rest.to_owned() });
    }
    if name.contains('/') && (rest.is_empty() || rest.starts_with('{')) {
        return Ok(Action::Method { params: params(&name, rest)?, method: name });
    }
    if rest.starts_with('{') {
        return Ok(Action::Tool { arguments: given(rest)?, name });
    }
    Ok(Action::Word { name, rest: rest.to_owned() })
}

/// Whether JSON after a command belongs to it. After any other word, JSON is the arguments.
fn takes_json(command: &str) -> bool {
    matches!(command, "call" | "raw" | "notify" | "prompt")
}

/// What follows the name of a tool: JSON, `key=value` words, or nothing.
pub(crate) fn given(rest: &str) -> Result<Given, String> {
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(Given::Nothing);
    }
    if rest.starts_with('{') {
        return object(rest).map(Given::Json).map_err(|problem| format!("arguments: {problem}"));
    }
    let words = split_words(rest)?;
    match words.iter().find(|word| word.ends_with("=-")) {
        Some(word) => {
            Err(format!("{word}: the session reads standard input; it cannot be an argument"))
        }
        None => Ok(Given::Words(words)),
    }
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

fn parenthesised(rest: &str) -> Result<Given, String> {
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let Some(inner) = inner else {
        return Err("missing closing parenthesis".to_owned());
    };
    let inner = inner.trim();
    if inner.starts_with('{') {
        return given(inner);
    }
    loose::parse_members(inner).map(Given::Members).map_err(|error| format!("arguments: {error}"))
}

/// Words as in a shell: separated by blanks, kept together by quotes.
pub(crate) fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if letter == open => quote = None,
            (None | Some('"'), '\\') => {
                let Some(next) = letters.next() else {
                    return Err("unexpected backslash at the end of the line".to_owned());
                };
                // JSON between quotes keeps its own escapes.
                if quote.is_some() && !matches!(next, '"' | '\\') {
                    word.get_or_insert_default().push('\\');
                }
                word.get_or_insert_default().push(next);
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("unclosed quote".to_owned());
    }
    words.extend(word);
    Ok(words)
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

    const COMMANDS: &[&str] = &["status", "call", "log"];

    fn check(line: &str, expected: Action) {
        let found = parse(line, COMMANDS).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(found, Statement { action: expected, in_background: false }, "{line}");
    }

    fn tool(name: &str, arguments: Given) -> Action {
        Action::Tool { name: name.to_owned(), arguments }
    }

    fn given_json(value: &Value) -> Given {
        Given::Json(Json::from(value))
    }

    #[test]
    fn lines_are_told_apart() {
        check("  ", Action::Nothing);
        check("# a comment", Action::Nothing);
        check("status", Action::Command { name: "status".into(), rest: String::new() });
        check("log tools/call", Action::Command { name: "log".into(), rest: "tools/call".into() });
        check("echo", Action::Word { name: "echo".into(), rest: String::new() });
        check("echo a=b", Action::Word { name: "echo".into(), rest: "a=b".into() });
        check("echo()", tool("echo", Given::Members(vec![])));
        check("status()", tool("status", Given::Members(vec![])));
        check("status {a: 1}", tool("status", given_json(&json!({ "a": 1 }))));
        check("echo {\"a\": 1}", tool("echo", given_json(&json!({ "a": 1 }))));
        check("echo({\"a\": 1})", tool("echo", given_json(&json!({ "a": 1 }))));
        let members = vec![
            ("a".to_owned(), Typed::Bare("1".to_owned())),
            ("b".to_owned(), Typed::Exact(json!("x)"))),
        ];
        check("echo(a: 1, b: \"x)\")", tool("echo", Given::Members(members)));
        let method = |params: Value| Action::Method {
            method: "tools/list".into(),
            params: Json::from(&params),
        };
        check("tools/list", method(json!({})));
        check("tools/list {cursor: x}", method(json!({ "cursor": "x" })));
        check("call echo {", Action::Command { name: "call".into(), rest: "echo {".into() });
    }

    #[test]
    fn an_ampersand_at_the_end_means_background() {
        for line in ["echo() &", "echo()&", "echo {}&", "status &"] {
            assert!(parse(line, COMMANDS).unwrap().in_background, "{line}");
        }
        assert!(!parse("call echo a=b&", COMMANDS).unwrap().in_background);
    }

    #[test]
    fn messages_are_taken_as_they_are() {
        let messages = |text: &str| match parse(text, COMMANDS).unwrap().action {
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
            ("tools/list {a", "tools/list: params"),
        ] {
            let error = match parse(line, COMMANDS) {
                Err(error) => error,
                Ok(found) => panic!("{line}: {found:?}"),
            };
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn numbers_are_sent_as_they_were_written() {
        let line = r#"{"id":1.50,"method":"x","params":{"a":1.0e2}}"#;
        let Action::Messages(messages) = parse(line, COMMANDS).unwrap().action else { panic!() };
        let [Message::Request { id, params, .. }] = messages.as_slice() else { panic!() };
        assert_eq!((id.as_str(), params.as_str()), ("1.50", r#"{"a":1.0e2}"#));
    }

    #[test]
    fn arguments_are_words_or_json() {
        assert_eq!(given(" ").unwrap(), Given::Nothing);
        let words = |all: &[&str]| Given::Words(all.iter().map(|it| (*it).to_owned()).collect());
        let found = given(r#"a=1 b="two words" c:=[1,2] d= e='{"x":"\n"}'"#).unwrap();
        let expected = ["a=1", "b=two words", "c:=[1,2]", "d=", r#"e={"x":"\n"}"#];
        assert_eq!(found, words(&expected));
        assert!(given("a='x").unwrap_err().contains("unclosed quote"));
        assert!(given("a=-").unwrap_err().contains("standard input"));
        assert!(given("{a").unwrap_err().contains("arguments: "));
    }
}
