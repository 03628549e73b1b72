//! `bowline serve --skills` and `bowline skills`, one talking to the other.

use crate::fixture::{Folder, PROGRAM, program, said};

/// Runs `bowline skills` on a folder that `bowline serve` serves.
fn skills(folder: &str, words: &[&str]) -> (String, String, Option<i32>) {
    let home = Folder::new();
    let mut command = program(&home);
    command.arg("skills").args(words).args(["--", PROGRAM, "serve", "--skills", folder]);
    let told = said(&mut command);
    (told.out, told.err, told.code)
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/skills");

#[test]
fn a_folder_of_skills_is_listed_and_read() {
    let (out, err, code) = skills(FOLDER, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("skill://code-review/SKILL.md    Review a change for"), "{out}");
    assert!(out.contains("skill://release-notes/SKILL.md"), "{out}");
    let (out, _, _) = skills(FOLDER, &["code-review"]);
    assert!(out.starts_with("---\nname: code-review\n"), "{out}");
    let (out, _, _) = skills(FOLDER, &["code-review", "references/checklist.md"]);
    assert!(out.starts_with("# Checklist\n"), "{out}");
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let (_, err, code) = skills(FOLDER, &["code-revue"]);
    assert!(err.contains("there is no skill \"code-revue\"\n  did you mean code-review?"), "{err}");
    assert_eq!(code, Some(1));
    let (_, err, code) = skills(FOLDER, &["code-review", "secrets.md"]);
    assert!(err.contains("\"skill://code-review/secrets.md\" is not a file of the skill"), "{err}");
    assert_eq!(code, Some(7));
    let home = Folder::new();
    let told = said(program(&home).args(["serve", "--skills"]).arg(home.path()));
    assert!(told.err.contains("there are no skills in it\n  a skill is a folder with a SKILL.md"));
    assert_eq!(told.code, Some(1));
}
