//! Playing sound: by whatever the computer has for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt;

use super::program::{Program, is_installed};

/// What plays a WAV file and ends with it.
const PLAYERS: [&str; 6] = [
    "pw-play",
    "paplay",
    "aplay -q",
    "afplay",
    "ffplay -nodisp -autoexit -loglevel error",
    "play -q",
];

/// Plays sound.
pub(super) struct Player {
    command: Option<String>,
}

impl Player {
    pub(super) fn new(command: Option<String>) -> Self {
        Self { command }
    }

    /// Plays a sound, to its end. Dropping it stops the sound.
    pub(super) async fn play(&self, wav: &[u8]) -> Result<(), String> {
        let command = match &self.command {
            Some(command) => command,
            None => find().ok_or_else(|| {
                let known: Vec<_> = PLAYERS.iter().map(|it| program(it)).collect();
                format!(
                    "nothing here can play sound: install one of {}, or name another with --player",
                    known.join(", ")
                )
            })?,
        };
        let file = SoundFile::create(wav).await.map_err(|error| {
            format!("the sound cannot be kept in {}: {error}", std::env::temp_dir().display())
        })?;
        let mut player = Program::new(program(command));
        for argument in command.split_whitespace().skip(1) {
            player = player.argument(argument);
        }
        player.argument(&file.path.to_string_lossy()).run(b"").await.map(drop)
    }
}

fn find() -> Option<&'static str> {
    PLAYERS.into_iter().find(|player| is_installed(program(player)))
}

fn program(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or_default()
}

/// A file that is gone when this is.
struct SoundFile {
    path: PathBuf,
}

impl SoundFile {
    async fn create(wav: &[u8]) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-operator-{}-{number}.wav", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Only a new one: what is there already may be a trap of somebody else's.
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).open(&path).await?;
        let sound = Self { path };
        file.write_all(wav).await?;
        file.flush().await?;
        Ok(sound)
    }
}

impl Drop for SoundFile {
    fn drop(&mut self) {
        let path: &Path = &self.path;
        // Nothing can be done about one that stays.
        let _ = std::fs::remove_file(path);
    }
}
