//! Plays sound with whatever program is installed, and tells when none of them can.

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
    ///
    /// # Errors
    /// If no player is installed, or none can play; the message says why.
    pub(super) async fn play(&self, wav: &[u8]) -> Result<(), String> {
        let commands = match &self.command {
            Some(command) => vec![command.as_str()],
            None => PLAYERS.into_iter().filter(|it| is_installed(program(it))).collect(),
        };
        if commands.is_empty() {
            let known = PLAYERS.map(program).join(", ");
            return Err(format!(
                "no audio player found; install one of {known}, or set one with --player"
            ));
        }
        let file = SoundFile::create(wav).await.map_err(|error| {
            format!("cannot write the sound to {}: {error}", std::env::temp_dir().display())
        })?;
        let mut reasons = Vec::new();
        for command in commands {
            match play_with(command, &file).await {
                Ok(()) => return Ok(()),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("; "))
    }
}

async fn play_with(command: &str, file: &SoundFile) -> Result<(), String> {
    let name = program(command);
    let mut player = Program::new(name);
    for argument in command.split_whitespace().skip(1) {
        player = player.argument(argument);
    }
    let said = player.argument(&file.path.to_string_lossy()).run(b"").await?;
    // It exits with 0 even if it cannot open the device, and reports only errors.
    if name == "ffplay" && !said.errors.is_empty() {
        return Err(format!("{name} failed: {}", said.errors));
    }
    Ok(())
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
        #[cfg(unix)]
        options.mode(0o600);
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
