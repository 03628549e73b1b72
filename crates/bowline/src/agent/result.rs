//! The result of a tool as text and images.

use bowline_proto::model::{CallToolResult, ContentBlock, ImageContent, ResourceContents};

/// A result as providers take it.
pub(super) struct Shown<'a> {
    pub(super) text: String,
    pub(super) images: Vec<&'a ImageContent>,
    pub(super) is_error: bool,
}

impl<'a> Shown<'a> {
    pub(super) fn of(result: &'a CallToolResult) -> Self {
        let mut texts: Vec<String> = result.content.iter().filter_map(text).collect();
        if let Some(data) = result.structured_content.as_ref().filter(|_| texts.is_empty()) {
            texts.push(data.as_str().to_owned());
        }
        let images = result.content.iter().filter_map(|block| match block {
            ContentBlock::Image(image) => Some(image),
            _ => None,
        });
        let is_error = result.is_error == Some(true);
        Self { text: texts.join("\n"), images: images.collect(), is_error }
    }
}

/// What a model can read of a block. What it cannot is named, so that it knows of it.
fn text(block: &ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        ContentBlock::Image(_) => None,
        ContentBlock::Audio(audio) => Some(format!("[audio: {}]", audio.mime_type)),
        ContentBlock::ResourceLink(link) => Some(format!("[resource: {} {}]", link.name, link.uri)),
        ContentBlock::EmbeddedResource(embedded) => Some(contents(&embedded.resource)),
        ContentBlock::Other(other) => serde_json::to_string(other).ok(),
    }
}

fn contents(resource: &ResourceContents) -> String {
    match resource.as_text() {
        Some(text) => text.to_owned(),
        None => format!("[resource: {}]", resource.uri),
    }
}
