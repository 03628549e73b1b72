//! Skills as a client reads them: one file at a time, and nothing that does not verify.

use std::collections::HashSet;

use bowline_proto::base64::STANDARD;
use bowline_proto::json::Extra;
use bowline_proto::model::skill::{Skill, SkillFile, SkillResources};
use bowline_proto::model::{ReadResourceResult, ResourceData};
use serde_json::Value;

use super::catalogue::{check_front_matter, check_size};
use super::folder::SKILL;
use super::{SkillLimits, digest, front_matter};
use crate::Client;
use crate::client::CallError;
use crate::uri_template::push_segment;

/// A skill whose `SKILL.md` was read and is what the server listed.
///
/// ```no_run
/// # async fn example(client: bowline::Client) -> Result<(), Box<dyn std::error::Error>> {
/// for skill in client.list_skills().await? {
///     let loaded = client.load_skill(&skill).await?;
///     println!("{}", loaded.instructions());
///     let forms = loaded.read("references/forms.md").await?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct LoadedSkill {
    client: Client,
    entry: Skill,
    instructions: String,
}

/// Why a skill, or a file of it, must not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The server's entry breaks a rule of the extension.
    #[error("skill {uri:?}: {reason}")]
    Malformed {
        /// The URI of the skill.
        uri: String,
        /// What is wrong with the entry.
        reason: String,
    },
    /// The server makes its files on request, so they cannot be verified.
    #[error("skill {uri:?} has dynamic files, which cannot be verified")]
    Dynamic {
        /// The URI of the skill.
        uri: String,
    },
    /// The skill does not list the file.
    #[error("{uri:?} is not a file of the skill")]
    Unlisted {
        /// The URI of the file.
        uri: String,
    },
    /// The file has another length than the skill says.
    #[error("{uri:?} has {found} bytes, but the skill says {listed}; help: list the skills again")]
    Size {
        /// The URI of the file.
        uri: String,
        /// The length in the entry.
        listed: u64,
        /// The length of what was read.
        found: u64,
    },
    /// The file has other contents than the skill says.
    #[error("{uri:?} does not have the digest that the skill says; help: list the skills again")]
    Digest {
        /// The URI of the file.
        uri: String,
    },
    /// The front matter of `SKILL.md` is not that of the entry.
    #[error("{uri:?}: {reason}")]
    FrontMatter {
        /// The URI of the skill.
        uri: String,
        /// What differs.
        reason: String,
    },
    /// The server answered with something else than the contents of the file.
    #[error("{uri:?}: {reason}")]
    Contents {
        /// The URI of the file.
        uri: String,
        /// What was found.
        reason: &'static str,
    },
    /// The server cannot be asked.
    #[error("failed to read a skill")]
    Call(#[from] CallError),
}

impl Client {
    /// Reads the `SKILL.md` of a skill that the server listed, and verifies it: size, digest and
    /// front matter. No other file is read.
    ///
    /// # Errors
    /// When the entry is malformed, or the file is not the one that was listed.
    pub async fn load_skill(&self, entry: &Skill) -> Result<LoadedSkill, SkillError> {
        let listed = verify_entry(entry)?;
        let bytes = read(self, listed).await?;
        let instructions = verify_instructions(entry, bytes)?;
        Ok(LoadedSkill { client: self.clone(), entry: entry.clone(), instructions })
    }
}

impl LoadedSkill {
    /// The text of `SKILL.md`, with its front matter.
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// The entry that it was verified against. What a person approved is approved for these
    /// digests: when they change, ask again.
    pub fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Reads a file, by its URI or by its path within the skill, and verifies its size and digest.
    ///
    /// # Errors
    /// When the skill does not list it, in which case nothing is read, or it is not the file that
    /// was listed.
    pub async fn read(&self, file: &str) -> Result<Vec<u8>, SkillError> {
        let is_uri = file.contains("://");
        let uri = if is_uri { file.to_owned() } else { self.uri_of(file) };
        let SkillResources::Files(files) = &self.entry.resources else {
            return Err(SkillError::Dynamic { uri: self.entry.uri.clone() });
        };
        match files.iter().find(|it| it.uri == uri) {
            Some(listed) => read(&self.client, listed).await,
            None => Err(SkillError::Unlisted { uri }),
        }
    }

    /// The URI of a path within the skill.
    fn uri_of(&self, path: &str) -> String {
        let mut uri = self.entry.uri.strip_suffix("/SKILL.md").unwrap_or_default().to_owned();
        for segment in path.split('/') {
            uri.push('/');
            push_segment(&mut uri, segment);
        }
        uri
    }
}

impl std::fmt::Debug for LoadedSkill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedSkill").field("entry", &self.entry).finish_non_exhaustive()
    }
}

fn malformed(entry: &Skill, reason: impl Into<String>) -> SkillError {
    SkillError::Malformed { uri: entry.uri.clone(), reason: reason.into() }
}

/// Checks an entry against the rules of the extension; returns its `SKILL.md`.
///
/// # Errors
/// When it breaks one, or its files cannot be verified.
pub fn verify_entry(entry: &Skill) -> Result<&SkillFile, SkillError> {
    let refused = |reason: String| malformed(entry, reason);
    let folder = entry.uri.strip_suffix(SKILL).and_then(|it| it.strip_suffix('/'));
    let folder = folder.ok_or_else(|| refused(format!("its URI must end in /{SKILL}")))?;
    let name = folder.rsplit('/').next();
    check_front_matter(&entry.frontmatter, name).map_err(refused)?;
    let SkillResources::Files(files) = &entry.resources else {
        return Err(SkillError::Dynamic { uri: entry.uri.clone() });
    };
    let limits = SkillLimits::default();
    check_size(files, &limits).map_err(refused)?;
    let mut seen = HashSet::new();
    for SkillFile { uri, digest, .. } in files {
        let inside = uri.strip_prefix(folder).and_then(|it| it.strip_prefix('/'));
        let is_inside =
            inside.is_some_and(|path| path.split('/').all(|it| !matches!(it, "" | "." | "..")));
        if !is_inside {
            return Err(refused(format!("its file {uri:?} is not below {folder:?}")));
        }
        if !seen.insert(uri) {
            return Err(refused(format!("it lists {uri:?} twice")));
        }
        let hex = digest.strip_prefix("sha256:").unwrap_or_default();
        let is_hex = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        if hex.len() != 64 || !hex.bytes().all(is_hex) {
            return Err(refused(format!("the digest of {uri:?} is not sha256: and 64 digits")));
        }
    }
    let main = files.iter().find(|it| it.uri == entry.uri);
    main.ok_or_else(|| malformed(entry, "it does not list its own SKILL.md"))
}

/// Compares what was read of a skill's `SKILL.md` with the entry; returns its text.
///
/// # Errors
/// When its front matter is not that of the entry.
pub fn verify_instructions(entry: &Skill, bytes: Vec<u8>) -> Result<String, SkillError> {
    let uri = || entry.uri.clone();
    let differs = |reason: String| SkillError::FrontMatter { uri: uri(), reason };
    let found = front_matter::read(&bytes).map_err(differs)?;
    compare(&entry.frontmatter, &found).map_err(differs)?;
    String::from_utf8(bytes)
        .map_err(|_| SkillError::Contents { uri: uri(), reason: "it is not UTF-8" })
}

async fn read(client: &Client, listed: &SkillFile) -> Result<Vec<u8>, SkillError> {
    verify_file(listed, client.read_resource(&listed.uri).await?)
}

/// Compares what was read of a file with what the skill says about it; returns its bytes.
///
/// # Errors
/// When it is not that file.
pub fn verify_file(listed: &SkillFile, result: ReadResourceResult) -> Result<Vec<u8>, SkillError> {
    let uri = || listed.uri.clone();
    let bad = |reason| SkillError::Contents { uri: uri(), reason };
    let mut contents = result.contents.into_iter().filter(|it| it.uri == listed.uri);
    let (Some(contents), None) = (contents.next(), contents.next()) else {
        return Err(bad("expected the contents of this one file"));
    };
    let bytes = match contents.data {
        ResourceData::Text(text) => text.into_bytes(),
        ResourceData::Blob(blob) => {
            STANDARD.decode(&blob).ok_or_else(|| bad("its blob is not base64"))?
        }
    };
    let found = bytes.len() as u64;
    if found != listed.size {
        return Err(SkillError::Size { uri: uri(), listed: listed.size, found });
    }
    if digest(&bytes) != listed.digest {
        return Err(SkillError::Digest { uri: uri() });
    }
    Ok(bytes)
}

/// Compares the front matter of an entry with that of the file, field by field.
fn compare(entry: &Extra, file: &Extra) -> Result<(), String> {
    let keys: HashSet<&String> = entry.keys().chain(file.keys()).collect();
    let of = |members: &'_ Extra, key: &str| members.get(key).cloned().unwrap_or_default();
    let differs = |key: &&String| !is_same(&of(entry, key), &of(file, key));
    match keys.into_iter().filter(|it| differs(it)).min() {
        Some(key) => Err(format!("`{key}` of its front matter is not what the server lists")),
        None => Ok(()),
    }
}

/// Whether two values mean the same: `null` is absent, and `1.0` is `1`.
fn is_same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one == two || one.as_f64() == two.as_f64(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => compare(one, two).is_ok(),
        _ => one == two,
    }
}
