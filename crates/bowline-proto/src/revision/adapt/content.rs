//! Content blocks: kinds that a revision lacks become text that the model can still use.

use super::{Adapt, Unsupported, WRAPPED, since, unsupported};
use crate::json::Json;
use crate::model::{
    Annotations, AudioContent, ContentBlock, Resource, ResourceContents, SamplingContent,
    SamplingMessage, ToolResultContent,
};
use crate::revision::Revision::{self, *};

impl Adapt for Annotations {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.last_modified);
        Ok(())
    }
}

impl Adapt for ResourceContents {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.meta);
        Ok(())
    }
}

impl Adapt for ContentBlock {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if let Some(text) = self.in_words(to) {
            *self = Self::text(text);
            return Ok(());
        }
        let (annotations, meta) = match self {
            Self::Text(block) => (&mut block.annotations, &mut block.meta),
            Self::Image(block) => (&mut block.annotations, &mut block.meta),
            Self::Audio(block) => (&mut block.annotations, &mut block.meta),
            Self::ResourceLink(link) => return link.adapt(to),
            Self::EmbeddedResource(block) => {
                block.resource.adapt(to)?;
                (&mut block.annotations, &mut block.meta)
            }
            Self::Other(_) => return Ok(()),
        };
        since(V2025_06_18, to, meta);
        annotations.adapt(to)
    }
}

impl ContentBlock {
    /// The block as text, if the revision does not have its kind.
    fn in_words(&self, to: Revision) -> Option<String> {
        match self {
            Self::Audio(audio) if to < V2025_03_26 => Some(audio_in_words(audio)),
            Self::ResourceLink(link) if to < V2025_06_18 => Some(link_in_words(link)),
            // No revision has it.
            Self::Other(members) => serde_json::to_string(members).ok(),
            _ => None,
        }
    }
}

fn audio_in_words(audio: &AudioContent) -> String {
    let bytes = audio.data.len() / 4 * 3;
    format!(
        "[audio, {}, about {bytes} bytes, which this protocol revision cannot carry]",
        audio.mime_type
    )
}

fn link_in_words(link: &Resource) -> String {
    let title = link.title.as_deref().unwrap_or(&link.name);
    match &link.description {
        Some(description) => format!("{title}: {} ({description})", link.uri),
        None => format!("{title}: {}", link.uri),
    }
}

impl Adapt for SamplingContent {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        let (annotations, meta) = match self {
            Self::Audio(audio) if to < V2025_03_26 => {
                *self = Self::text(audio_in_words(audio));
                return Ok(());
            }
            Self::Text(block) => (&mut block.annotations, &mut block.meta),
            Self::Image(block) => (&mut block.annotations, &mut block.meta),
            Self::Audio(block) => (&mut block.annotations, &mut block.meta),
            Self::ToolUse(_) | Self::ToolResult(_) if to < V2025_11_25 => {
                return unsupported("tools in sampling", to);
            }
            Self::ToolUse(_) => return Ok(()),
            Self::ToolResult(result) => return result.adapt(to),
            Self::Other(_) => return unsupported("such content in sampling", to),
        };
        since(V2025_06_18, to, meta);
        annotations.adapt(to)
    }
}

impl Adapt for ToolResultContent {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        structured(&mut self.structured_content, false, &mut self.content, to);
        self.content.adapt(to)
    }
}

/// Structured content in the form of the revision. Before 2025-06-18 there is none: it becomes
/// text, unless the result already has some. Up to 2025-11-25 it is an object, so any other value
/// is wrapped in one, and with `wraps` an object, too, as its schema is.
pub(super) fn structured(
    structured: &mut Option<Json>,
    wraps: bool,
    content: &mut Vec<ContentBlock>,
    to: Revision,
) {
    if to >= V2026_07_28 {
        return;
    }
    let Some(value) = structured else { return };
    if to < V2025_06_18 {
        if content.is_empty() {
            content.push(ContentBlock::text(value.as_str()));
        }
        *structured = None;
    } else if wraps || !value.is_object() {
        let text = format!(r#"{{"{WRAPPED}":{}}}"#, value.as_str());
        *structured = Json::from_text(text).ok();
    }
}

impl Adapt for SamplingMessage {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_11_25, to, &mut self.meta);
        if to < V2025_11_25 {
            self.content.leave_array();
            if self.content.blocks().len() != 1 {
                return unsupported("message of several blocks", to);
            }
        }
        self.content.blocks_mut().adapt(to)
    }
}
