//! The words of a session: what each of them does, for `help` and for completion.

/// A word, how it is used, and what it does.
#[derive(Debug)]
pub(crate) struct Word {
    /// What is typed.
    pub(crate) name: &'static str,
    /// What follows it.
    pub(crate) usage: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
}

const fn word(name: &'static str, usage: &'static str, about: &'static str) -> Word {
    Word { name, usage, about }
}

/// All words, in the order in which `help` shows them.
pub(crate) const WORDS: [Word; 24] = [
    word("tools", "[TEXT]", "the tools of the server"),
    word("describe", "TOOL", "everything about a tool"),
    word("call", "TOOL [key=value … | {json}]", "calls a tool; alone, asks field by field"),
    word("prompts", "", "the prompts of the server"),
    word("prompt", "NAME [key=value … | {json}]", "fills in a prompt"),
    word("resources", "", "the resources of the server"),
    word("templates", "", "the families of resources"),
    word("read", "URI", "reads a resource"),
    word("subscribe", "URI", "hears of changes of a resource"),
    word("unsubscribe", "URI", "no longer"),
    word("ping", "", "is the server there, and how fast"),
    word("raw", "METHOD [{json}]", "any request, as it is"),
    word("notify", "METHOD [{json}]", "any notification, as it is"),
    word("status", "", "the connection, the server, and what is running"),
    word("cancel", "[N]", "cancels request N, or all"),
    word("log", "[#N | COUNT | WORD | TEXT …]", "what was said; #N shows a message whole"),
    word("replay", "N", "sends message N of the log once more"),
    word("set", "[NAME VALUE …]", "settings; alone, shows them"),
    word("restart", "", "ends the server and starts it, or connects, anew"),
    word("clear", "", "clears the screen"),
    word("help", "[WORD]", "this"),
    word("quit", "", "ends the session; so does Ctrl-D"),
    word("exit", "", "the same"),
    word("q", "", "the same"),
];

/// The names of all words.
pub(crate) fn names() -> Vec<&'static str> {
    WORDS.iter().map(|word| word.name).collect()
}

/// The names of the settings, with the values that can be completed.
pub(crate) const SETTINGS: [(&str, &[&str], &str); 5] = [
    ("log-level", &LEVELS, "from which level on the server logs"),
    ("timeout", &[], "seconds without answer or progress after which a call ends"),
    ("roots", &[], "the folders that the server is told of, as URIs"),
    ("verbose", &["on", "off"], "shows every message on the wire"),
    ("answers", &["ask", "accept", "decline", "cancel"], "what is done when the server asks"),
];

const LEVELS: [&str; 9] =
    ["off", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The page that `help` shows.
pub(crate) fn help() -> String {
    let mut text = String::from(SYNTAX);
    for word in WORDS.iter().filter(|word| !matches!(word.name, "exit" | "q")) {
        let usage = format!("{} {}", word.name, word.usage);
        text.push_str(&format!("  {usage:<38} {}\n", word.about));
    }
    text.push_str(KEYS);
    text
}

/// What `help` shows of one word.
pub(crate) fn help_of(name: &str) -> Option<String> {
    let word = WORDS.iter().find(|word| word.name == name)?;
    let mut text = format!("{} {}\n  {}\n", word.name, word.usage, word.about);
    match name {
        "set" => {
            for (name, values, about) in SETTINGS {
                text.push_str(&format!("  {name:<10} {about}"));
                if !values.is_empty() {
                    text.push_str(&format!(" ({})", values.join(", ")));
                }
                text.push('\n');
            }
        }
        "log" => {
            let words = super::journal::WORDS.join(", ");
            text.push_str(&format!("  words: {words}, all; several must all hold\n"));
        }
        _ => {}
    }
    Some(text)
}

const SYNTAX: &str = "\
Calling tools
  tool(key: value, …)                    arguments by name, typed by the schema
  tool {\"key\": value}                    arguments as JSON
  tool                                   arguments asked for one by one
  … &                                    in the background
Messages
  {\"jsonrpc\":\"2.0\",\"id\":1,…}             sent as it is; may go over several lines
  method/name {json}                     any request
Commands
";

const KEYS: &str = "\
Keys
  Tab completes, Up and Ctrl-R find earlier lines, Ctrl-C cancels the running request,
  Ctrl-Z sends it to the background, Ctrl-D quits.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_help() {
        for word in &WORDS {
            let help = help_of(word.name).unwrap();
            assert!(help.contains(word.about), "{help}");
        }
        assert!(help_of("dance").is_none());
        assert!(help().lines().all(|line| line.chars().count() <= 100), "{}", help());
        assert!(help_of("set").unwrap().contains("log-level"));
    }
}
