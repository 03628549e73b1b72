//! Skills: listed, loaded, and verified as they are read.

use bowline::skills::SkillError;

use crate::check::{Outcome, same};
use crate::guest::Guest;

pub(super) async fn walk(guest: &Guest) -> Outcome {
    let skills = guest.client.list_skills().await?;
    let uris: Vec<_> = skills.iter().map(|it| it.uri.as_str()).collect();
    same("skills", &uris[..], &["skill://reports/SKILL.md"])?;
    let loaded = guest.client.load_skill(&skills[0]).await?;
    same("instructions", &loaded.instructions().ends_with("references/outline.md).\n"), &true)?;
    let outline = loaded.read("references/outline.md").await?;
    same("outline", &outline.starts_with(b"# Outline\r\n"), &true)?;
    match loaded.read("references/other.md").await {
        Err(SkillError::Unlisted { .. }) => Ok(()),
        other => Err(format!("a file that is not listed ended with {other:?}").into()),
    }
}
