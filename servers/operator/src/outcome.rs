//! What became of a speech: how much of it was heard, and the sound of the rest.

use bowline::base64::STANDARD;
use bowline::model::ContentBlock;
use bowline::{Described, Structured};
use schemars::JsonSchema;
use serde::Serialize;

use crate::voice::Engine;

/// The result of `say`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Said {
    pub(crate) operator: String,
    pub(crate) style: String,
    pub(crate) engine: Engine,
    /// The number of sentences
    #[schemars(with = "i64")]
    pub(crate) sentences: usize,
    #[schemars(with = "i64")]
    pub(crate) characters: usize,
    /// How many sentences a loudspeaker played; the sound of the others is attached
    #[schemars(with = "i64")]
    pub(crate) spoken: usize,
    /// Why the others were not played
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_played: Option<String>,
}

/// What became of a speech.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) spoken: usize,
    /// Why the rest was not played.
    pub(crate) reason: Option<String>,
    /// The rest, as WAV, one sound per sentence.
    pub(crate) sounds: Vec<Vec<u8>>,
}

impl Outcome {
    /// How many bytes of sound there are.
    pub(crate) fn size(&self) -> usize {
        self.sounds.iter().map(Vec::len).sum()
    }
}

impl Said {
    /// The result in words, with the sounds that were not played.
    pub(crate) fn with_sounds(self, sounds: &[Vec<u8>]) -> Described<Self> {
        let Self { operator, spoken, sentences, .. } = &self;
        let text = match &self.not_played {
            None => format!("{operator} has spoken {spoken} sentences"),
            Some(reason) => format!(
                "Nothing here can play sound ({reason}): {spoken} of {sentences} sentences were heard. \
             The sound of the others is attached, for the client to play"
            ),
        };
        let sounds =
            sounds.iter().map(|wav| ContentBlock::audio(STANDARD.encode(wav), "audio/wav"));
        let content = [ContentBlock::text(text)].into_iter().chain(sounds).collect();
        Structured(self).with_content(content)
    }
}
