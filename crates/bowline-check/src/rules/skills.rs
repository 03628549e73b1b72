//! Skills: the list, and every file of the first few, verified as the SDK's client does.

use bowline::Revision;
use bowline::model::ReadResourceResult;
use bowline::model::skill::{
    ID, ListSkillsResult, ReadDirectoryResult, Skill, SkillFile, SkillResources,
};
use bowline::proto::decode::decode;
use bowline::skills::{SkillError, verify_entry, verify_file, verify_instructions};
use serde_json::{Value, json};

use super::{text, unreadable};
use crate::probe::{NotPassed, Outcome, Probe, SKILLS, all_good, ensure, skip};
use crate::rule::{Rule, table};

/// The page of the extension.
const PAGE: &str =
    "https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx";

/// The method that reads folders.
const DIRECTORY: &str = "resources/directory/read";

/// How many pages a folder may have.
const PAGES: usize = 100;

/// How many files of one skill are read.
const FILES: usize = 20;

table! { |probe| Rule::group(PAGE).since(Revision::EXTENSIONS);
    Must "skills.resources" => resources(probe),
        "servers with skills declare resources",
        "Declare the capability resources: the files of skills are resources.";
    Must "skills.list" => list(probe),
        "skills/list returns complete skills, and ends",
        "Give each skill uri, frontmatter and resources: a list of {uri, digest, size}, or \"dynamic\".";
    Must "skills.entries" => entries(probe),
        "skills follow the rules of the extension",
        "Let the URI end in NAME/SKILL.md with the name of the front matter; list each file below that folder once, SKILL.md too.";
    Should "skills.names-unique" => unique_names(probe),
        "no two skills have the same name",
        "Give each skill a name of its own.";
    Portability "skills.metadata" => metadata(probe),
        "metadata of skills are texts",
        "Put numbers and lists in metadata into quotes: some clients reject the whole list.";
    Must "skills.files" => files(probe),
        "files of skills have the size and the digest that are listed",
        "Compute size and sha256 over the bytes that resources/read returns, and list the skills again after a change.";
    Must "skills.front-matter" => front_matter(probe),
        "the front matter of SKILL.md is what is listed",
        "List every field of the YAML as it is in the file.";
    Should "skills.mime-type" => mime_type(probe),
        "SKILL.md is text, with the type text/markdown",
        "Return SKILL.md as text, with the mimeType text/markdown.";
    Must "skills.get" => get(probe),
        "skills/get returns the skill of a URI",
        "Answer skills/get for each listed URI with the same entry as in the list.";
    Must "skills.directory" => directory(probe),
        "resources/directory/read lists the children of folders, and rejects files",
        "Return every direct child with its uri, folders with the mimeType inode/directory, and error -32602 for what is not a folder.";
    Must "skills.unknown" => unknown(probe),
        "skills/get rejects a skill that does not exist with -32602",
        "Answer with error -32602.";
}

async fn declared(probe: &mut Probe) -> Result<Value, NotPassed> {
    let capabilities = probe.capabilities().await?;
    match capabilities["extensions"].get(ID) {
        Some(_) => Ok(capabilities),
        None => skip("the server does not declare skills"),
    }
}

async fn resources(probe: &mut Probe) -> Outcome {
    let capabilities = declared(probe).await?;
    ensure(capabilities["resources"].is_object(), || "capabilities.resources is missing".to_owned())
}

/// The skills as listed, fetched once.
async fn listed(probe: &mut Probe) -> Result<Vec<Value>, NotPassed> {
    declared(probe).await?;
    if let Some(known) = probe.lists.get(SKILLS.method) {
        return known.clone();
    }
    let found = probe.pages(SKILLS).await.map(|(entries, _)| entries);
    if let Ok(entries) = &found {
        probe.lists.insert(SKILLS.method, Ok(entries.clone()));
    }
    probe.note_failure(SKILLS, &found);
    found
}

async fn list(probe: &mut Probe) -> Outcome {
    let skills = listed(probe).await?;
    all_good(skills.iter().filter_map(|it| unreadable::<ListSkillsResult>(SKILLS, it)))
}

/// The skills that can be read.
async fn skills(probe: &mut Probe) -> Result<Vec<Skill>, NotPassed> {
    let listed = listed(probe).await?;
    let read = listed.into_iter().filter_map(|it| serde_json::from_value::<Skill>(it).ok());
    let skills: Vec<Skill> = read.collect();
    if skills.is_empty() { skip("there are no skills") } else { Ok(skills) }
}

async fn entries(probe: &mut Probe) -> Outcome {
    let skills = skills(probe).await?;
    let problems = skills.iter().filter_map(|skill| verify_entry(skill).err());
    let problems = problems.filter(|it| !matches!(it, SkillError::Dynamic { .. }));
    all_good(problems.map(|it| it.to_string()))
}

async fn unique_names(probe: &mut Probe) -> Outcome {
    let skills = skills(probe).await?;
    let mut seen = std::collections::BTreeSet::new();
    let names = skills.iter().filter_map(|it| it.frontmatter.get("name")?.as_str());
    let twice = names.filter(|name| !seen.insert(*name));
    all_good(twice.map(|name| format!("{name:?} is listed twice")))
}

async fn metadata(probe: &mut Probe) -> Outcome {
    let is_good = |it: &&Skill| match it.frontmatter.get("metadata") {
        None | Some(Value::Null) => true,
        Some(metadata) => metadata.as_object().is_some_and(|it| it.values().all(Value::is_string)),
    };
    let skills = skills(probe).await?;
    let wrong = skills.iter().filter(|it| !is_good(it));
    all_good(wrong.map(|it| format!("{:?} has metadata that are not texts", it.uri)))
}

/// The skills whose files can be verified, no more than are sampled of anything.
async fn verifiable(probe: &mut Probe) -> Result<Vec<Skill>, NotPassed> {
    let skills = skills(probe).await?.into_iter().filter(|it| verify_entry(it).is_ok());
    let skills: Vec<Skill> = skills.take(probe.settings.samples).collect();
    if skills.is_empty() { skip("no skill can be verified") } else { Ok(skills) }
}

/// Reads a file as the server has it.
async fn read(
    probe: &mut Probe,
    uri: &str,
) -> Result<Result<ReadResourceResult, String>, NotPassed> {
    let reply = probe.ask("resources/read", json!({ "uri": uri })).await?;
    Ok(match reply.result() {
        Some(result) => decode("resources/read", "result", &result.to_string())
            .map_err(|error| format!("{uri:?}: {error}")),
        None => Err(format!("{uri:?} cannot be read")),
    })
}

async fn files(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let mut count = 0;
    for skill in verifiable(probe).await? {
        let SkillResources::Files(files) = &skill.resources else { continue };
        for file in files.iter().take(FILES) {
            let read = read(probe, &file.uri).await?;
            let verified = read.and_then(|it| verify_file(file, it).map_err(|it| it.to_string()));
            problems.extend(verified.err());
            count += 1;
        }
    }
    all_good(problems)?;
    Ok(Some(format!("{count} files verified")))
}

/// Reads the SKILL.md of each skill.
async fn mains(probe: &mut Probe) -> Result<Vec<(Skill, ReadResourceResult)>, NotPassed> {
    let mut mains = Vec::new();
    for skill in verifiable(probe).await? {
        if let Ok(result) = read(probe, &skill.uri).await? {
            mains.push((skill, result));
        }
    }
    if mains.is_empty() { skip("no SKILL.md can be read") } else { Ok(mains) }
}

async fn front_matter(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    for (skill, result) in mains(probe).await? {
        let Ok(main) = verify_entry(&skill).cloned() else { continue };
        // What has another size or digest is another rule's business.
        let Ok(bytes) = verify_file(&main, result) else { continue };
        problems.extend(verify_instructions(&skill, bytes).err().map(|it| it.to_string()));
    }
    all_good(problems)
}

async fn mime_type(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    for (SkillFile { uri, .. }, contents) in mains(probe).await?.into_iter().filter_map(main) {
        match contents.mime_type.as_deref() {
            _ if contents.as_text().is_none() => problems.push(format!("{uri:?} is not text")),
            Some("text/markdown") => {}
            Some(other) => problems.push(format!("{uri:?} has the type {other:?}")),
            None => problems.push(format!("{uri:?} has no type")),
        }
    }
    all_good(problems)
}

fn main(
    (skill, result): (Skill, ReadResourceResult),
) -> Option<(SkillFile, bowline::model::ResourceContents)> {
    let listed = verify_entry(&skill).ok()?.clone();
    Some((listed, result.contents.into_iter().next()?))
}

async fn get(probe: &mut Probe) -> Outcome {
    let listed = listed(probe).await?;
    let Some(first) = listed.first() else { return skip("there are no skills") };
    let uri = text(first, "uri").to_owned();
    let result = probe.result("skills/get", json!({ "uri": uri })).await?;
    ensure(result.get("skill") == Some(first), || {
        format!("skills/get of {uri:?} differs from the list")
    })
}

/// The folder of the first skill, page by page: everything in it is a child of it, its `SKILL.md`
/// is there, and is not a folder itself.
async fn directory(probe: &mut Probe) -> Outcome {
    let capabilities = declared(probe).await?;
    if capabilities["extensions"][ID]["directoryRead"] != true {
        return skip("the server does not declare directoryRead");
    }
    let skills = skills(probe).await?;
    let found = skills.iter().find_map(|it| Some((&it.uri, it.uri.strip_suffix("/SKILL.md")?)));
    let Some((main, folder)) = found else { return skip("no skill has a folder") };
    let (mut children, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..PAGES {
        let mut params = json!({ "uri": folder });
        if cursor.is_string() {
            params["cursor"] = cursor;
        }
        let page = probe.result(DIRECTORY, params).await?;
        let decoded = decode::<ReadDirectoryResult>(DIRECTORY, "result", &page.to_string());
        let page = match decoded {
            Ok(page) => page,
            Err(error) => return all_good([error.to_string()]),
        };
        children.extend(page.resources.into_iter().map(|it| it.uri));
        cursor = page.next_cursor.map_or(Value::Null, Value::String);
        if cursor.is_null() {
            break;
        }
    }
    ensure(cursor.is_null(), || format!("{folder:?} has more than {PAGES} pages"))?;
    let is_child = |uri: &str| {
        let name = uri.strip_prefix(folder).and_then(|it| it.strip_prefix('/'));
        name.is_some_and(|name| !name.is_empty() && !name.trim_end_matches('/').contains('/'))
    };
    let strangers = children.iter().filter(|uri| !is_child(uri));
    all_good(strangers.map(|uri| format!("{uri:?} is not a direct child of {folder:?}")))?;
    ensure(children.contains(main), || format!("{folder:?} does not have {main:?}"))?;
    let request = (DIRECTORY, json!({ "uri": main }));
    probe.gets_error(request, "resources/directory/read of a file", -32602).await
}

async fn unknown(probe: &mut Probe) -> Outcome {
    declared(probe).await?;
    let uri = "skill://bowline-no-such-skill/SKILL.md";
    let request = ("skills/get", json!({ "uri": uri }));
    probe.gets_error(request, "skills/get of a skill that does not exist", -32602).await
}
