//! JSON with comments and trailing commas, with the place of every part.

use std::ops::Range;

use serde_json::Value;

use super::tree::{Kind, Member, Node};
use super::{EditError, Splice, apply, lookup, quote};

/// How deeply a file may nest.
const DEPTH: usize = 100;

/// Reads a file.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip();
    if reader.at == text.len() {
        return Ok(Node { range: reader.at..reader.at, kind: Kind::Object(Vec::new()) });
    }
    let node = reader.value()?;
    reader.skip();
    if reader.at < text.len() { Err(reader.wrong("expected the end")) } else { Ok(node) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, what: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("{what} in line {line}")
    }

    fn skip(&mut self) {
        self.at += blank(&self.text[self.at..]);
    }

    /// Takes a byte, if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        self.skip();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self) -> Result<Node, String> {
        self.skip();
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.wrong("nested too deeply"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' => {
                let rest = &self.text[start..];
                let is_of_it =
                    |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
                self.at += rest.find(|letter| !is_of_it(letter)).unwrap_or(rest.len());
                Kind::Other
            }
            _ => return Err(self.wrong("expected a value")),
        };
        self.depth -= 1;
        Ok(Node { range: start..self.at, kind })
    }

    fn string(&mut self) -> Result<String, String> {
        let rest = &self.text[self.at..];
        let length = crate::redact::end_of_string(rest).filter(|_| rest.starts_with('"'));
        let length = length.ok_or_else(|| self.wrong("expected a string"))?;
        let read = serde_json::from_str(&rest[..length]).map_err(|_| self.wrong("a bad string"))?;
        self.at += length;
        Ok(read)
    }

    fn object(&mut self) -> Result<Kind, String> {
        self.at += 1;
        let mut members = Vec::new();
        while !self.take(b'}') {
            let start = self.at;
            let key = self.string()?;
            let key_range = start..self.at;
            if !self.take(b':') {
                return Err(self.wrong("expected ':'"));
            }
            members.push(Member { key, key_range, value: self.value()? });
            if !self.take(b',') && self.peek() != Some(b'}') {
                return Err(self.wrong("expected ',' or '}'"));
            }
        }
        Ok(Kind::Object(members))
    }

    fn array(&mut self) -> Result<Kind, String> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.take(b']') {
            items.push(self.value()?);
            if !self.take(b',') && self.peek() != Some(b']') {
                return Err(self.wrong("expected ',' or ']'"));
            }
        }
        Ok(Kind::Array(items))
    }
}

/// The length of spaces and comments at the beginning.
fn blank(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            rest = &rest[rest.find("*/").map_or(rest.len(), |at| at + 2)..];
        } else {
            return text.len() - rest.len();
        }
    }
}

pub(super) fn add(
    text: &str,
    root: &Node,
    path: &[String],
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    // What exists of the path, and what must be made.
    let known = (0..=path.len()).rev().find(|length| lookup(root, &path[..*length]).is_some());
    let known = known.unwrap_or_default();
    let map = lookup(root, &path[..known]).unwrap_or(root);
    let missing: Vec<&str> = path[known..].iter().map(String::as_str).chain([name]).collect();
    let mut value = entry.clone();
    for key in missing[1..].iter().rev() {
        let mut outer = serde_json::Map::new();
        outer.insert((*key).to_owned(), value);
        value = Value::Object(outer);
    }
    let Kind::Object(members) = &map.kind else {
        return Err(EditError::Unsupported(name.to_owned(), "the servers must be an object"));
    };
    if map.range.is_empty() {
        let unit = "  ";
        let text = text.trim_end_matches(['\n', ' ']);
        return Ok(format!("{text}{{\n{}\n}}\n", line(missing[0], &value, unit, unit)));
    }
    Ok(apply(text, insert(text, map, members, (missing[0], &value))))
}

/// What to insert for a new member of an object.
fn insert(text: &str, map: &Node, members: &[Member], new: (&str, &Value)) -> Vec<Splice> {
    let (key, value) = new;
    let unit = unit(text);
    let outer = indent_of(text, map.range.end - 1);
    let Some(last) = members.last() else {
        let inner = format!("{outer}{unit}");
        let body = &text[map.range.start + 1..map.range.end - 1];
        let at = map.range.end - 1 - (body.len() - body.trim_end().len());
        let new = format!("\n{}\n{outer}", line(key, value, &inner, &unit));
        return vec![(at..map.range.end - 1, new)];
    };
    let after = last.value.range.end;
    let comma = has_comma(text, after).is_none().then(|| (after..after, ",".to_owned()));
    if !text[map.range.clone()].contains('\n') {
        let comma = if comma.is_some() { ", " } else { " " };
        let at = has_comma(text, after).unwrap_or(after);
        return vec![(at..at, format!("{comma}{}: {value}", quote(key)))];
    }
    let inner = indent_of(text, last.key_range.start);
    let body = &text[after..map.range.end - 1];
    let end = after + body.trim_end().len();
    // A file that ends its lists with commas gets another one.
    let end_comma = if comma.is_none() { "," } else { "" };
    let new = format!("\n{}{end_comma}", line(key, value, &inner, &unit));
    match comma {
        // Nothing is between the last member and the new one.
        Some((at, comma)) if at.start == end => vec![(at, format!("{comma}{new}"))],
        comma => comma.into_iter().chain([(end..end, new)]).collect(),
    }
}

/// A member on lines of its own.
fn line(key: &str, value: &Value, indent: &str, unit: &str) -> String {
    let mut bytes = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, format);
    let written = serde::Serialize::serialize(value, &mut writer);
    debug_assert!(written.is_ok());
    let text = String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{indent}"));
    format!("{indent}{}: {text}", quote(key))
}

/// The indentation of the line that contains a place.
fn indent_of(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned()
}

/// What one level of indentation is: that of the first indented line.
fn unit(text: &str) -> String {
    let first = text.lines().find(|line| line.starts_with([' ', '\t']));
    let unit = first.map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]);
    unit.filter(|unit| unit.len() <= 8).unwrap_or("  ").to_owned()
}

/// The place after the comma that follows a place, if one does.
fn has_comma(text: &str, at: usize) -> Option<usize> {
    let at = at + blank(&text[at..]);
    text[at..].starts_with(',').then_some(at + 1)
}

/// The text without the member at a path.
pub(super) fn remove(text: &str, root: &Node, path: &[String]) -> Option<String> {
    let (name, above) = path.split_last()?;
    let Kind::Object(members) = &lookup(root, above)?.kind else { return None };
    let at = members.iter().position(|member| member.key == *name)?;
    let member = &members[at];
    let start = text[..member.key_range.start].trim_end().len();
    let end = member.value.range.end;
    if let Some(after) = has_comma(text, end) {
        return Some(apply(text, vec![(start..after, String::new())]));
    }
    let mut splices = vec![(start..end, String::new())];
    // The comma before it goes, too.
    if let Some(before) = at.checked_sub(1).map(|before| members[before].value.range.end)
        && let Some(comma) = has_comma(text, before)
    {
        let range: Range<usize> = comma - 1..comma;
        splices.push((range, String::new()));
        splices.sort_by_key(|(range, _)| range.start);
        // The comma may be the last thing before the member.
        splices[1].0.start = splices[1].0.start.max(comma);
    }
    Some(apply(text, splices))
}
