//! `bowline skills`: the skills of a server, verified as they are read.

use bowline::base64::STANDARD;
use bowline::model::ResourceContents;
use bowline::model::skill::Skill;
use bowline::skills::{LoadedSkill, SkillError};
use bowline::{Client, Json, with_causes};
use clap::Args;
use serde_json::json;

use super::list::SKILLS;
use crate::failure::{Code, Failure, malformed};
use crate::render::content::ContentRenderer;
use crate::screen::OutputArgs;
use crate::session::Invocation;
use crate::target::TargetOptions;
use crate::text::did_you_mean;

/// List a server's skills, or read a skill or its files
///
/// What is read is verified: its size and digest, the front matter of SKILL.md, and that the skill
/// lists the file. Nothing else is printed.
#[derive(Args)]
#[command(override_usage = "bowline skills [OPTIONS] TARGET [SKILL [FILE]...]\n       \
    bowline skills [OPTIONS] [SKILL [FILE]...] -- COMMAND [ARGS]...")]
pub(crate) struct Skills {
    /// The server, unless a command follows `--`; a skill by its name or URI; files of it
    #[arg(value_name = "TARGET SKILL FILE")]
    words: Vec<String>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Skills {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        invocation
            .run(async |session| {
                let screen = &session.screen;
                let result = SKILLS.fetch(session).await?;
                let [wanted, files @ ..] = words else {
                    let table = || Ok(SKILLS.table(&SKILLS.items(&result, screen)?, screen));
                    return screen.show(&result, table);
                };
                let skills: Vec<(Skill, Json)> = SKILLS.read(&result, screen)?;
                let loaded = load(&session.client, &skills, wanted).await?;
                let main = [loaded.entry().uri.clone()];
                for file in if files.is_empty() { &main } else { files } {
                    let bytes = loaded.read(file).await.map_err(failure)?;
                    let result = contents(file, bytes)?;
                    let text = || ContentRenderer::new(screen, None).resource_result(&result);
                    screen.show(&result, text)?;
                }
                Ok(())
            })
            .await
    }
}

/// Loads the skill with this name or URI.
async fn load(
    client: &Client,
    skills: &[(Skill, Json)],
    wanted: &str,
) -> Result<LoadedSkill, Failure> {
    let name = |skill: &Skill| skill.frontmatter.get("name")?.as_str().map(str::to_owned);
    let is_wanted = |skill: &Skill| skill.uri == wanted || name(skill).as_deref() == Some(wanted);
    let mut found = skills.iter().filter(|(skill, _)| is_wanted(skill));
    match (found.next(), found.next()) {
        (Some((skill, _)), None) => client.load_skill(skill).await.map_err(failure),
        (Some(_), Some(_)) => {
            let failure = Failure::usage(format!("several skills have the name {wanted:?}"));
            Err(failure.with_remedy("name one by its URI"))
        }
        (None, _) => {
            let names: Vec<String> = skills.iter().filter_map(|(skill, _)| name(skill)).collect();
            let remedy = did_you_mean(wanted, names.iter().map(String::as_str))
                .unwrap_or_else(|| "`bowline skills` lists them".to_owned());
            Err(Failure::usage(format!("there is no skill {wanted:?}")).with_remedy(remedy))
        }
    }
}

/// The contents of a file, as `resources/read` returns them.
fn contents(file: &str, bytes: Vec<u8>) -> Result<Json, Failure> {
    let contents = contents_of(file, bytes);
    Json::new(&json!({ "contents": [contents] })).map_err(|error| malformed(&error.to_string()))
}

pub(crate) fn contents_of(file: &str, bytes: Vec<u8>) -> ResourceContents {
    match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(file, text),
        Err(error) => ResourceContents::blob(file, STANDARD.encode(error.as_bytes())),
    }
}

pub(crate) fn failure(error: SkillError) -> Failure {
    match error {
        SkillError::Call(error) => error.into(),
        error => Failure::new(Code::Refused, with_causes(&error)),
    }
}
