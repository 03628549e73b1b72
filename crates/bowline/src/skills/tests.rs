//! Which folders are skills, and what is wrong with those that are not.

use std::fs;
use std::path::{Path, PathBuf};

use bowline_proto::model::skill::SkillResources;

use super::*;

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let name = format!("bowline-skills-{}-{}", std::process::id(), crate::random::token());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        for (path, bytes) in files {
            folder.write(path, bytes);
        }
        folder
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn open(&self) -> Result<Skills, SkillsError> {
        Skills::open(&self.0)
    }

    fn error(&self) -> String {
        self.open().unwrap_err().to_string().replace(self.0.to_str().unwrap(), "ROOT")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PDF: &[u8] = b"---\nname: pdf\ndescription: About PDF.\n---\nText\n";

fn uris(skills: &Skills) -> Vec<(&str, Vec<&str>)> {
    fn files(resources: &SkillResources) -> Vec<&str> {
        match resources {
            SkillResources::Files(files) => files.iter().map(|it| it.uri.as_str()).collect(),
            SkillResources::Dynamic => Vec::new(),
        }
    }
    skills.list().iter().map(|it| (it.uri.as_str(), files(&it.resources))).collect()
}

#[test]
fn skills_are_found_at_any_depth_with_the_files_below_them() {
    let folder = Folder::new(&[
        ("pdf/SKILL.md", PDF),
        ("pdf/references/forms & more.md", b"Forms"),
        ("pdf/.hidden", b"secret"),
        ("README.md", b"not of a skill"),
        ("group/xml/SKILL.md", b"---\nname: xml\ndescription: About XML.\n---\n"),
        ("group/notes.txt", b"not of a skill"),
    ]);
    let skills = folder.open().unwrap();
    let xml = "skill://group/xml/SKILL.md";
    let pdf = ["skill://pdf/SKILL.md", "skill://pdf/references/forms%20%26%20more.md"];
    assert_eq!(uris(&skills), [(xml, vec![xml]), (pdf[0], pdf.to_vec())]);
    let SkillResources::Files(files) = &skills.list()[1].resources else { panic!("listed") };
    assert_eq!(files[1].size, 5);
    // By `printf Forms | sha256sum`.
    let forms = "sha256:858451263b1b9b4125fd9fb9a40f5959543162e04a14aec2712a45882f2d6e54";
    assert_eq!(files[1].digest, forms);
}

#[test]
fn a_folder_can_be_a_skill_itself() {
    let folder = Folder::new(&[("pdf/SKILL.md", PDF), ("pdf/a.md", b"a")]);
    let skills = Skills::open(folder.0.join("pdf")).unwrap();
    let files = vec!["skill://pdf/SKILL.md", "skill://pdf/a.md"];
    assert_eq!(uris(&skills), [("skill://pdf/SKILL.md", files)]);
}

#[test]
fn mistakes_name_the_file_and_say_what_is_expected() {
    let check = |path: &str, text: &[u8], expected: &str| {
        let error = Folder::new(&[(path, text)]).error();
        assert!(error.contains(expected), "{error}");
    };
    check(
        "pdf/SKILL.md",
        b"# No front matter",
        "ROOT/pdf/SKILL.md: it must begin with front matter",
    );
    check("pdf/SKILL.md", b"---\nname: pdf\n---\n", "its front matter needs `description`, a text");
    check("pdf/SKILL.md", b"---\nname: 1\ndescription: x\n---\n", "needs `name`, a text");
    check("x/SKILL.md", PDF, r#"its name is "pdf", but its folder is "x""#);
    let long = format!("---\nname: {}\ndescription: x\n---\n", "x".repeat(65));
    check("x/SKILL.md", long.as_bytes(), "at most 64 characters");
    for name in ["PDF", "a--b", "-a", "a-", "a_b", "ä"] {
        let text = format!("---\nname: {name}\ndescription: x\n---\n");
        check(&format!("{name}/SKILL.md"), text.as_bytes(), "with single hyphens between them");
    }
    assert!(Skills::open(Path::new("/nonexistent/skills")).is_err());
}

#[test]
fn limits_are_kept() {
    let folder = Folder::new(&[("pdf/SKILL.md", PDF), ("pdf/a", b"aaaa"), ("pdf/b", b"bbbb")]);
    let check = |limits: SkillLimits, expected: &str| {
        let error = Skills::open_within(&folder.0, &limits).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let default = SkillLimits::default;
    check(SkillLimits { files: 2, ..default() }, "the skill has 3 files; at most 2");
    check(SkillLimits { bytes: 50, ..default() }, "at most 50 are allowed");
    check(SkillLimits { total_files: 2, ..default() }, "more than 2 files in all");
    check(SkillLimits { total_bytes: 50, ..default() }, "more than 50 bytes in all");
}

#[cfg(unix)]
#[test]
fn links_must_stay_in_the_folder() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new(&[("pdf/SKILL.md", PDF), ("shared/a.md", b"a")]);
    symlink("../shared/a.md", folder.0.join("pdf/a.md")).unwrap();
    let files = vec!["skill://pdf/SKILL.md", "skill://pdf/a.md"];
    assert_eq!(uris(&folder.open().unwrap()), [("skill://pdf/SKILL.md", files)]);
    symlink("/etc/hostname", folder.0.join("pdf/host")).unwrap();
    assert_eq!(folder.error(), "ROOT/pdf/host: is a link that leaves the folder of skills");
    fs::remove_file(folder.0.join("pdf/host")).unwrap();
    symlink("..", folder.0.join("pdf/up")).unwrap();
    assert!(folder.error().contains("is there a loop?"));
}

#[test]
#[cfg(unix)]
fn a_pipe_is_not_a_file_of_a_skill() {
    let folder = Folder::new(&[("pdf/SKILL.md", PDF)]);
    let made = std::process::Command::new("mkfifo").arg(folder.0.join("pdf/pipe")).status();
    assert!(made.unwrap().success());
    assert_eq!(folder.error(), "ROOT/pdf/pipe: is not a regular file");
}
