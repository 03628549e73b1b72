//! Plays sound with whatever program is installed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt;

use super::program::{Program, is_installed};

/// Commands that play a WAV file and then exit.
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

    /// Plays a sound to its end. Dropping it stops the sound.
    pub(super) async fn play(&self, wav: &[u8]) -> Result<(), String> {
        let command = match &self.command {
            Some(command) => command,
            None => find().ok_or_else(|| {
                let known: Vec<_> = PLAYERS.iter().map(|it| program(it)).collect();
                format!(
                    "no audio player found; install one of {}, or set one with --player",
                    known.join(", ")
                )
            })?,
        };
        let file = SoundFile::create(wav).await.map_err(|error| {
            format!("cannot write the sound to {}: {error}", std::env::temp_dir().display())
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

/// A file that is deleted on drop.
struct SoundFile {
    path: PathBuf,
}

impl SoundFile {
    async fn create(wav: &[u8]) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-operator-{}-{number}.wav", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Only a new file: an existing one may be an attacker's symbolic link.
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
        // There is nothing to do about a file that cannot be deleted.
        let _ = std::fs::remove_file(path);
    }
}
