//! Voices: the available operators, and speech.

mod coeiroink;
mod espeak;
mod player;
mod program;

use schemars::JsonSchema;
use serde::Serialize;

use self::coeiroink::Coeiroink;
use self::espeak::Espeak;
use self::player::Player;

/// The default of [`Settings::attach`]: 4 MiB, about a minute and a half.
const ATTACH: usize = 4 << 20;

/// Where voices come from, and where sound goes.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Where voices come from
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t)]
    pub engine: Engine,

    /// URL of COEIROINK or a compatible service
    #[arg(long, value_name = "URL", default_value = coeiroink::URL)]
    pub coeiroink_url: String,

    /// Command that plays a WAV file [default: the first of pw-play, paplay, aplay, afplay, ffplay,
    /// play that is installed and works]
    #[arg(long, value_name = "COMMAND")]
    pub player: Option<String>,

    /// Where nothing can play sound, attach it to the result of `say`, up to this many bytes; 0
    /// makes `say` fail instead
    #[arg(long, value_name = "BYTES", default_value_t = ATTACH)]
    pub attach: usize,

    /// The espeak-ng program
    #[arg(long, value_name = "PROGRAM", default_value = espeak::PROGRAM)]
    pub espeak: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            coeiroink_url: coeiroink::URL.to_owned(),
            player: None,
            attach: ATTACH,
            espeak: espeak::PROGRAM.to_owned(),
        }
    }
}

/// A speech engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// COEIROINK if it responds, otherwise espeak-ng
    #[default]
    Auto,
    /// COEIROINK only
    Coeiroink,
    /// espeak-ng only
    Espeak,
}

/// A voice that can be assigned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Operator {
    pub(crate) name: String,
    /// Its id in the engine
    pub(crate) id: String,
    /// Speaking styles, the default one first
    pub(crate) styles: Vec<Style>,
    /// The speech engine
    pub(crate) engine: Engine,
}

/// A speaking style.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Style {
    pub(crate) name: String,
    /// Its id in the engine
    pub(crate) id: i64,
}

/// Something to say, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speech<'a> {
    pub(crate) operator: &'a Operator,
    pub(crate) style: &'a Style,
    /// A factor: 0.5 is half as fast as normal.
    pub(crate) speed: f64,
    pub(crate) text: &'a str,
}

/// All engines.
pub(crate) struct Voices {
    wanted: Engine,
    coeiroink: Coeiroink,
    espeak: Espeak,
    player: Player,
}

impl Voices {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            wanted: settings.engine,
            coeiroink: Coeiroink::new(&settings.coeiroink_url),
            espeak: Espeak::new(settings.espeak),
            player: Player::new(settings.player),
        }
    }

    /// The operators that are available now.
    ///
    /// # Errors
    /// If there are none; the message says why and what to do.
    pub(crate) async fn operators(&self) -> Result<Vec<Operator>, String> {
        let first = match self.wanted {
            Engine::Espeak => return self.espeak.operators().await,
            Engine::Coeiroink => return self.coeiroink.operators().await,
            Engine::Auto => self.coeiroink.operators().await,
        };
        let Err(first) = first else { return first };
        self.espeak.operators().await.map_err(|second| {
            format!(
                "no voices available: {first}; {second}. Start COEIROINK (and set its address with \
                 --coeiroink-url), or install espeak-ng"
            )
        })
    }

    /// Synthesises speech, as WAV.
    ///
    /// # Errors
    /// If the engine fails; the message says why.
    pub(crate) async fn synthesise(&self, speech: Speech<'_>) -> Result<Vec<u8>, String> {
        match speech.operator.engine {
            Engine::Espeak => self.espeak.synthesise(speech).await,
            Engine::Auto | Engine::Coeiroink => self.coeiroink.synthesise(speech).await,
        }
    }

    /// Plays a sound to its end. Dropping it stops the sound.
    ///
    /// # Errors
    /// If nothing here can play it; the message says why.
    pub(crate) async fn play(&self, wav: &[u8]) -> Result<(), String> {
        self.player.play(wav).await
    }
}
