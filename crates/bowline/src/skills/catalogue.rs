//! The skills that were found, as the extension lists and serves them.

use std::collections::BTreeMap;
use std::path::Path;

use bowline_proto::base64::STANDARD;
use bowline_proto::error::ErrorObject;
use bowline_proto::json::Extra;
use bowline_proto::model::skill::{
    GetSkillResult, ListSkillsResult, ReadDirectoryResult, Skill, SkillFile, SkillResources,
};
use bowline_proto::model::{self, CacheScope, ResourceContents, ResourceData};
use serde_json::Value;

use super::folder::{File, SKILL};
use super::{SkillLimits, SkillsError, digest, front_matter};
use crate::Resource;
use crate::uri_template::push_segment;

/// What a folder is called, instead of a type.
const FOLDER: &str = "inode/directory";

/// What a server knows of its skills.
#[derive(Default)]
pub(super) struct Catalogue {
    pub(super) skills: Vec<Skill>,
    /// The children of each folder, by its URI.
    folders: BTreeMap<String, Vec<model::Resource>>,
    page: usize,
}

impl Catalogue {
    /// Makes a catalogue of files, and a resource of each.
    ///
    /// # Errors
    /// When a skill breaks a rule of the extension.
    pub(super) fn new(
        root: &Path,
        files: Vec<File>,
        limits: &SkillLimits,
    ) -> Result<(Self, Vec<Resource>), SkillsError> {
        let mut catalogue = Self { page: limits.page.max(1), ..Self::default() };
        let listed: Vec<_> = files.iter().map(listed).collect();
        let mut resources = Vec::new();
        for (file, entry) in files.iter().zip(&listed) {
            let Some((SKILL, folder)) = split(&file.path) else { continue };
            let at = || file.path.iter().fold(root.to_owned(), |at, name| at.join(name));
            let failed = |reason: String| SkillsError::new(&at(), reason);
            let frontmatter = front_matter::read(&file.bytes).map_err(failed)?;
            check_front_matter(&frontmatter, folder.last().map(String::as_str)).map_err(failed)?;
            check_metadata(&frontmatter).map_err(failed)?;
            let own = files.iter().zip(&listed).filter(|(it, _)| it.path.starts_with(folder));
            let own: Vec<_> = own.map(|(_, listed)| listed.clone()).collect();
            check_size(&own, limits).map_err(failed)?;
            catalogue.skills.push(Skill {
                uri: entry.uri.clone(),
                frontmatter,
                resources: SkillResources::Files(own),
                extra: Default::default(),
            });
        }
        for (file, entry) in files.into_iter().zip(listed) {
            resources.push(catalogue.file(file, &entry));
        }
        Ok((catalogue, resources))
    }

    /// Enters a file into its folder, and the folders above it.
    fn file(&mut self, file: File, listed: &SkillFile) -> Resource {
        let File { path, bytes } = file;
        let name = path.last().cloned().unwrap_or_default();
        let mime_type = mime_type(&path, &bytes);
        let front_matter =
            self.skills.iter().find(|it| it.uri == listed.uri).map(|it| &it.frontmatter);
        let text = |key: &str| front_matter.and_then(|it| it.get(key)?.as_str()).map(str::to_owned);
        let definition = model::Resource {
            uri: listed.uri.clone(),
            name: text("name").unwrap_or(name),
            description: text("description"),
            mime_type: Some(mime_type.to_owned()),
            size: Some(listed.size),
            ..model::Resource::default()
        };
        for depth in (1..path.len()).rev() {
            let children = self.folders.entry(uri(&path[..depth])).or_default();
            let child =
                if depth + 1 == path.len() { definition.clone() } else { folder(&path[..=depth]) };
            if children.iter().all(|it| it.uri != child.uri) {
                children.push(child);
            }
        }
        let data = match String::from_utf8(bytes) {
            Ok(text) => ResourceData::Text(text),
            Err(error) => ResourceData::Blob(STANDARD.encode(error.as_bytes())),
        };
        Resource::from_model(definition, move |_, uri| {
            let contents = match &data {
                ResourceData::Text(text) => ResourceContents::text(uri, text),
                ResourceData::Blob(blob) => ResourceContents::blob(uri, blob),
            };
            std::future::ready(contents.with_mime_type(mime_type))
        })
    }

    pub(super) fn list(&self, cursor: Option<&str>) -> Result<ListSkillsResult, ErrorObject> {
        let (skills, next_cursor) = self.page_of("skills/list", &self.skills, cursor)?;
        let (ttl_ms, cache_scope) = (Some(0), Some(CacheScope::default()));
        Ok(ListSkillsResult { skills, next_cursor, ttl_ms, cache_scope, ..Default::default() })
    }

    pub(super) fn get(&self, uri: &str) -> Result<GetSkillResult, ErrorObject> {
        let skill = self.skills.iter().find(|it| it.uri == uri).cloned();
        let skill = skill.ok_or_else(|| {
            ErrorObject::invalid_params(format!("skills/get: no skill has the URI {uri:?}"))
        })?;
        Ok(GetSkillResult {
            result_type: None,
            skill,
            ttl_ms: Some(0),
            cache_scope: Some(CacheScope::default()),
            meta: None,
            extra: Default::default(),
        })
    }

    pub(super) fn read_directory(
        &self,
        uri: &str,
        cursor: Option<&str>,
    ) -> Result<ReadDirectoryResult, ErrorObject> {
        const METHOD: &str = "resources/directory/read";
        let children = self.folders.get(uri).ok_or_else(|| {
            ErrorObject::invalid_params(format!("{METHOD}: {uri:?} is not a folder of a skill"))
        })?;
        let (resources, next_cursor) = self.page_of(METHOD, children, cursor)?;
        let (ttl_ms, cache_scope) = (Some(0), Some(CacheScope::default()));
        let rest = ReadDirectoryResult::default();
        Ok(ReadDirectoryResult { resources, next_cursor, ttl_ms, cache_scope, ..rest })
    }

    /// A page, and the cursor of the next one. Nothing changes while the server runs, so a cursor
    /// is a position.
    fn page_of<T: Clone>(
        &self,
        method: &str,
        items: &[T],
        cursor: Option<&str>,
    ) -> Result<(Vec<T>, Option<String>), ErrorObject> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                cursor.parse().ok().filter(|at| *at < items.len()).ok_or_else(|| {
                    let message = format!("{method}: params.cursor was not issued by this server");
                    ErrorObject::invalid_params(message)
                })?
            }
        };
        let end = items.len().min(start + self.page);
        let next_cursor = (end < items.len()).then(|| end.to_string());
        Ok((items[start..end].to_vec(), next_cursor))
    }
}

/// The name of a file and the folder that it is in.
fn split(path: &[String]) -> Option<(&str, &[String])> {
    path.split_last().map(|(name, folder)| (name.as_str(), folder))
}

fn listed(file: &File) -> SkillFile {
    SkillFile {
        uri: uri(&file.path),
        digest: digest(&file.bytes),
        size: file.bytes.len() as u64,
        extra: Default::default(),
    }
}

fn folder(path: &[String]) -> model::Resource {
    model::Resource {
        uri: uri(path),
        name: path.last().cloned().unwrap_or_default(),
        mime_type: Some(FOLDER.to_owned()),
        ..model::Resource::default()
    }
}

fn uri(path: &[String]) -> String {
    let mut uri = "skill:/".to_owned();
    for segment in path {
        uri.push('/');
        push_segment(&mut uri, segment);
    }
    uri
}

/// The rules for names are those of Agent Skills.
pub(super) fn check_front_matter(front_matter: &Extra, folder: Option<&str>) -> Result<(), String> {
    let text = |key: &str| match front_matter.get(key).and_then(Value::as_str).map(str::trim) {
        None | Some("") => Err(format!("its front matter needs `{key}`, a text")),
        Some(text) => Ok(text.to_owned()),
    };
    let (name, _) = (text("name")?, text("description")?);
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    if name.len() > 64 || !name.split('-').all(is_word) {
        return Err(format!(
            "the name {name:?} must have at most 64 characters: a to z and 0 to 9, with single \
             hyphens between them"
        ));
    }
    match folder {
        Some(folder) if folder == name => Ok(()),
        folder => Err(format!(
            "its name is {name:?}, but its folder is {:?}; help: they must be the same",
            folder.unwrap_or_default()
        )),
    }
}

/// A client that meets anything but texts in `metadata` may reject the whole list.
fn check_metadata(front_matter: &Extra) -> Result<(), String> {
    let members = match front_matter.get("metadata") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err("`metadata` of its front matter must be a map of texts".to_owned()),
    };
    match members.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((key, _)) => Err(format!(
            "`metadata.{key}` of its front matter must be a text; help: put it in quotes: \
             `{key}: \"…\"`"
        )),
    }
}

pub(super) fn check_size(files: &[SkillFile], limits: &SkillLimits) -> Result<(), String> {
    if files.len() > limits.files {
        return Err(format!(
            "the skill has {} files; at most {} are allowed",
            files.len(),
            limits.files
        ));
    }
    let bytes: u64 = files.iter().map(|it| it.size).sum();
    if bytes > limits.bytes {
        return Err(format!("the skill has {bytes} bytes; at most {} are allowed", limits.bytes));
    }
    Ok(())
}

/// The type of a file, by its ending.
fn mime_type(path: &[String], bytes: &[u8]) -> &'static str {
    let name = path.last().map(String::as_str).unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref().unwrap_or_default() {
        "md" => "text/markdown",
        "css" => "text/css",
        "csv" => "text/csv",
        "html" => "text/html",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "zip" => "application/zip",
        _ if std::str::from_utf8(bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}
