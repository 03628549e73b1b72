//! Skills, as defined by the extension `io.modelcontextprotocol/skills`: instructions for a model
//! that a server lists and serves as resources.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::page::{list_result, millis};
use super::{CacheScope, Meta, RequestMeta, Resource, ResultType, request_params, result_body};
use crate::json::{Extra, Sparse};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/skills";

/// A skill, as a server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The front matter of that file, as JSON.
    pub frontmatter: Extra,
    /// Its files.
    pub resources: SkillResources,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

/// The files of a skill.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillResources {
    /// All of them, `SKILL.md` included.
    Files(Vec<SkillFile>),
    /// They are made on request, so they cannot be listed or verified.
    Dynamic,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillFile {
    /// Its URI.
    pub uri: String,
    /// `sha256:` and 64 hexadecimal digits in lower case, over its bytes.
    pub digest: String,
    /// Its length in bytes.
    pub size: u64,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

const DYNAMIC: &str = "dynamic";

impl Serialize for SkillResources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Files(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str(DYNAMIC),
        }
    }
}

impl<'de> Deserialize<'de> for SkillResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SkillResourcesVisitor)
    }
}

struct SkillResourcesVisitor;

impl<'de> Visitor<'de> for SkillResourcesVisitor {
    type Value = SkillResources;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of files, or {DYNAMIC:?}")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SkillResources, E> {
        match text {
            DYNAMIC => Ok(SkillResources::Dynamic),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, files: A) -> Result<SkillResources, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(files)).map(SkillResources::Files)
    }
}

list_result! {
    /// The result of `skills/list`.
    pub struct ListSkillsResult {
        /// The skills of this page.
        pub skills: Vec<Skill>,
    }
}

/// The parameters of `skills/get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSkillParams<'a> {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The result of `skills/get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSkillResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The skill.
    pub skill: Skill,
    /// How long the result stays fresh, in milliseconds. Since 2026-07-28.
    #[serde(default, deserialize_with = "millis", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may reuse the cached result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

/// The parameters of `resources/directory/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadDirectoryParams<'a> {
    /// The URI of the folder.
    pub uri: String,
    /// The cursor from the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The result of `resources/directory/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadDirectoryResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Its direct children.
    pub resources: Vec<Resource>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How long the result stays fresh, in milliseconds. Since 2026-07-28; optional, but some
    /// clients want it.
    #[serde(default, deserialize_with = "millis", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may reuse the cached result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

request_params!(GetSkillParams, ReadDirectoryParams);
result_body!(GetSkillResult, ReadDirectoryResult);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_a_list_or_dynamic_and_nothing_else() {
        let file = json!({ "uri": "skill://a/SKILL.md", "digest": "sha256:00", "size": 3 });
        for (json, is_valid) in [
            (json!([file]), true),
            (json!([]), true),
            (json!("dynamic"), true),
            (json!("static"), false),
            (json!(null), false),
            (json!({}), false),
            (json!([{ "uri": "skill://a/SKILL.md" }]), false),
            (json!([{ "uri": "a", "digest": "b", "size": -1 }]), false),
        ] {
            let read = serde_json::from_value::<SkillResources>(json.clone());
            assert_eq!(read.is_ok(), is_valid, "{json}");
            if let Ok(resources) = read {
                assert_eq!(serde_json::to_value(&resources).unwrap(), json);
            }
        }
    }
}
