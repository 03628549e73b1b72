//! Where clients keep their config files. The project's come first, then the user's.

use std::path::{Path, PathBuf};

/// A config file, and the client that it belongs to.
#[derive(Debug, Clone)]
pub(super) struct ConfigFile {
    pub(super) client: &'static str,
    pub(super) file: PathBuf,
    /// Whether it comes with a project, and not from the user.
    pub(super) is_project: bool,
}

impl ConfigFile {
    /// A file given by the user. Its client is guessed, which matters only for variables.
    pub(super) fn given(file: &Path) -> Self {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let client = match name {
            "claude_desktop_config.json" => "claude-desktop",
            "settings.json" => "gemini",
            "opencode.json" | "opencode.jsonc" => "opencode",
            _ => "config",
        };
        Self { client, file: file.to_owned(), is_project: false }
    }
}

/// Files in a project's folder or a folder above it.
const PROJECT: [(&str, &str); 8] = [
    ("claude-code", ".mcp.json"),
    ("vscode", ".vscode/mcp.json"),
    ("cursor", ".cursor/mcp.json"),
    ("gemini", ".gemini/settings.json"),
    ("codex", ".codex/config.toml"),
    ("opencode", "opencode.json"),
    ("opencode", "opencode.jsonc"),
    ("bowline", "mcp.json"),
];

/// Files in the user's home.
const HOME: [(&str, &str); 8] = [
    ("cursor", ".cursor/mcp.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("gemini", ".gemini/settings.json"),
    ("antigravity", ".gemini/antigravity/mcp_config.json"),
    ("lm-studio", ".lmstudio/mcp.json"),
    ("lm-studio", ".cache/lm-studio/mcp.json"),
    ("copilot", ".copilot/mcp-config.json"),
    ("claude-code", ".claude.json"),
];

/// Files where applications keep their settings.
const SETTINGS: [(&str, &str); 9] = [
    ("claude-desktop", "Claude/claude_desktop_config.json"),
    ("claude-desktop", "claude/claude_desktop_config.json"),
    ("vscode", "Code/User/mcp.json"),
    ("vscode-insiders", "Code - Insiders/User/mcp.json"),
    ("vscodium", "VSCodium/User/mcp.json"),
    ("cline", "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    ("opencode", "opencode/opencode.json"),
    ("opencode", "opencode/opencode.jsonc"),
    ("bowline", "bowline/mcp.json"),
];

/// All usual files, whether they exist or not.
pub(super) fn usual() -> Vec<ConfigFile> {
    let home = std::env::home_dir();
    let here = std::env::current_dir().ok();
    let mut all: Vec<ConfigFile> = Vec::new();
    let mut put = |client: &'static str, file: PathBuf, is_project: bool| {
        // With the separators of the system.
        let file: PathBuf = file.components().collect();
        if !all.iter().any(|it| it.file == file) {
            all.push(ConfigFile { client, file, is_project });
        }
    };
    for folder in here.as_deref().map(|here| project(here, home.as_deref())).unwrap_or_default() {
        // What is in the user's home is the user's.
        let is_project = Some(folder) != home.as_deref();
        for (client, file) in PROJECT {
            put(client, folder.join(file), is_project);
        }
    }
    let mut add = |client, file| put(client, file, false);
    if let Some(dir) = named("CLAUDE_CONFIG_DIR") {
        add("claude-code", dir.join(".claude.json"));
    }
    if let Some(home) = &home {
        for (client, file) in HOME {
            add(client, home.join(file));
        }
    }
    let codex = named("CODEX_HOME").or_else(|| Some(home.as_ref()?.join(".codex")));
    if let Some(codex) = codex {
        add("codex", codex.join("config.toml"));
    }
    for folder in settings_folders(home.as_deref()) {
        for (client, file) in SETTINGS {
            add(client, folder.join(file));
        }
    }
    all
}

/// The names of all clients.
pub(crate) fn clients() -> Vec<&'static str> {
    let mut names: Vec<&str> = usual().iter().map(|it| it.client).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The file of a client that a server is added to: its first that exists, else its first; the
/// project's or the user's.
pub(crate) fn file_of(client: &str, is_project: bool) -> Option<PathBuf> {
    // In the user's home, files of projects are read as well, but clients write elsewhere.
    let home = std::env::home_dir().unwrap_or_default();
    let is_read_only = |it: &ConfigFile| {
        let mut project =
            PROJECT.iter().filter(|known| !HOME.contains(known) && known.0 != "codex");
        !it.is_project && project.any(|(_, file)| home.join(file) == it.file)
    };
    let own =
        |it: &ConfigFile| it.client == client && it.is_project == is_project && !is_read_only(it);
    let all: Vec<PathBuf> = usual().into_iter().filter(own).map(|it| it.file).collect();
    all.iter().find(|file| file.is_file()).or_else(|| all.first()).cloned()
}

/// The folders of a project, from the current one up to the root of its repository; without a
/// repository, up to the user's home; elsewhere, only the current one.
fn project<'a>(here: &'a Path, home: Option<&Path>) -> Vec<&'a Path> {
    if Some(here) == home {
        return vec![here];
    }
    let inside: Vec<&Path> = here.ancestors().take_while(|folder| Some(*folder) != home).collect();
    let root = inside.iter().position(|folder| folder.join(".git").exists());
    let is_at_home = home.is_some_and(|home| here.starts_with(home));
    let count = root.map_or(if is_at_home { inside.len() } else { 1 }, |root| root + 1);
    inside.into_iter().take(count).collect()
}

/// Where applications of this system keep their settings.
fn settings_folders(home: Option<&Path>) -> Vec<PathBuf> {
    let config = named("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")));
    let mac = home.filter(|_| cfg!(target_os = "macos"));
    let mac = mac.map(|home| home.join("Library/Application Support"));
    let windows = named("APPDATA").filter(|_| cfg!(windows));
    mac.into_iter().chain(windows).chain(config).collect()
}

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|it| !it.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_end_at_their_repository_or_at_home() {
        let folders = |here: &str, home: &str| {
            let found = project(Path::new(here), Some(Path::new(home)));
            found.iter().map(|it| it.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(folders("/none/a/b", "/none"), ["/none/a/b", "/none/a"]);
        assert_eq!(folders("/none", "/none"), ["/none"]);
        assert_eq!(folders("/other/a/b", "/none"), ["/other/a/b"]);
        // This file is in a repository.
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let found = project(Path::new(here), Some(Path::new("/none")));
        assert_eq!(found.len(), if Path::new(here).join("../../../.git").exists() { 4 } else { 1 });
    }
}
