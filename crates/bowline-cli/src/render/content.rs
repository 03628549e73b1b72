//! Content blocks for people: text as it is, pictures and sound as a line, or saved.

use std::path::PathBuf;

use bowline::base64;
use bowline::model::{CallToolResult, ContentBlock, ResourceContents, ResourceData};

use super::json;
use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::text::{line, plain};

/// Shows content, and saves what people cannot read if they want it.
pub(crate) struct Shower<'a> {
    screen: &'a Screen,
    dir: Option<PathBuf>,
    saved: usize,
}

impl<'a> Shower<'a> {
    /// Pictures, sound and other bytes go into `dir`, if there is one.
    pub(crate) fn new(screen: &'a Screen, dir: Option<PathBuf>) -> Self {
        Self { screen, dir, saved: 0 }
    }

    /// The result of a tool.
    ///
    /// # Errors
    /// When something cannot be saved.
    pub(crate) fn result(&mut self, result: &CallToolResult) -> Result<String, Failure> {
        let mut text = String::new();
        let structured = result.structured_content.as_ref();
        for block in &result.content {
            // Servers repeat structured content as text for those who cannot read it.
            let is_repeated = structured.is_some_and(|structured| {
                block.as_text().is_some_and(|text| same_json(text, structured.as_str()))
            });
            if !is_repeated {
                text += &self.block(block)?;
            }
        }
        if let Some(structured) = structured {
            text += &json::pretty(structured, self.screen.out);
        }
        if text.is_empty() {
            text = format!("{}\n", self.screen.out.paint(Style::Dim, "(no content)"));
        }
        Ok(text)
    }

    /// A content block.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub(crate) fn block(&mut self, block: &ContentBlock) -> Result<String, Failure> {
        match block {
            ContentBlock::Text(text) => Ok(with_end(&plain(&text.text))),
            ContentBlock::Image(image) => self.bytes("image", &image.mime_type, &image.data),
            ContentBlock::Audio(audio) => self.bytes("audio", &audio.mime_type, &audio.data),
            ContentBlock::ResourceLink(link) => {
                let title = link.title.as_deref().unwrap_or(&link.name);
                Ok(self.note(&format!("[resource {} {}]", link.uri, title)))
            }
            ContentBlock::EmbeddedResource(embedded) => self.resource(&embedded.resource),
            other @ ContentBlock::Other(_) => {
                let text = serde_json::to_string(other).unwrap_or_default();
                Ok(with_end(&json::indented(&text, self.screen.out, 0)))
            }
        }
    }

    /// What a resource holds.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub(crate) fn resource(&mut self, contents: &ResourceContents) -> Result<String, Failure> {
        let kind = contents.mime_type.as_deref().unwrap_or("application/octet-stream");
        match &contents.data {
            ResourceData::Text(text) if kind.ends_with("json") => {
                let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                match is_json {
                    true => Ok(with_end(&json::indented(text, self.screen.out, 0))),
                    false => Ok(with_end(&plain(text))),
                }
            }
            ResourceData::Text(text) => Ok(with_end(&plain(text))),
            ResourceData::Blob(data) => self.bytes(&contents.uri, kind, data),
        }
    }

    fn bytes(&mut self, what: &str, kind: &str, data: &str) -> Result<String, Failure> {
        let Some(bytes) = base64::STANDARD.decode(data) else {
            return Ok(self.note(&format!("[{what}, {kind}: its data is no base64]")));
        };
        let size = size(bytes.len());
        let Some(dir) = &self.dir else {
            return Ok(self.note(&format!("[{what}, {kind}, {size}; --save DIR saves it]")));
        };
        self.saved += 1;
        let file = dir.join(format!("{:02}.{}", self.saved, ending(kind)));
        let wrong =
            |error: std::io::Error| Failure::usage(format!("--save {}: {error}", dir.display()));
        std::fs::create_dir_all(dir).map_err(wrong)?;
        std::fs::write(&file, bytes).map_err(wrong)?;
        Ok(self.note(&format!("[{what}, {kind}, {size}: saved to {}]", file.display())))
    }

    fn note(&self, text: &str) -> String {
        format!("{}\n", self.screen.out.paint(Style::Dim, &line(text)))
    }
}

fn same_json(one: &str, two: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    one == two || read(one).is_some_and(|value| Some(value) == read(two))
}

fn with_end(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// A number of bytes for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// How the names of files of a media type end. Never what a server says: only what is known.
fn ending(kind: &str) -> &'static str {
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
