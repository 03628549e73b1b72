//! Results that write themselves: the same bytes as serde's, but without examining each byte.
//!
//! Only for the most common traffic. The rest is left to serde.

use super::{CallToolResult, ContentBlock};
use crate::raw::write_string;

impl CallToolResult {
    /// Appends its JSON, byte for byte the same as serde's.
    ///
    /// # Errors
    /// Never for values that were parsed or built here; otherwise the error of serde.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        if self.meta.is_some() || !self.extra.is_empty() {
            return serde_json::to_writer(out, self);
        }
        out.push(b'{');
        if let Some(kind) = &self.result_type {
            out.extend_from_slice(br#""resultType":"#);
            write_string(out, kind.as_str());
            out.push(b',');
        }
        out.extend_from_slice(br#""content":["#);
        for (number, block) in self.content.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            block.write(out)?;
        }
        out.push(b']');
        if let Some(content) = &self.structured_content {
            out.extend_from_slice(br#","structuredContent":"#);
            out.extend_from_slice(content.as_str().as_bytes());
        }
        match self.is_error {
            Some(true) => out.extend_from_slice(br#","isError":true"#),
            Some(false) => out.extend_from_slice(br#","isError":false"#),
            None => {}
        }
        out.push(b'}');
        Ok(())
    }
}

impl ContentBlock {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match self {
            Self::Text(text) if text.annotations.is_none() && text.meta.is_none() => {
                out.extend_from_slice(br#"{"type":"text","text":"#);
                write_string(out, &text.text);
            }
            Self::Image(image) if image.annotations.is_none() && image.meta.is_none() => {
                out.extend_from_slice(br#"{"type":"image""#);
                write_data(out, &image.data, &image.mime_type);
            }
            Self::Audio(audio) if audio.annotations.is_none() && audio.meta.is_none() => {
                out.extend_from_slice(br#"{"type":"audio""#);
                write_data(out, &audio.data, &audio.mime_type);
            }
            _ => return serde_json::to_writer(out, self),
        }
        out.push(b'}');
        Ok(())
    }
}

fn write_data(out: &mut Vec<u8>, data: &str, mime_type: &str) {
    out.extend_from_slice(br#","data":"#);
    write_string(out, data);
    out.extend_from_slice(br#","mimeType":"#);
    write_string(out, mime_type);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::model::{Annotations, Meta, Resource, ResultType, TextContent};

    fn check(result: &CallToolResult) {
        let mut out = b"before".to_vec();
        result.write(&mut out).unwrap();
        let expected = format!("before{}", serde_json::to_string(result).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn results_are_written_as_serde_writes_them() {
        let plain = CallToolResult::success(vec![ContentBlock::text("a \"quoted\" line\n")]);
        check(&plain);
        check(&CallToolResult::default());
        check(&CallToolResult::failure("no"));
        check(&CallToolResult { result_type: Some(ResultType::Complete), ..plain.clone() });
        let structured_content = Some(Json::from_text(r#"{"a": [1, 2]}"#.to_owned()).unwrap());
        check(&CallToolResult { structured_content, ..plain.clone() });
        check(&CallToolResult { meta: Some(Meta::default()), ..plain.clone() });
        let extra = [("mine".to_owned(), 1.into())].into_iter().collect();
        check(&CallToolResult { extra, ..plain });
        let annotated = TextContent {
            text: "x".to_owned(),
            annotations: Some(Annotations::default()),
            meta: Some(Meta::default()),
        };
        check(&CallToolResult::success(vec![
            ContentBlock::text(""),
            ContentBlock::image("AAAA", "image/png"),
            ContentBlock::audio("BBBB", "audio/\"wav\""),
            ContentBlock::ResourceLink(Resource::default()),
            ContentBlock::Text(annotated),
        ]));
    }
}
