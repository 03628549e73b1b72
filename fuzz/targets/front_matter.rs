//! Front matter of skills: it is read or refused with a sentence, and what JSON says is what the
//! same text says as YAML.
//!
//! An input begins with a letter: `f` is followed by a file, `j` by the front matter as JSON.

#![no_main]

use bowline::model::skill::{Skill, SkillResources};
use bowline::proto::json::Extra;
use bowline::skills::{SkillError, verify_instructions};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| match input.split_first() {
    Some((b'f', file)) => read(file),
    Some((b'j', text)) => same(text),
    _ => {}
});

/// The verdict on a file, for a server that lists this.
fn verdict(frontmatter: Extra, file: &[u8]) -> Result<String, SkillError> {
    let entry = Skill {
        uri: "skill://x/SKILL.md".to_owned(),
        frontmatter,
        resources: SkillResources::Dynamic,
        extra: Default::default(),
    };
    verify_instructions(&entry, file.to_vec())
}

fn read(file: &[u8]) {
    let verdict = verdict(Extra::new(), file);
    match &verdict {
        Ok(text) => assert_eq!(text.as_bytes(), file),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// YAML includes JSON.
fn same(text: &[u8]) {
    let Ok(Value::Object(members)) = serde_json::from_slice(text) else { return };
    let json = serde_json::to_string(&members).expect("it was JSON");
    // Of what JSON can say, YAML refuses characters that cannot be printed, and depth is limited.
    let is_odd = |letter: char| letter.is_control() || "\u{feff}\u{fffe}\u{ffff}".contains(letter);
    if json.contains(is_odd) || json.matches(['[', '{']).count() > 12 || json.len() > 1000 {
        return;
    }
    let file = format!("---\n{json}\n---\nWords.\n");
    let verdict = verdict(members, file.as_bytes());
    assert!(verdict.is_ok(), "{verdict:?}: {file}");
}
