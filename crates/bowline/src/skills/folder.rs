//! Reads a folder of skills, once: what is listed, what is hashed and what is served are the same
//! bytes.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::{SkillLimits, SkillsError};

/// The name of the file that makes a folder a skill.
pub(super) const SKILL: &str = "SKILL.md";

/// How deep folders may be nested.
const DEEPEST: usize = 32;

/// A file, as it was when the folder was read.
pub(super) struct File {
    /// Where it is below the root, segment by segment. Never empty.
    pub(super) path: Vec<String>,
    pub(super) bytes: Vec<u8>,
}

/// Reads every file below a folder that belongs to a skill, in the order of their paths. Hidden
/// files and folders, whose names begin with a dot, are left out.
///
/// # Errors
/// When something cannot be read, leads out of the folder, or exceeds a limit.
pub(super) fn read(root: &Path, limits: &SkillLimits) -> Result<Vec<File>, SkillsError> {
    let failed = |error: io::Error| SkillsError::new(root, error.to_string());
    let root = fs::canonicalize(root).map_err(failed)?;
    if !root.is_dir() {
        return Err(SkillsError::new(&root, "is not a folder"));
    }
    let mut walk = Walk { root: &root, limits, files: Vec::new(), bytes: 0 };
    // A folder that is a skill itself is named like one that contains it.
    let is_skill = root.join(SKILL).is_file();
    let name = root.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let prefix = if is_skill { vec![name.to_owned()] } else { Vec::new() };
    walk.folder(&root, &prefix, is_skill)?;
    Ok(walk.files)
}

struct Walk<'a> {
    root: &'a Path,
    limits: &'a SkillLimits,
    files: Vec<File>,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(
        &mut self,
        folder: &Path,
        path: &[String],
        in_skill: bool,
    ) -> Result<(), SkillsError> {
        let failed = |error: io::Error| SkillsError::new(folder, error.to_string());
        if path.len() > DEEPEST {
            let reason = format!("is nested deeper than {DEEPEST} folders; help: is there a loop?");
            return Err(SkillsError::new(folder, reason));
        }
        let entries = fs::read_dir(folder).map_err(failed)?;
        let mut names: Vec<_> = entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<_>>()
            .map_err(failed)?;
        names.sort();
        let in_skill = in_skill || folder.join(SKILL).is_file();
        for name in names {
            let at = folder.join(&name);
            let Some(name) = name.to_str() else {
                return Err(SkillsError::new(&at, "has a name that is not UTF-8"));
            };
            if name.starts_with('.') {
                continue;
            }
            let mut path = path.to_vec();
            path.push(name.to_owned());
            let target = self.inside(&at)?;
            if target.is_dir() {
                self.folder(&target, &path, in_skill)?;
            } else if in_skill {
                self.file(&target, path)?;
            }
        }
        Ok(())
    }

    /// Where a path leads to. A link must not leave the folder: it could publish any file.
    fn inside(&self, at: &Path) -> Result<PathBuf, SkillsError> {
        let target =
            fs::canonicalize(at).map_err(|error| SkillsError::new(at, error.to_string()))?;
        if target.starts_with(self.root) {
            return Ok(target);
        }
        Err(SkillsError::new(at, "is a link that leaves the folder of skills"))
    }

    fn file(&mut self, at: &Path, path: Vec<String>) -> Result<(), SkillsError> {
        let failed = |error: io::Error| SkillsError::new(at, error.to_string());
        let SkillLimits { total_files, total_bytes, .. } = *self.limits;
        if self.files.len() >= total_files {
            let reason = format!("the skills have more than {total_files} files in all");
            return Err(SkillsError::new(self.root, reason));
        }
        // Before it is opened: that of a pipe would wait for somebody who writes.
        if !fs::metadata(at).map_err(failed)?.is_file() {
            return Err(SkillsError::new(at, "is not a regular file"));
        }
        let left = total_bytes.saturating_sub(self.bytes);
        let mut bytes = Vec::new();
        // The length that the file system tells may be outdated.
        let file = fs::File::open(at).map_err(failed)?;
        file.take(left.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > left {
            let reason = format!("the skills have more than {total_bytes} bytes in all");
            return Err(SkillsError::new(self.root, reason));
        }
        self.bytes += bytes.len() as u64;
        self.files.push(File { path, bytes });
        Ok(())
    }
}
