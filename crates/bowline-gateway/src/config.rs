//! Edits the config files of clients: puts a tap in front of a server and takes it out again, adds
//! and removes servers.
//!
//! **Invariant:** what is not edited stays as it is, byte for byte: comments, order, spaces. Text
//! is inserted and removed at places that a parser has found; nothing is written anew. Putting a
//! tap in and taking it out restores the file exactly. An edit that would break this, or that does
//! not do what it should, is an error: there are more ways to write an entry than are known here.

mod entry;
mod json;
mod remote;
mod toml;
mod tree;

use serde_json::Value;

pub use self::entry::{Shape, is_wrapped};
use self::tree::{Kind, Member, Node};

/// How a config file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON, with comments and trailing commas where the client allows them.
    Json,
    /// TOML.
    Toml,
}

/// Why a file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file is not what its syntax says.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// There is no such server.
    #[error("there is no server {0:?}")]
    Missing(String),
    /// There is such a server already.
    #[error("there is a server {0:?} already")]
    Present(String),
    /// A tap needs a command to start, or a URL to bridge to.
    #[error("server {0:?} has neither a command nor a URL")]
    NoCommand(String),
    /// There is a tap in front of it already.
    #[error("there is a tap in front of {0:?} already")]
    Wrapped(String),
    /// There is nothing to take out.
    #[error("there is no tap in front of {0:?}")]
    NotWrapped(String),
    /// The entry is written in a way that cannot be edited without rewriting it.
    #[error("server {0:?} is written in a way that cannot be edited here: {1}")]
    Unsupported(String, &'static str),
}

/// Text to put in place of a range of the file.
type Splice = (std::ops::Range<usize>, String);

/// Puts a tap in front of a server. `path` leads to the server's entry; `tap` is the program of the
/// tap and its arguments up to the server's command. A server at a URL gets a bridge behind its
/// tap.
///
/// # Errors
/// See [`EditError`].
pub fn wrap(
    text: &str,
    syntax: Syntax,
    path: &[String],
    tap: &[String],
) -> Result<String, EditError> {
    let root = parse(text, syntax)?;
    let (name, members) = find(&root, path)?;
    let wrapped = with_tap(text, syntax, (&name, members), tap)?;
    match unwrap(&wrapped, syntax, path) {
        Ok(restored) if restored == text => Ok(wrapped),
        _ => Err(EditError::Unsupported(name, ODD)),
    }
}

/// What helps with an entry that has dotted keys, for instance.
const ODD: &str = "expected a table of its own, with a line for each member";

fn with_tap(
    text: &str,
    syntax: Syntax,
    (name, members): (&str, &[Member]),
    tap: &[String],
) -> Result<String, EditError> {
    let Some(command) = member(members, "command") else {
        return Ok(apply(text, remote::wrap(text, syntax, name, members, tap)?));
    };
    let args = member(members, "args");
    if is_tap(command, args) {
        return Err(EditError::Wrapped(name.to_owned()));
    }
    let unsupported = |why| EditError::Unsupported(name.to_owned(), why);
    let quoted: Vec<String> = tap.iter().map(|word| quote(word)).collect();
    let splices = match (&command.value.kind, args.map(|args| &args.value)) {
        (Kind::Array(words), _) => {
            let first = words.first().ok_or_else(|| EditError::NoCommand(name.to_owned()))?;
            let at = first.range.start;
            vec![(at..at, format!("{}, ", quoted.join(", ")))]
        }
        (Kind::Text(_), args) => {
            let literal = &text[command.value.range.clone()];
            let mut words = quoted[1..].to_vec();
            words.push(literal.to_owned());
            let words = words.join(", ");
            let program = (command.value.range.clone(), quoted[0].clone());
            match args.map(|args| (&args.kind, args)) {
                None => vec![program, insert_args(text, syntax, command, &words)],
                Some((Kind::Array(list), args)) => {
                    let at = list.first().map_or(args.range.start + 1, |it| it.range.start);
                    // A space at the end tells an empty list from none.
                    let end = if list.is_empty() { " " } else { ", " };
                    vec![program, (at..at, format!("{words}{end}"))]
                }
                Some(_) => return Err(unsupported("args must be an array")),
            }
        }
        _ => return Err(unsupported("command must be a string or an array")),
    };
    Ok(apply(text, splices))
}

/// Takes a tap out again.
///
/// # Errors
/// See [`EditError`].
pub fn unwrap(text: &str, syntax: Syntax, path: &[String]) -> Result<String, EditError> {
    let root = parse(text, syntax)?;
    let (name, members) = find(&root, path)?;
    let command = member(members, "command");
    let args = member(members, "args");
    let command = command.filter(|command| is_tap(command, args));
    let command = command.ok_or_else(|| EditError::NotWrapped(name.clone()))?;
    if let Some(splices) = remote::unwrap(members, command) {
        return Ok(apply(text, splices));
    }
    let broken = || EditError::Unsupported(name.clone(), "there is no command after --");
    let kinds = (&command.value.kind, args.map(|args| &args.value.kind));
    let ((Kind::Array(list), _) | (_, Some(Kind::Array(list)))) = kinds else {
        return Err(broken());
    };
    let dashes = list.iter().position(|word| word.text() == Some("--")).ok_or_else(broken)?;
    let program = list.get(dashes + 1).ok_or_else(broken)?;
    let first = list[0].range.start;
    let Some(args) = args.filter(|_| command.value.text().is_some()) else {
        return Ok(apply(text, vec![(first..program.range.start, String::new())]));
    };
    let restored = (command.value.range.clone(), text[program.range.clone()].to_owned());
    let rest = match list.get(dashes + 2) {
        Some(next) => first..next.range.start,
        // The list was empty, or not there.
        None if text[program.range.end..].starts_with(" ]") => first..program.range.end + 1,
        None => args_alone(text, syntax, command, args),
    };
    Ok(apply(text, vec![restored, (rest, String::new())]))
}

/// Adds a server to the map at `path`, which is made if it is not there.
///
/// # Errors
/// See [`EditError`].
pub fn add(
    text: &str,
    syntax: Syntax,
    path: &[String],
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let root = parse(text, syntax)?;
    let mut whole = path.to_vec();
    whole.push(name.to_owned());
    if lookup(&root, &whole).is_some() {
        return Err(EditError::Present(name.to_owned()));
    }
    let added = match syntax {
        Syntax::Json => json::add(text, &root, path, name, entry),
        Syntax::Toml => toml::add(text, &root, path, name, entry),
    }?;
    // New lines end as those of the file do.
    let is_windows = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let added = if is_windows { added.replace("\r\n", "\n").replace('\n', "\r\n") } else { added };
    match parse(&added, syntax) {
        Ok(root) if lookup(&root, &whole).is_some() => Ok(added),
        _ => Err(EditError::Unsupported(name.to_owned(), ODD)),
    }
}

/// Removes a server.
///
/// # Errors
/// See [`EditError`].
pub fn remove(text: &str, syntax: Syntax, path: &[String]) -> Result<String, EditError> {
    let root = parse(text, syntax)?;
    let (name, _) = find(&root, path)?;
    let removed = match syntax {
        Syntax::Json => {
            json::remove(text, &root, path).ok_or_else(|| EditError::Missing(name.clone()))
        }
        Syntax::Toml => toml::remove(text, &root, path),
    }?;
    match parse(&removed, syntax) {
        Ok(root) if lookup(&root, path).is_none() => Ok(removed),
        _ => Err(EditError::Unsupported(name, ODD)),
    }
}

fn parse(text: &str, syntax: Syntax) -> Result<Node, EditError> {
    match syntax {
        Syntax::Json => json::parse(text).map_err(EditError::Unreadable),
        Syntax::Toml => toml::parse(text).map_err(EditError::Unreadable),
    }
}

/// The name and the members of the entry at a path.
fn find<'a>(root: &'a Node, path: &[String]) -> Result<(String, &'a [Member]), EditError> {
    let name = path.last().cloned().unwrap_or_default();
    match lookup(root, path).map(|node| &node.kind) {
        Some(Kind::Object(members)) => Ok((name, members)),
        _ => Err(EditError::Missing(name)),
    }
}

fn lookup<'a>(root: &'a Node, path: &[String]) -> Option<&'a Node> {
    path.iter().try_fold(root, |node, key| match &node.kind {
        Kind::Object(members) => member(members, key).map(|member| &member.value),
        _ => None,
    })
}

fn member<'a>(members: &'a [Member], key: &str) -> Option<&'a Member> {
    members.iter().find(|member| member.key == key)
}

fn is_tap(command: &Member, args: Option<&Member>) -> bool {
    let words = |node: &Node| match &node.kind {
        Kind::Array(words) => {
            words.iter().map(|word| word.text().unwrap_or_default().to_owned()).collect()
        }
        Kind::Text(word) => vec![word.clone()],
        _ => Vec::new(),
    };
    let mut all: Vec<String> = words(&command.value);
    all.extend(args.map(|args| words(&args.value)).unwrap_or_default());
    entry::is_tap(&all)
}

/// A string as JSON and TOML write it.
fn quote(word: &str) -> String {
    Value::from(word).to_string().replace('\u{7f}', "\\u007f")
}

/// Where arguments go in an entry without any, and how they are written there.
fn insert_args(text: &str, syntax: Syntax, command: &Member, words: &str) -> Splice {
    let end = command.value.range.end;
    match syntax {
        Syntax::Json => (end..end, format!(", \"args\": [{words}]")),
        Syntax::Toml if toml::is_inline(text, command) => (end..end, format!(", args = [{words}]")),
        Syntax::Toml => {
            let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at);
            (line_end..line_end, format!("\nargs = [{words}]"))
        }
    }
}

/// The range of arguments that [`insert_args`] has inserted.
fn args_alone(
    text: &str,
    syntax: Syntax,
    command: &Member,
    args: &Member,
) -> std::ops::Range<usize> {
    let end = args.value.range.end;
    match syntax {
        Syntax::Toml if !toml::is_inline(text, command) => {
            let start = text[..args.key_range.start].trim_end_matches([' ', '\t']).len();
            start.saturating_sub(1)..end
        }
        _ if args.key_range.start >= command.value.range.end => command.value.range.end..end,
        _ => args.value.range.start + 1..end - 1,
    }
}

/// The text with some ranges replaced, none of which overlap.
fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|(range, _)| range.start);
    let mut edited = String::with_capacity(text.len() + 200);
    let mut at = 0;
    for (range, new) in splices {
        edited.push_str(&text[at..range.start]);
        edited.push_str(&new);
        at = range.end;
    }
    edited.push_str(&text[at..]);
    edited
}

#[cfg(test)]
mod tests;
