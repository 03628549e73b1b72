//! Tools that only return: every kind of content, and a failure.

use bowline::model::{ContentBlock, ResourceContents};
use bowline::{Part, base64, tool};

/// A red dot: the smallest image that every viewer shows.
pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\
    \x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0\
    IEND\xaeB`\x82";

/// A sound without samples.
const WAV: &[u8] = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\
    \0\0\0\0";

pub(crate) fn parts() -> impl Part {
    (
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
    )
}

/// Returns a text.
#[tool]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns an image.
#[tool]
async fn test_image_content() -> ContentBlock {
    image()
}

/// Returns a sound.
#[tool]
async fn test_audio_content() -> ContentBlock {
    ContentBlock::audio(base64::STANDARD.encode(WAV), "audio/wav")
}

/// Returns a resource.
#[tool]
async fn test_embedded_resource() -> ContentBlock {
    resource("test://embedded-resource")
}

/// Returns a text, an image and a resource.
#[tool]
async fn test_multiple_content_types() -> Vec<ContentBlock> {
    vec![
        ContentBlock::text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource"),
    ]
}

/// Fails.
#[tool]
async fn test_error_handling() -> Result<(), &'static str> {
    Err("This tool intentionally returns an error for testing")
}

pub(crate) fn image() -> ContentBlock {
    ContentBlock::image(base64::STANDARD.encode(PNG), "image/png")
}

pub(crate) fn resource(uri: &str) -> ContentBlock {
    let text = "This is an embedded resource content.";
    ContentBlock::resource(ResourceContents::text(uri, text).with_mime_type("text/plain"))
}
