//! Content for people: text as it is, binary content as a note or saved to a file.

use std::path::PathBuf;

use bowline::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents,
    ResourceData, Role,
};
use bowline::{Json, base64};
use serde::de::IgnoredAny;

use super::json::{indented, pretty};
use crate::failure::{Failure, parse};
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
        for block in &result.content {
            // Servers repeat structured content as text for clients that do not support it.
            let is_repeated = structured.is_some_and(|structured| {
                block.as_text().is_some_and(|text| is_same_json(text, structured.as_str()))
            });
            if !is_repeated {
                text += &self.block(block)?;
            }
        }
        text.extend(structured.map(|it| pretty(it, self.screen.out)));
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
        let file = dir.join(format!("{:02}.{}", self.saved, extension(kind)));
        std::fs::create_dir_all(dir)
            .and_then(|()| std::fs::write(&file, bytes))
            .map_err(|error| Failure::file("--save", dir, error))?;
        Ok(self.note(&format!("[{what}, {kind}, {size}: saved to {}]", file.display())))
    }

    fn note(&self, text: &str) -> String {
        format!("{}\n", self.screen.out.paint(Style::Dim, &line(text)))
    }
}

fn is_same_json(one: &str, two: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
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
        _ => "bin",
    }
}
