//! Content for people: text as it is, binary content as a note or saved to a file.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bowline::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents,
    ResourceData, Role,
};
use bowline::{Json, base64};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::json::{indented, pretty};
use crate::failure::{Failure, parse};
use crate::schema::{decoded, unquoted};
use crate::screen::{Screen, Style};
use crate::text::{line, plain};

/// Renders content. Fails only when binary content cannot be saved.
pub(crate) struct ContentRenderer<'a> {
    screen: &'a Screen,
    save: Option<PathBuf>,
    saved: usize,
}

impl<'a> ContentRenderer<'a> {
    /// Binary content is saved to `save`, if given.
    pub(crate) fn new(screen: &'a Screen, save: Option<PathBuf>) -> Self {
        Self { screen, save, saved: 0 }
    }

    pub(crate) fn tool_result(&mut self, result: &CallToolResult) -> Result<String, Failure> {
        let mut text = String::new();
        let structured = result.structured_content.as_ref();
        // Servers repeat structured content as text for clients that do not support it.
        let is_repeated = |block: &ContentBlock| {
            let same = |(text, json): (&str, &Json)| is_same_json(text, json.as_str());
            block.as_text().zip(structured).is_some_and(same)
        };
        for block in result.content.iter().filter(|block| !is_repeated(block)) {
            text += &self.block(block)?;
        }
        let shown = structured.filter(|it| !is_told(it, &result.content));
        text.extend(shown.map(|it| pretty(it, self.screen.out)));
        if text.is_empty() { Ok(self.note("(no content)")) } else { Ok(text) }
    }

    /// The contents of a resource, with the URI above each part if there are several.
    pub(crate) fn resource_result(&mut self, result: &Json) -> Result<String, Failure> {
        let parts = parse::<ReadResourceResult>(result)?.contents;
        let mut text = String::new();
        for part in &parts {
            if parts.len() > 1 {
                text += &self.note(&part.uri);
            }
            text += &self.resource(part)?;
        }
        Ok(text)
    }

    pub(crate) fn prompt_result(&mut self, result: &Json) -> Result<String, Failure> {
        let prompt = parse::<GetPromptResult>(result)?;
        let about = prompt.description.as_ref().map(|about| self.note(about) + "\n");
        let mut text = about.unwrap_or_default();
        for message in &prompt.messages {
            let role = match message.role {
                Role::User => "user:",
                Role::Assistant => "assistant:",
            };
            text += &format!("{}\n", self.screen.out.paint(Style::Bold, role));
            text += &self.block(&message.content)?;
        }
        Ok(text)
    }

    fn resource(&mut self, contents: &ResourceContents) -> Result<String, Failure> {
        let kind = contents.mime_type.as_deref().unwrap_or("application/octet-stream");
        match &contents.data {
            ResourceData::Blob(data) => self.binary(&contents.uri, kind, data),
            ResourceData::Text(text)
                if kind.ends_with("json") && serde_json::from_str::<IgnoredAny>(text).is_ok() =>
            {
                Ok(indented(text, self.screen.out, 0) + "\n")
            }
            ResourceData::Text(text) => Ok(terminated(&plain(text))),
        }
    }

    fn block(&mut self, block: &ContentBlock) -> Result<String, Failure> {
        match block {
            ContentBlock::Text(text) => Ok(terminated(&plain(&text.text))),
            ContentBlock::Image(image) => self.binary("image", &image.mime_type, &image.data),
            ContentBlock::Audio(audio) => self.binary("audio", &audio.mime_type, &audio.data),
            ContentBlock::ResourceLink(link) => {
                let title = link.title.as_deref().unwrap_or(&link.name);
                Ok(self.note(&format!("[resource {} {title}]", link.uri)))
            }
            ContentBlock::EmbeddedResource(embedded) => self.resource(&embedded.resource),
            other @ ContentBlock::Other(_) => {
                let text = serde_json::to_string(other).unwrap_or_default();
                Ok(indented(&text, self.screen.out, 0) + "\n")
            }
        }
    }

    fn binary(&mut self, what: &str, kind: &str, data: &str) -> Result<String, Failure> {
        let Some(bytes) = base64::STANDARD.decode(data) else {
            return Ok(self.note(&format!("[{what}, {kind}: its data is not base64]")));
        };
        let size = size(bytes.len());
        let Some(dir) = &self.save else {
            return Ok(self.note(&format!("[{what}, {kind}, {size}; --save DIR saves it]")));
        };
        self.saved += 1;
        let name = name_of(what).unwrap_or_else(|| format!("{:02}", self.saved));
        let name = if name.contains('.') { name } else { format!("{name}.{}", extension(kind)) };
        let file = save(dir, &name, &bytes).map_err(|error| Failure::file("--save", dir, error))?;
        Ok(self.note(&format!("[{what}, {kind}, {size}: saved to {}]", file.display())))
    }

    fn note(&self, text: &str) -> String {
        format!("{}\n", self.screen.out.paint(Style::Dim, &line(text)))
    }
}

/// Whether the text blocks say all that there is in `{"result": …}`, the form of results that are
/// not objects.
fn is_told(structured: &Json, content: &[ContentBlock]) -> bool {
    let Value::Object(mut members) = structured.to_value() else { return false };
    let (Some(result), true) = (members.remove("result"), members.is_empty()) else { return false };
    let told: Option<Vec<&str>> = content.iter().map(ContentBlock::as_text).collect();
    let says = |text: &str, value: &Value| {
        unquoted(value) == text || is_same_json(text, &value.to_string())
    };
    match (told.as_deref(), &result) {
        (Some([text]), result) if says(text, result) => true,
        (Some(texts), Value::Array(items)) if !items.is_empty() => {
            texts.len() == items.len()
                && texts.iter().zip(items).all(|(text, item)| says(text, item))
        }
        _ => false,
    }
}

/// A file name from the last part of a URI; `None` if there is nothing to take it from.
fn name_of(uri: &str) -> Option<String> {
    const LONGEST: usize = 100;
    let (_, path) = uri.split_once(':')?;
    let last = decoded(path.split(['?', '#']).next()?.trim_end_matches('/').rsplit('/').next()?);
    let is_fit = |letter: &char| letter.is_alphanumeric() || "._-+ ".contains(*letter);
    let name: String = last.chars().filter(is_fit).take(LONGEST).collect();
    let name = name.trim_matches([' ', '.']).trim_start_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// Writes a new file: one that is there already stays, and the new one gets a number.
fn save(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    let (stem, extension) = name.split_once('.').unwrap_or((name, "bin"));
    let mut number = 1_u32;
    loop {
        let file = match number {
            1 => dir.join(name),
            _ => dir.join(format!("{stem}-{number}.{extension}")),
        };
        match OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(mut new) => return new.write_all(bytes).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn is_same_json(one: &str, two: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    one == two || read(one).is_some_and(|value| Some(value) == read(two))
}

/// Text with a line break at its end.
fn terminated(text: &str) -> String {
    format!("{}\n", text.strip_suffix('\n').unwrap_or(text))
}

/// A number of bytes for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// The file name extension for a media type. Never the server's word: only what is known.
fn extension(kind: &str) -> &'static str {
    match kind.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "text/plain" => "txt",
        "text/html" => "html",
        "application/gzip" | "application/x-gzip" => "gz",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_that_the_text_tells_are_shown_once() {
        for (structured, texts, is) in [
            (json!({ "result": 5 }), &["5"][..], true),
            (json!({ "result": "five" }), &["five"], true),
            (json!({ "result": [1, "b"] }), &["1", "b"], true),
            (json!({ "result": [1, 2] }), &["[1, 2]"], true),
            (json!({ "result": 5 }), &["6"], false),
            (json!({ "result": 5, "more": 1 }), &["5"], false),
            (json!({ "result": [] }), &[], false),
            (json!({ "sum": 5 }), &["5"], false),
        ] {
            let content: Vec<_> = texts.iter().map(|text| ContentBlock::text(*text)).collect();
            assert_eq!(is_told(&Json::from(&structured), &content), is, "{structured} {texts:?}");
        }
    }

    #[test]
    fn files_keep_their_names_and_stay_in_their_folder() {
        for (uri, name) in [
            ("file:///a/x.gz", Some("x.gz")),
            ("https://a.b/c/d%20e.png?x=/y#z", Some("d e.png")),
            ("x://a/..%2f..%2fetc%2fpasswd", Some("etcpasswd")),
            ("x://a/.ssh", Some("ssh")),
            ("x://a/\u{202e}b\u{1b}c", Some("bc")),
            ("urn:isbn:123", Some("isbn123")),
            ("x:///..", None),
            ("image", None),
        ] {
            assert_eq!(name_of(uri).as_deref(), name, "{uri}");
        }
    }
}
