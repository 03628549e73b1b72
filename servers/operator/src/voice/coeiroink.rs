//! COEIROINK version 2, or a compatible service: speakers as JSON, speech as WAV.

use std::time::Duration;

use bowline_serve::fetch::Fetch;
use serde::Deserialize;
use serde_json::json;

use super::{Engine, Operator, Speech, Style};

/// Its default address.
pub(super) const URL: &str = "http://127.0.0.1:50032";

/// The sampling rate to request, in samples per second.
const SAMPLES: u32 = 24_000;

pub(super) struct Coeiroink {
    url: String,
    /// For the list of speakers, which is quick.
    list: Fetch,
    /// For speech, which takes a while and returns megabytes.
    speech: Fetch,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Speaker {
    speaker_name: String,
    speaker_uuid: String,
    styles: Vec<SpeakerStyle>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpeakerStyle {
    style_name: String,
    style_id: i64,
}

impl Coeiroink {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.trim_end_matches('/').to_owned(),
            list: Fetch::new(Duration::from_secs(3), 16 << 20),
            speech: Fetch::new(Duration::from_secs(60), 32 << 20),
        }
    }

    pub(super) async fn operators(&self) -> Result<Vec<Operator>, String> {
        // The list includes portraits, hence its size limit.
        let url = format!("{}/v1/speakers", self.url);
        let response = self.list.json(&url).await.map_err(|error| format!("COEIROINK: {error}"))?;
        let speakers: Vec<Speaker> = serde_json::from_value(response).map_err(|error| {
            format!("COEIROINK: {url} returned an unexpected response: {error}")
        })?;
        if speakers.is_empty() {
            return Err(format!("COEIROINK: {url} has no speakers; install one there"));
        }
        let with_voice = speakers.into_iter().filter(|speaker| !speaker.styles.is_empty());
        Ok(with_voice.map(Speaker::into_operator).collect())
    }

    pub(super) async fn synthesise(&self, speech: Speech<'_>) -> Result<Vec<u8>, String> {
        let wanted = json!({
            "speakerUuid": speech.operator.id,
            "styleId": speech.style.id,
            "text": speech.text,
            "speedScale": speech.speed,
            "volumeScale": 1.0,
            "pitchScale": 0.0,
            "intonationScale": 1.0,
            "prePhonemeLength": 0.1,
            "postPhonemeLength": 0.1,
            "outputSamplingRate": SAMPLES,
        });
        let url = format!("{}/v1/synthesis", self.url);
        let sound = self.speech.post(&url, &wanted).await;
        sound.map(Into::into).map_err(|error| format!("COEIROINK: {error}"))
    }
}

impl Speaker {
    fn into_operator(self) -> Operator {
        let styles = self.styles.into_iter();
        Operator {
            name: self.speaker_name,
            id: self.speaker_uuid,
            styles: styles.map(|it| Style { name: it.style_name, id: it.style_id }).collect(),
            engine: Engine::Coeiroink,
        }
    }
}
