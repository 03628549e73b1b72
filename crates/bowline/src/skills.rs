//! Skills: instructions for models, with the files they need, served from a folder and verified by
//! clients. The extension `io.modelcontextprotocol/skills`.
//!
//! A skill is a folder with a file `SKILL.md`, which begins with front matter:
//!
//! ```text
//! skills/
//!   pdf-processing/
//!     SKILL.md            ---
//!     references/         name: pdf-processing
//!       forms.md          description: Fill in forms and extract text from PDF files.
//!                         ---
//!                         # How to …
//! ```
//!
//! [`Server::skills`] serves such a folder. With the feature `client`,
//! `Client::list_skills` lists what a server has, and `Client::load_skill` reads one, file by file,
//! and returns nothing that does not verify.

mod catalogue;
mod folder;
mod front_matter;
#[cfg(test)]
mod tests;
#[cfg(feature = "client")]
mod verify;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bowline_proto::method::{GetSkill, ListSkills, Method, ReadDirectory};
use bowline_proto::model::skill::{ID, Skill};
use bowline_proto::revision::{Adapt, Revision};
use ring::digest::SHA256;
use serde::Deserialize;

use self::catalogue::Catalogue;
#[cfg(feature = "client")]
pub use self::verify::{LoadedSkill, SkillError, verify_entry, verify_file, verify_instructions};
use crate::{BuildError, Context, Extension, HandlerError, Part, Parts, Resource, Server};

/// A folder of skills, as a part of a server.
///
/// Everything is read once: digests, sizes and the bytes that are served belong together. After a
/// change in the folder, open it again.
#[must_use = "skills do nothing until they are added to a server"]
pub struct Skills {
    catalogue: Catalogue,
    resources: Vec<Resource>,
}

/// How much skills may have.
#[derive(Debug, Clone)]
pub struct SkillLimits {
    /// Files of one skill: 512, the most that clients have to accept.
    pub files: usize,
    /// Bytes of one skill: 16 MiB, the most that clients have to accept.
    pub bytes: u64,
    /// Files of all skills in a folder: 4,096.
    pub total_files: usize,
    /// Bytes of all skills in a folder, which are kept in memory: 64 MiB.
    pub total_bytes: u64,
    /// Entries on one page of a list: 100.
    pub page: usize,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self { files: 512, bytes: 16 << 20, total_files: 4_096, total_bytes: 64 << 20, page: 100 }
    }
}

/// Why a folder of skills cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct SkillsError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl SkillsError {
    fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), reason: reason.into() }
    }
}

impl Skills {
    /// Reads a folder: every folder in it, at any depth, that has a `SKILL.md` is a skill with all
    /// the files below it. Hidden files are left out, and so are files that belong to no skill.
    ///
    /// # Errors
    /// When a skill is not valid, a link leaves the folder, or there is too much.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SkillsError> {
        Self::open_within(path, &SkillLimits::default())
    }

    /// The same, with other limits.
    ///
    /// # Errors
    /// When a skill is not valid, a link leaves the folder, or there is too much.
    pub fn open_within(path: impl AsRef<Path>, limits: &SkillLimits) -> Result<Self, SkillsError> {
        let path = path.as_ref();
        let files = folder::read(path, limits)?;
        let (catalogue, resources) = Catalogue::new(path, files, limits)?;
        Ok(Self { catalogue, resources })
    }

    /// The skills that were found.
    pub fn list(&self) -> &[Skill] {
        &self.catalogue.skills
    }
}

impl Server {
    /// Serves the skills in a folder: see [`skills`](crate::skills).
    ///
    /// The folder is read now. Mistakes in it are reported when the server is served, before the
    /// first client connects; [`Skills::open`] reports them at once.
    pub fn skills(self, folder: impl AsRef<Path>) -> Self {
        let mut parts = Parts::default();
        match Skills::open(folder) {
            Ok(skills) => parts.add(skills),
            Err(error) => parts.problem = Some(BuildError::Skills(error)),
        }
        self.with(parts)
    }
}

#[derive(Deserialize)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct UriParams {
    uri: String,
    cursor: Option<String>,
}

/// The first revision whose clients and servers can use extensions.
const SINCE: Revision = Revision::EXTENSIONS;

impl Part for Skills {
    fn add_to(self, parts: &mut Parts) {
        let Self { catalogue, resources } = self;
        let catalogue = Arc::new(catalogue);
        let (lists, gets, reads) = (Arc::clone(&catalogue), Arc::clone(&catalogue), catalogue);
        let extension = Extension::new(ID)
            .setting("directoryRead", true)
            .method(ListSkills::NAME, SINCE.., move |context: Context, params: ListParams| {
                let page = lists.list(params.cursor.as_deref());
                async move { adapted(&context, page?) }
            })
            .method(GetSkill::NAME, SINCE.., move |context: Context, params: UriParams| {
                let skill = gets.get(&params.uri);
                async move { adapted(&context, skill?) }
            })
            .method(ReadDirectory::NAME, SINCE.., move |context: Context, params: UriParams| {
                let page = reads.read_directory(&params.uri, params.cursor.as_deref());
                async move { adapted(&context, page?) }
            });
        parts.offer_resources();
        parts.add(extension);
        parts.add(resources);
    }
}

/// A result as the revision of the caller has it.
fn adapted<R: Adapt>(context: &Context, mut result: R) -> Result<R, HandlerError> {
    result.adapt(context.caller().revision)?;
    Ok(result)
}

impl std::fmt::Debug for Skills {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let uris = self.catalogue.skills.iter().map(|it| &it.uri);
        f.debug_set().entries(uris).finish()
    }
}

/// The digest of a file, as entries have it.
fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in ring::digest::digest(&SHA256, bytes).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
