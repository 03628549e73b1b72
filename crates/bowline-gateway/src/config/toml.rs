//! TOML, with the place of every part.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::{Kind, Member, Node};
use super::{EditError, apply, lookup, quote};

/// Reads a file.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let table = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
    Ok(Node { range: 0..text.len(), kind: Kind::Object(members(table.get_ref())) })
}

fn members(table: &DeTable<'_>) -> Vec<Member> {
    let member = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        Member { key: key.get_ref().to_string(), key_range: key.span(), value: node(value) }
    };
    table.iter().map(member).collect()
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let kind = match value.get_ref() {
        DeValue::Table(table) => Kind::Object(members(table)),
        DeValue::Array(items) => Kind::Array(items.iter().map(node).collect()),
        DeValue::String(text) => Kind::Text(text.to_string()),
        _ => Kind::Other,
    };
    Node { range: value.span(), kind }
}

/// Whether an entry is written in braces, on one line.
pub(super) fn is_inline(text: &str, member: &Member) -> bool {
    let line = text[..member.key_range.start].rfind('\n').map_or(0, |at| at + 1);
    text[line..member.key_range.start].contains('{')
}

pub(super) fn add(
    text: &str,
    root: &Node,
    path: &[String],
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    if let Some(map) = lookup(root, path)
        && text[map.range.clone()].starts_with('{')
    {
        let why = "the servers are an inline table; add it by hand";
        return Err(EditError::Unsupported(name.to_owned(), why));
    }
    let header: Vec<String> = path.iter().chain([&name.to_owned()]).map(|it| key(it)).collect();
    let header = header.join(".");
    let mut new = format!("[{header}]\n");
    let mut tables = String::new();
    for (member, value) in entry.as_object().into_iter().flatten() {
        match value {
            Value::Object(pairs) => {
                tables += &format!("\n[{header}.{}]\n", key(member));
                for (name, value) in pairs {
                    tables += &format!("{} = {value}\n", key(name));
                }
            }
            _ => new += &format!("{} = {value}\n", key(member)),
        }
    }
    let gap = if text.is_empty() {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    Ok(format!("{text}{gap}{new}{tables}"))
}

/// A key, quoted where it must be.
fn key(word: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if !word.is_empty() && word.chars().all(is_bare) { word.to_owned() } else { quote(word) }
}

/// The text without the tables of a server.
pub(super) fn remove(text: &str, root: &Node, path: &[String]) -> Result<String, EditError> {
    let headers = headers(text, root);
    let mut splices = Vec::new();
    for (at, (range, name)) in headers.iter().enumerate() {
        if name.len() < path.len() || name[..path.len()] != *path {
            continue;
        }
        let end = headers.get(at + 1).map_or(text.len(), |(next, _)| next.start);
        // Comments right above the next table belong to it.
        let kept = text[range.start..end].lines().rev().take_while(|line| line.starts_with('#'));
        let kept: usize = kept.map(|line| line.len() + 1).sum();
        let end = if at + 1 < headers.len() { end - kept } else { end };
        splices.push((range.start..end, String::new()));
    }
    if splices.is_empty() {
        let name = path.last().cloned().unwrap_or_default();
        return Err(EditError::Unsupported(name, "it has no table of its own"));
    }
    let is_last = splices.last().is_some_and(|(range, _)| range.end == text.len());
    let edited = apply(text, splices);
    // The empty line before a table at the end goes with it.
    match edited.strip_suffix("\n\n").filter(|_| is_last) {
        Some(rest) => Ok(format!("{rest}\n")),
        None => Ok(edited),
    }
}

/// The headers of tables: where their lines are, and what they name.
fn headers(text: &str, root: &Node) -> Vec<(std::ops::Range<usize>, Vec<String>)> {
    let mut arrays = Vec::new();
    spans(root, &mut arrays);
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let is_inside =
            arrays.iter().any(|(start, end)| *start < range.start && range.start < *end);
        if !line.trim_start().starts_with('[') || is_inside {
            continue;
        }
        // A header alone is a file whose only path is what it names.
        let inner = line.trim().trim_start_matches('[');
        let name = format!("[{}", inner.replace("]]", "]"));
        let read = DeTable::parse(&name).ok().map(|table| {
            let mut path = Vec::new();
            let mut table = table.get_ref().clone();
            while let Some((key, value)) = table.iter().next() {
                path.push(key.get_ref().to_string());
                let DeValue::Table(next) = value.get_ref() else { break };
                table = next.clone();
            }
            path
        });
        found.push((range, read.unwrap_or_default()));
    }
    found
}

/// The places of values that may span lines.
fn spans(node: &Node, found: &mut Vec<(usize, usize)>) {
    match &node.kind {
        Kind::Object(members) => members.iter().for_each(|member| spans(&member.value, found)),
        Kind::Array(_) | Kind::Text(_) => found.push((node.range.start, node.range.end)),
        Kind::Other => {}
    }
}
