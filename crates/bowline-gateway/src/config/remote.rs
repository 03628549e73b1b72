//! A tap in front of a server at a URL: the client starts a tap of a bridge instead of connecting.
//!
//! The member with the URL becomes a command, and the value of `type` one of a command. What was
//! there before is an argument of the tap, which ignores it, so that it can be restored exactly.

use serde_json::{Value, json};

use super::tree::{Kind, Member};
use super::{EditError, Splice, Syntax, member, quote, toml};
use crate::redact::secrets_in_url;

/// The option of a tap that keeps what stood in place of the command.
pub(super) const ENTRY: &str = "--entry";

/// Members that hold a URL: of most clients, of Windsurf, of Gemini.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];
/// Members that a command line would show to other users of the machine.
const SECRETS: [&str; 6] =
    ["headers", "http_headers", "env_http_headers", "bearer_token_env_var", "requestInit", "auth"];

/// The member with the URL.
pub(super) fn url(members: &[Member]) -> Option<(&Member, &str)> {
    let found = URLS.iter().find_map(|name| member(members, name))?;
    Some((found, found.value.text()?))
}

/// Puts a tap and a bridge in place of the URL.
pub(super) fn wrap(
    text: &str,
    syntax: Syntax,
    name: &str,
    members: &[Member],
    tap: &[String],
) -> Result<Vec<Splice>, EditError> {
    let (at, url) = url(members).ok_or_else(|| EditError::NoCommand(name.to_owned()))?;
    if SECRETS.iter().any(|secret| member(members, secret).is_some()) {
        let why = "it has headers or credentials, which a command line would show to others";
        return Err(EditError::Unsupported(name.to_owned(), why));
    }
    if !secrets_in_url(url).is_empty() {
        let why = "its URL has a secret, which a command line would show to others";
        return Err(EditError::Unsupported(name.to_owned(), why));
    }
    let kind = member(members, "type");
    let old = at.key_range.start..at.value.range.end;
    let kept = json!([text[old.clone()], kind.map(|kind| &text[kind.value.range.clone()])]);
    let (program, options) =
        tap.split_first().ok_or_else(|| EditError::NoCommand(name.to_owned()))?;
    let options = options.iter().filter(|word| *word != "--").cloned();
    let own = [ENTRY.to_owned(), kept.to_string(), "--".to_owned(), program.clone()];
    let bridge = ["bridge".to_owned(), url.to_owned()];
    let args: Vec<String> = options.chain(own).chain(bridge).map(|word| quote(&word)).collect();
    let (program, args) = (quote(program), args.join(", "));
    let is_list = kind.is_some_and(|kind| kind.value.text() == Some("remote"));
    let new = match syntax {
        Syntax::Json if is_list => format!("\"command\": [{program}, {args}]"),
        Syntax::Json => format!("\"command\": {program}, \"args\": [{args}]"),
        Syntax::Toml => {
            let between = if toml::is_inline(text, at) { ", " } else { "\n" };
            format!("command = {program}{between}args = [{args}]")
        }
    };
    let mut splices = vec![(old, new)];
    if let Some(kind) = kind {
        let new = quote(if is_list { "local" } else { "stdio" });
        splices.push((kind.value.range.clone(), new));
    }
    Ok(splices)
}

/// Restores the URL; `None` if a command was wrapped.
pub(super) fn unwrap(members: &[Member], command: &Member) -> Option<Vec<Splice>> {
    let args = member(members, "args");
    let kinds = (&command.value.kind, args.map(|args| &args.value.kind));
    let ((Kind::Array(list), _) | (_, Some(Kind::Array(list)))) = kinds else { return None };
    let mut own = list.iter().map_while(|word| word.text().filter(|word| *word != "--"));
    own.find(|word| *word == ENTRY)?;
    let kept: Value = serde_json::from_str(own.next()?).ok()?;
    let is_list = matches!(command.value.kind, Kind::Array(_));
    let last = args.filter(|_| !is_list).unwrap_or(command);
    let range = command.key_range.start..last.value.range.end;
    let mut splices = vec![(range, kept[0].as_str()?.to_owned())];
    if let (Some(kind), Some(old)) = (member(members, "type"), kept[1].as_str()) {
        splices.push((kind.value.range.clone(), old.to_owned()));
    }
    Some(splices)
}
