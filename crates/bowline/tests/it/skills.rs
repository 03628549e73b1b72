//! Skills from a folder: served in both eras, read and verified by the client.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::model::skill::{Skill, SkillResources};
use bowline::skills::{SkillError, SkillLimits, Skills};
use bowline::{Context, ErrorObject, Extension, Resource, Revision, Server, testing};
use serde_json::{Value, json};

use crate::raw::{Raw, code, modern, request};

/// A folder of skills, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-it-skills-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        folder.write("pdf/SKILL.md", PDF.as_bytes());
        folder.write("pdf/references/forms.md", b"Fill in the boxes.\r\n");
        folder.write("pdf/logo.png", &[0x89, b'P', 0xff, 0]);
        folder.write("xml/SKILL.md", b"---\nname: xml\ndescription: XML.\n---\n");
        folder
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn server(&self) -> Server {
        Server::new("skilled", "1.0.0").skills(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PDF: &str =
    "---\nname: pdf\ndescription: About PDF.\nmetadata:\n  version: '1.0'\n---\n# PDF\n";
const URI: &str = "skill://pdf/SKILL.md";
const FORMS: &str = "skill://pdf/references/forms.md";

#[tokio::test]
async fn a_client_lists_loads_and_reads_skills_in_both_eras() {
    let folder = Folder::new();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = testing::builder(revision).connect(folder.server()).await.unwrap();
        let skills = client.list_skills().await.unwrap();
        let uris: Vec<_> = skills.iter().map(|it| it.uri.as_str()).collect();
        assert_eq!(uris, [URI, "skill://xml/SKILL.md"]);
        assert_eq!(skills[0].frontmatter["metadata"], json!({ "version": "1.0" }));
        let loaded = client.load_skill(&skills[0]).await.unwrap();
        assert_eq!(loaded.instructions(), PDF);
        let read = client.read_resource(URI).await.unwrap();
        assert_eq!(read.contents[0].mime_type.as_deref(), Some("text/markdown"));
        let forms = loaded.read("references/forms.md").await.unwrap();
        assert_eq!(forms, b"Fill in the boxes.\r\n");
        assert_eq!(loaded.read(FORMS).await.unwrap(), forms);
        assert_eq!(loaded.read("logo.png").await.unwrap(), [0x89, b'P', 0xff, 0]);
        let got = client.get_skill(URI).await.unwrap();
        assert_eq!(got.skill, skills[0]);
        let page = client.read_directory("skill://pdf", None).await.unwrap();
        let children: Vec<_> = page.resources.iter().map(|it| it.uri.as_str()).collect();
        assert_eq!(children, [URI, "skill://pdf/logo.png", "skill://pdf/references"]);
        assert_eq!(page.next_cursor, None);
        assert!(client.read_directory(URI, None).await.is_err(), "a file is not a folder");
        let foreign = loaded.read("skill://xml/SKILL.md").await.unwrap_err();
        assert!(matches!(foreign, SkillError::Unlisted { .. }), "{foreign}");
    }
}

#[tokio::test]
async fn lists_have_pages_and_cache_hints_and_name_what_is_unknown() {
    let folder = Folder::new();
    let limits = SkillLimits { page: 1, ..SkillLimits::default() };
    let skills = || Skills::open_within(&folder.0, &limits).unwrap();
    let mut raw = Raw::start(Server::new("paged", "1.0.0").with(skills()));
    let mut ask =
        async |method: &str, params: Value| raw.ask(&modern(request(1, method, params))).await;
    let first = ask("skills/list", json!({})).await["result"].take();
    assert_eq!((&first["ttlMs"], &first["cacheScope"]), (&json!(0), &json!("private")), "{first}");
    let second = ask("skills/list", json!({ "cursor": first["nextCursor"] })).await;
    assert_eq!(second["result"]["skills"][0]["uri"], "skill://xml/SKILL.md");
    assert_eq!(second["result"].get("nextCursor"), None);
    assert_eq!(code(&ask("skills/list", json!({ "cursor": "7" })).await), -32602);

    let one = ask("skills/get", json!({ "uri": URI })).await["result"].take();
    assert_eq!(one["skill"]["uri"], URI);
    assert!(one.get("ttlMs").is_some() && one.get("cacheScope").is_some(), "{one}");
    assert_eq!(code(&ask("skills/get", json!({ "uri": FORMS })).await), -32602);

    let mut children = Vec::new();
    let mut params = json!({ "uri": "skill://pdf" });
    loop {
        let page = ask("resources/directory/read", params.clone()).await["result"].take();
        children.extend(page["resources"].as_array().cloned().unwrap_or_default());
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => break,
        }
    }
    let kinds: Vec<_> =
        children.iter().map(|it| (it["name"].as_str(), it["mimeType"].as_str())).collect();
    let expected =
        [("pdf", "text/markdown"), ("logo.png", "image/png"), ("references", "inode/directory")];
    assert_eq!(kinds, expected.map(|(name, kind)| (Some(name), Some(kind))));
    assert_eq!(code(&ask("resources/directory/read", json!({ "uri": URI })).await), -32602);

    let mut raw =
        Raw::session(Server::new("legacy", "1.0.0").with(skills()), Revision::V2025_11_25).await;
    let page = raw.ask(&request(1, "skills/list", json!({}))).await;
    assert_eq!(page["result"].get("ttlMs"), None, "{page}");
}

/// A server that lists one thing and serves another.
fn liar(entry: Value, text: &'static str) -> Server {
    let list = move |_: Context, _: Value| {
        let page = json!({ "skills": [entry], "ttlMs": 0, "cacheScope": "private" });
        async move { Ok::<_, ErrorObject>(page) }
    };
    let skills = Extension::new("io.modelcontextprotocol/skills");
    Server::new("liar", "1.0.0")
        .with(skills.method("skills/list", .., list))
        .with(Resource::text(URI, "pdf", text))
}

#[test]
fn metadata_consists_of_texts() {
    for (metadata, expected) in [
        ("{ version: '1.0' }", None),
        ("", None),
        ("{ version: 1.0 }", Some("`metadata.version` of its front matter must be a text")),
        ("{ tags: [a, b] }", Some("`metadata.tags` of its front matter must be a text")),
        ("[a]", Some("`metadata` of its front matter must be a map of texts")),
    ] {
        let folder = Folder::new();
        let text = format!("---\nname: xml\ndescription: XML.\nmetadata: {metadata}\n---\n");
        folder.write("xml/SKILL.md", text.as_bytes());
        let problem = Skills::open(&folder.0).err().map(|error| error.reason);
        let is_expected = match (&problem, expected) {
            (Some(problem), Some(expected)) => problem.starts_with(expected),
            (problem, expected) => problem.is_none() && expected.is_none(),
        };
        assert!(is_expected, "{metadata}: {problem:?}");
    }
}

#[tokio::test]
async fn what_does_not_verify_is_refused_by_its_reason() {
    let folder = Folder::new();
    let honest = Skills::open(&folder.0).unwrap().list()[0].clone();
    let SkillResources::Files(files) = &honest.resources else { panic!("files are listed") };
    let with = |key: &str, value: Value| {
        let mut entry = serde_json::to_value(&honest).unwrap();
        *entry.pointer_mut(key).unwrap() = value;
        entry
    };
    let own = files.iter().position(|it| it.uri == URI).unwrap();
    let other =
        "---\nname: pdf\ndescription: About XML.\nmetadata:\n  version: '1.0'\n---\n# PDF\n";
    let digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    let cases = [
        (with("/uri", json!(URI)), other, "does not have the digest"),
        (with("/uri", json!(URI)), "short", "has 5 bytes, but the skill says"),
        (with("/frontmatter/description", json!("Else")), PDF, "`description` of its front matter"),
        (with("/frontmatter/name", json!("xml")), PDF, "but its folder is \"pdf\""),
        (with(&format!("/resources/{own}/digest"), json!(digest)), PDF, "does not have the digest"),
        (with("/resources/1/uri", json!("skill://xml/a")), PDF, "is not below \"skill://pdf\""),
        (with("/resources/1/uri", json!("skill://pdf/../a")), PDF, "is not below \"skill://pdf\""),
        (with("/resources/2/uri", json!("skill://pdf/logo.png")), PDF, "twice"),
        (with("/resources/1/digest", json!("md5:0")), PDF, "is not sha256:"),
        (with("/resources", json!([])), PDF, "does not list its own SKILL.md"),
        (with("/resources", json!("dynamic")), PDF, "cannot be verified"),
        (with("/uri", json!("skill://pdf/README.md")), PDF, "must end in /SKILL.md"),
    ];
    for (entry, text, expected) in cases {
        let client = testing::connect(liar(entry.clone(), text)).await.unwrap();
        let skills: Vec<Skill> = client.list_skills().await.unwrap();
        let error = client.load_skill(&skills[0]).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{entry}: {error}");
    }
    // An entry whose files are neither a list nor dynamic is not a skill at all.
    let client = testing::connect(liar(with("/resources", json!(7)), PDF)).await.unwrap();
    let error = bowline::with_causes(&client.list_skills().await.unwrap_err());
    assert!(error.contains("a list of files, or \"dynamic\""), "{error}");
}

#[tokio::test]
async fn a_folder_that_is_not_valid_is_found_before_the_first_client() {
    let folder = Folder::new();
    folder.write("bad/SKILL.md", b"no front matter");
    let error = testing::connect(folder.server()).await.unwrap_err().to_string();
    assert!(error.contains("bad/SKILL.md: it must begin with front matter"), "{error}");
}
