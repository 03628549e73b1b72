//! Where clients keep their config files. The project's come first, then the user's.

use std::path::{Path, PathBuf};

/// A config file, and the client that it belongs to.
#[derive(Debug, Clone)]
pub(super) struct ConfigFile {
    pub(super) client: &'static str,
    pub(super) file: PathBuf,
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
        Self { client, file: file.to_owned() }
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

/// How many folders above the current one are searched.
const ABOVE: usize = 16;

/// All usual files, whether they exist or not.
pub(super) fn usual() -> Vec<ConfigFile> {
    let home = std::env::home_dir();
    let here = std::env::current_dir().ok();
    let mut all = Vec::new();
    let mut add = |client: &'static str, file: PathBuf| {
        if !all.iter().any(|it: &ConfigFile| it.file == file) {
            all.push(ConfigFile { client, file });
        }
    };
    // A home is a project only if it is the current folder.
    let above = here.iter().flat_map(|here| here.ancestors()).skip(1).take(ABOVE);
    let above = above.take_while(|folder| Some(*folder) != home.as_deref());
    for folder in here.as_deref().into_iter().chain(above) {
        for (client, file) in PROJECT {
            add(client, folder.join(file));
        }
    }
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
