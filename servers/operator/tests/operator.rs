//! The operator, used as a client uses it: with fake voices, and with Debian's real one.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "operator/espeak.rs"]
mod espeak;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline::{Client, Revision, Server, testing};
use bowline_serve::testing::{HttpReply, Note, Service, check_manners};
use operator::{Engine, Settings};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_operator-server");

/// Nothing listens there, and no such program exists.
const NOWHERE: &str = "http://127.0.0.1:1";
const NOTHING: &str = "no-such-program-here";

/// A folder for scripts and their output, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, format!("#!/bin/sh\ncd '{}'\n{text}\n", self.0.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    async fn wait_for(&self, name: &str) {
        until(async || self.0.join(name).exists()).await;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let looks = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looks).await.unwrap();
}

/// A fake COEIROINK: the sound of a sentence is the sentence.
fn coeiroink() -> Service {
    Service::start(|asked| match asked.what.as_str() {
        "GET /v1/speakers" => HttpReply::json(&json!([
            { "speakerName": "つくよみちゃん", "speakerUuid": "3c37646f", "version": "1.0.0",
              "styles": [{ "styleName": "れいせい", "styleId": 0 }, { "styleName": "おしとやか", "styleId": 5 }] },
            { "speakerName": "MANA", "speakerUuid": "292ea286", "version": "1.0.0",
              "styles": [{ "styleName": "のーまる", "styleId": 40 }] },
        ])),
        "POST /v1/synthesis" => {
            let wanted: Value = serde_json::from_str(&asked.body).unwrap();
            if wanted["text"] == "hopeless." {
                return HttpReply::error(500, "out of breath");
            }
            HttpReply::bytes(wanted["text"].as_str().unwrap())
        }
        _ => HttpReply::error(404, "not here"),
    })
}

fn speaking(service: &Service, player: &str) -> Server {
    operator::server(settings(service, player))
}

fn settings(service: &Service, player: &str) -> Settings {
    Settings {
        engine: Engine::Coeiroink,
        coeiroink_url: format!("{}/", service.url()),
        player: Some(format!("sh {player}")),
        espeak: NOTHING.to_owned(),
        attach: 100,
    }
}

async fn failure(client: &Client, name: &str, arguments: Value) -> String {
    client.call_tool(name, arguments).text().await.unwrap_err().to_string()
}

async fn names(client: &Client) -> Vec<String> {
    client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

const ALWAYS: [&str; 3] = ["operator_status", "operator_available", "operator_assign"];

#[tokio::test]
async fn tools_come_and_go_with_the_operator() {
    let folder = Folder::new("tools");
    let service = coeiroink();
    let server = speaking(&service, &folder.script("player", ""));
    let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
    let mut notifications = client.notifications();
    assert_eq!(names(&client).await, ALWAYS);
    let text = client.call_tool("operator_status", json!({})).text().await.unwrap();
    assert!(text.starts_with("no operator is assigned"), "{text}");
    let text = client.call_tool("operator_available", json!({})).text().await.unwrap();
    assert!(text.ends_with("つくよみちゃん (れいせい, おしとやか); MANA (のーまる)"), "{text}");

    let wanted = json!({ "operator": "mana" });
    let text = client.call_tool("operator_assign", wanted).text().await.unwrap();
    assert_eq!(text, "MANA is assigned, with the style のーまる; call say to speak");
    notifications.next_of("notifications/tools/list_changed").await.unwrap();
    let with = ["operator_release", "operator_styles", "say", "queue_status", "queue_clear"];
    assert_eq!(names(&client).await, [&ALWAYS[..], &with].concat());
    let text = client.call_tool("operator_status", json!({})).text().await.unwrap();
    assert_eq!(text, "MANA is assigned, with the style のーまる; 0 in the queue");

    // Another operator takes over: the first one, by default.
    client.call_tool("operator_assign", json!({ "style": "5" })).text().await.unwrap();
    let styles = client.call_tool("operator_styles", json!({})).text().await.unwrap();
    let styles: Value = serde_json::from_str(&styles).unwrap();
    assert_eq!(
        (&styles["operator"], &styles["current"]),
        (&json!("つくよみちゃん"), &json!("おしとやか"))
    );

    while notifications.try_next().is_some() {}
    let text = client.call_tool("operator_release", json!({})).text().await.unwrap();
    assert_eq!(text, "つくよみちゃん is released");
    notifications.next_of("notifications/tools/list_changed").await.unwrap();
    assert_eq!(names(&client).await, ALWAYS);
    let error = failure(&client, "say", json!({ "text": "too late" })).await;
    assert!(error.contains("no tool is called \"say\""), "{error}");
}

#[tokio::test]
async fn it_speaks_sentence_by_sentence_and_reports_progress() {
    let folder = Folder::new("speaks");
    let service = coeiroink();
    let player = folder.script("player", r#"cat "$1" >>heard; echo >>heard; echo "$1" >>files"#);
    let client = testing::connect(speaking(&service, &player)).await.unwrap();
    client.call_tool("operator_assign", json!({})).text().await.unwrap();
    let speech = json!({ "text": "こんにちは。元気ですか？", "style": "おしとやか", "speed": 1.5 });
    let (call, mut progress) = client.call_tool("say", speech).with_progress();
    let spoken = call.await.unwrap();
    let spoken = spoken.structured_content.unwrap().to_value();
    let expected = json!({ "operator": "つくよみちゃん", "style": "おしとやか",
        "engine": "coeiroink", "sentences": 2, "characters": 12, "spoken": 2 });
    assert_eq!(spoken, expected);
    assert_eq!(folder.read("heard"), "こんにちは。\n元気ですか？\n");
    assert!(folder.read("files").lines().all(|file| !Path::new(file).exists()));
    for step in [0.0, 1.0, 2.0] {
        assert_eq!(progress.next().await.unwrap().progress, step);
    }
    assert!(progress.next().await.is_none());
    let asked: Value = serde_json::from_str(&service.asked().last().unwrap().body).unwrap();
    assert_eq!((&asked["speakerUuid"], &asked["styleId"]), (&json!("3c37646f"), &json!(5)));
    assert_eq!(asked["speedScale"], 1.5);
}

#[tokio::test]
async fn failures_say_why() {
    let folder = Folder::new("why");
    let service = coeiroink();
    let player = folder.script("player", "echo 'no sound card' >&2; exit 3");
    let server = operator::server(Settings { attach: 0, ..settings(&service, &player) });
    let client = testing::connect(server).await.unwrap();
    let error = failure(&client, "operator_assign", json!({ "operator": "Bob" })).await;
    assert!(
        error.ends_with(r#"no operator is named "Bob"; expected one of: つくよみちゃん, MANA"#),
        "{error}"
    );
    let error = failure(&client, "operator_assign", json!({ "style": "loud" })).await;
    assert!(
        error.ends_with(r#"has no style "loud"; expected one of: れいせい, おしとやか"#),
        "{error}"
    );
    client.call_tool("operator_assign", json!({})).text().await.unwrap();
    for (arguments, reason) in [
        (
            json!({ "text": "Hi." }),
            "0 of 1 sentences spoken: sh failed (exit status: 3): no sound card",
        ),
        (json!({ "text": "hopeless." }), "returned status 500: out of breath"),
        (json!({ "text": "Hi.", "style": "loud" }), "has no style \"loud\""),
        (json!({ "text": " " }), "text is blank; there is nothing to say"),
        (json!({ "text": "" }), "text"),
        (json!({ "text": "Hi.", "speed": 9 }), "speed"),
    ] {
        let error = failure(&client, "say", arguments).await;
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_played_is_attached() {
    let folder = Folder::new("attached");
    let service = coeiroink();
    // The first sentence is heard; then the loudspeaker is unplugged.
    let player = folder.script(
        "player",
        "echo >>runs; [ $(wc -l <runs) = 1 ] || { echo 'no sound card' >&2; exit 3; }",
    );
    let client = testing::connect(speaking(&service, &player)).await.unwrap();
    client.call_tool("operator_assign", json!({})).text().await.unwrap();
    let said = client.call_tool("say", json!({ "text": "One. Two. Three." })).await.unwrap();
    assert_eq!(said.is_error, Some(false));
    let data = said.structured_content.unwrap().to_value();
    assert_eq!((&data["sentences"], &data["spoken"]), (&json!(3), &json!(1)));
    assert_eq!(data["not_played"], "sh failed (exit status: 3): no sound card");
    let text = said.content[0].as_text().unwrap();
    assert!(text.contains("no sound card): 1 of 3 sentences were heard. The sound"), "{text}");
    let blocks = serde_json::to_value(&said.content[1..]).unwrap();
    let audio = |data: &str| json!({ "type": "audio", "data": data, "mimeType": "audio/wav" });
    // The fake sound of a sentence is the sentence.
    assert_eq!(blocks, json!([audio("VHdvLg=="), audio("VGhyZWUu")]));
    assert_eq!(folder.read("runs").len(), 2, "the player is not tried again");

    let long = "word ".repeat(30);
    let error = failure(&client, "say", json!({ "text": long })).await;
    assert!(error.contains("0 of 1 sentences spoken: sh failed"), "{error}");
    assert!(error.ends_with("the sound is larger than the 100 bytes of --attach"), "{error}");
}

#[tokio::test]
async fn without_voices_it_says_what_is_missing() {
    let server = operator::server(Settings {
        coeiroink_url: NOWHERE.to_owned(),
        espeak: NOTHING.to_owned(),
        ..Settings::default()
    });
    let client = testing::connect(server).await.unwrap();
    for name in ["operator_available", "operator_assign"] {
        let error = failure(&client, name, json!({})).await;
        assert!(
            error.contains(
                "no voices available: COEIROINK: cannot fetch http://127.0.0.1:1/v1/speakers"
            ),
            "{error}"
        );
        assert!(
            error.contains("no-such-program-here is not installed. Start COEIROINK"),
            "{error}"
        );
    }
    assert_eq!(names(&client).await, ALWAYS);
}

#[tokio::test]
async fn espeak_steps_in() {
    let folder = Folder::new("espeak");
    let espeak = folder.script(
        "espeak-ng",
        r#"if [ "$1" = --voices ]; then
    echo 'Pty Language       Age/Gender VoiceName          File                 Other Languages'
    echo ' 5  en-gb          --/M      English_(Great_Britain) gmw/en            (en 2)'
    echo ' 5  ja             --/M      Japanese           jpx/ja'
else
    echo "$@: $(cat)" >>heard
    printf 'RIFF----WAVEfmt --------------------data----samples'
fi"#,
    );
    let player = folder.script("player", r#"head -c 4 "$1" >>played"#);
    let server = operator::server(Settings {
        coeiroink_url: NOWHERE.to_owned(),
        player: Some(format!("sh {player}")),
        espeak,
        ..Settings::default()
    });
    let client = testing::connect(server).await.unwrap();
    let wanted = json!({ "operator": "english (great britain)", "style": "whisper" });
    client.call_tool("operator_assign", wanted).text().await.unwrap();
    client
        .call_tool("say", json!({ "text": "-v is not an option. Really!" }))
        .text()
        .await
        .unwrap();
    client
        .call_tool("say", json!({ "text": "Go!", "style": "fast", "speed": 0.5 }))
        .text()
        .await
        .unwrap();
    let expected = "-v en-gb+whisper -s 150 --stdin --stdout: -v is not an option.\n\
                    -v en-gb+whisper -s 150 --stdin --stdout: Really!\n\
                    -v en-gb -s 130 --stdin --stdout: Go!\n";
    assert_eq!(folder.read("heard"), expected);
    assert_eq!(folder.read("played"), "RIFFRIFFRIFF");
}

/// Plays until the file `go` exists.
const PATIENT: &str =
    r#"echo $$ >pid.new; mv pid.new pid; while ! [ -e go ]; do sleep 0.02; done; cat "$1" >>heard"#;

#[tokio::test]
async fn the_queue_is_shown_and_cleared() {
    let folder = Folder::new("queue");
    let service = coeiroink();
    let server = speaking(&service, &folder.script("player", PATIENT));
    let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
    client.call_tool("operator_assign", json!({})).text().await.unwrap();
    let status = async || {
        let text = client.call_tool("queue_status", json!({})).text().await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["queue"].clone()
    };
    let say = |text: &'static str| client.call_tool("say", json!({ "text": text })).text();
    let direct = async {
        until(async || status().await.as_array().unwrap().len() == 2).await;
        folder.wait_for("pid").await;
        let expected = json!([
            { "number": 1, "text": "One.", "is_speaking": true },
            { "number": 2, "text": "Two.", "is_speaking": false },
        ]);
        assert_eq!(status().await, expected);
        let state = client.read_resource(operator::STATUS_URI).await.unwrap();
        assert!(state.contents[0].as_text().unwrap().contains("One."));
        let cleared = client.call_tool("queue_clear", json!({})).text().await.unwrap();
        assert_eq!(cleared, "1 dropped from the queue");
        fs::write(folder.0.join("go"), "").unwrap();
    };
    let (one, two, ()) = tokio::join!(say("One."), say("Two."), direct);
    one.unwrap();
    assert!(two.unwrap_err().to_string().ends_with("not spoken: the queue was cleared"));
    assert_eq!(folder.read("heard"), "One.");
    assert_eq!(status().await, json!([]));
}

#[tokio::test]
async fn cancelling_stops_the_sound() {
    let folder = Folder::new("cancel");
    let service = coeiroink();
    let server = speaking(&service, &folder.script("player", PATIENT));
    let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
    client.call_tool("operator_assign", json!({})).text().await.unwrap();
    let say = tokio::spawn(client.call_tool("say", json!({ "text": "For ever." })).into_future());
    folder.wait_for("pid").await;
    let process = folder.read("pid");
    say.abort();
    until(async || !Path::new("/proc").join(process.trim()).exists()).await;
    let text = client.call_tool("operator_status", json!({})).text().await.unwrap();
    assert!(text.ends_with("0 in the queue"), "{text}");
    assert_eq!(folder.read("heard"), "");
}

#[test]
fn the_program_has_manners() {
    check_manners(PROGRAM, &[], Path::new("testdata/help.txt"));
}

const NOTE: Note = Note {
    sent: include_str!("../testdata/sent.jsonl"),
    answers: include_str!("../testdata/answers.jsonl"),
    seed: "003",
};

#[test]
fn the_seed_note_gets_its_answers() {
    let differences = [
        (1, "/result/serverInfo/name", "another server, with the same tools"),
        (1, "/result/serverInfo/version", "and versions of its own"),
    ];
    NOTE.check(PROGRAM, &[], &differences);
}
