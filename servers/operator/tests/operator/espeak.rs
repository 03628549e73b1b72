//! Debian's real `espeak-ng` and `aplay`, without a sound device and with one that writes a file.
//!
//! `cargo xtask test` unpacks them below `target` and passes the path. Without that, or an earlier
//! run of it, these tests are skipped.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use bowline::base64::STANDARD;
use bowline::model::ContentBlock;
use bowline::{Client, testing};
use operator::{Engine, Settings};
use serde_json::json;

use crate::{Folder, failure};

/// A configuration of ALSA without any device.
const SILENT: &str = "";

/// A sound device that writes what it plays to a file.
const TAPE: &str = r#"pcm.!default { type file file "tape.wav" format wav slave.pcm "sink" }
pcm.sink { type null }"#;

/// The operator with both programs, and this configuration of ALSA.
async fn client(unpacked: &Path, folder: &Folder, alsa: &str, attach: usize) -> Client {
    let libraries = unpacked.join("usr/lib").join(format!("{}-linux-gnu", env::consts::ARCH));
    std::fs::write(folder.0.join("asound.conf"), alsa).unwrap();
    let wrapped = |name: &str| {
        let libraries = libraries.display();
        let text = format!(
            "export LD_LIBRARY_PATH={libraries}:{libraries}/pulseaudio ESPEAK_DATA_PATH={libraries}\n\
             export ALSA_CONFIG_PATH=asound.conf PULSE_SERVER=unix:/nowhere\n\
             exec {} \"$@\"",
            unpacked.join("usr/bin").join(name).display()
        );
        folder.script(name, &text)
    };
    let settings = Settings {
        engine: Engine::Espeak,
        espeak: wrapped("espeak-ng"),
        player: Some(format!("{} -q", wrapped("aplay"))),
        attach,
        ..Settings::default()
    };
    let client = testing::connect(operator::server(settings)).await.unwrap();
    let english = json!({ "operator": "en-gb" });
    client.call_tool("operator_assign", english).text().await.unwrap();
    client
}

/// The samples of a sound, after checking that its lengths are true.
fn samples(wav: &[u8]) -> &[u8] {
    assert!(wav.starts_with(b"RIFF") && &wav[8..16] == b"WAVEfmt ", "{:?}", &wav[..16]);
    let length = u32::from_le_bytes(wav[40..44].try_into().unwrap());
    assert_eq!(wav.len(), 44 + usize::try_from(length).unwrap());
    &wav[44..]
}

#[tokio::test]
async fn without_a_sound_device_nothing_is_spoken() {
    let Some(unpacked) = unpacked() else { return };
    let folder = Folder::new("real-silent");
    let client = client(&unpacked, &folder, SILENT, 0).await;
    let error = failure(&client, "say", json!({ "text": "Hello. Is anybody there?" })).await;
    assert!(error.contains("0 of 2 sentences spoken: "), "{error}");
    assert!(error.contains("aplay failed (exit status: 1)"), "{error}");
}

#[tokio::test]
async fn without_a_sound_device_the_sound_is_attached() {
    let Some(unpacked) = unpacked() else { return };
    let folder = Folder::new("real-attached");
    let client = client(&unpacked, &folder, SILENT, 4 << 20).await;
    let said =
        client.call_tool("say", json!({ "text": "Hello. Is anybody there?" })).await.unwrap();
    let data = said.structured_content.unwrap().to_value();
    assert_eq!((&data["spoken"], &data["sentences"]), (&json!(0), &json!(2)));
    let sounds: Vec<Vec<u8>> = said.content.iter().filter_map(sound).collect();
    assert_eq!(sounds.len(), 2);
    for sound in &sounds {
        assert!(samples(sound).iter().any(|byte| *byte != 0), "it is silent");
    }
    assert!(samples(&sounds[1]).len() > samples(&sounds[0]).len());
}

#[tokio::test]
async fn with_a_sound_device_everything_is_played() {
    let Some(unpacked) = unpacked() else { return };
    let folder = Folder::new("real-played");
    let client = client(&unpacked, &folder, TAPE, 0).await;
    let said = client.call_tool("say", json!({ "text": "Hello." })).await.unwrap();
    let data = said.structured_content.unwrap().to_value();
    assert_eq!((&data["spoken"], data.get("not_played")), (&json!(1), None));
    assert_eq!(said.content.len(), 1, "nothing is attached");
    let tape = std::fs::read(folder.0.join("tape.wav")).unwrap();
    assert!(tape.len() > 10_000 && tape[44..].iter().any(|byte| *byte != 0));
}

#[tokio::test]
async fn a_voice_that_is_missing_is_an_error() {
    let Some(unpacked) = unpacked() else { return };
    let folder = Folder::new("real-voice");
    let client = client(&unpacked, &folder, TAPE, 4 << 20).await;
    // Its data disappears while it is assigned: espeak-ng exits with 0 for unknown voices.
    let script = folder.0.join("espeak-ng");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, text.replace("\"$@\"", "-v nosuch --stdin --stdout")).unwrap();
    let error = failure(&client, "say", json!({ "text": "Hello." })).await;
    assert!(error.contains("0 of 1 sentences spoken"), "{error}");
    assert!(error.contains("voice does not exist"), "{error}");
}

fn sound(block: &ContentBlock) -> Option<Vec<u8>> {
    let ContentBlock::Audio(audio) = block else { return None };
    assert_eq!(audio.mime_type, "audio/wav");
    Some(STANDARD.decode(&audio.data).unwrap())
}

/// The folder of both programs, if `cargo xtask` has unpacked them.
fn unpacked() -> Option<PathBuf> {
    if let Ok(reason) = env::var("BOWLINE_ESPEAK_MISSING") {
        panic!("{reason}");
    }
    let earlier = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("espeak");
        folder.join(".unpacked").is_file().then_some(folder)
    };
    let folder = env::var_os("BOWLINE_ESPEAK").map(PathBuf::from).or_else(earlier);
    if folder.is_none() {
        // Not `println!`, whose output the test harness captures.
        let reason = "skipped: espeak-ng is not installed; `cargo xtask unit` downloads it";
        let _ = writeln!(std::io::stderr(), "{reason}");
    }
    folder
}
