//! The words of a session, for `help` and for completion.

/// A word, what follows it, and what it does; in the order in which `help` shows them.
pub(crate) const WORDS: [(&str, &str, &str); 26] = [
    ("tools", "[TEXT]", "list the tools, or those that mention TEXT"),
    ("describe", "TOOL", "show everything about a tool"),
    ("call", "TOOL [key=value … | {json}]", "call a tool; asks for arguments if none are given"),
    ("tasks", "[[show|resume|cancel] ID]", "list tasks; show, wait for or cancel one"),
    ("prompts", "", "list the prompts"),
    ("prompt", "NAME [key=value … | {json}]", "fill in a prompt"),
    ("complete", "PROMPT|TEMPLATE key=value …", "suggest values for the first key"),
    ("resources", "", "list the resources"),
    ("templates", "", "list the resource templates"),
    ("read", "URI", "read a resource"),
    ("subscribe", "[URI]", "report changes of a resource; alone, list subscriptions"),
    ("unsubscribe", "URI", "stop reporting them"),
    ("ping", "", "measure how fast the server responds"),
    ("raw", "METHOD [{json}]", "send any request"),
    ("notify", "METHOD [{json}]", "send any notification"),
    ("status", "", "show the connection, the server, and what is running"),
    ("cancel", "[N]", "cancel request N, or all"),
    ("log", "[#N | COUNT | WORD | TEXT …]", "show what was said; #N shows a whole message"),
    ("replay", "N", "send message N of the log again"),
    ("set", "[NAME VALUE …]", "change a setting; alone, show all"),
    ("restart", "", "restart the server, or reconnect"),
    ("clear", "", "clear the screen"),
    ("help", "[WORD]", "show this help, or that of a word"),
    ("quit", "", "end the session; so does Ctrl-D"),
    ("exit", "", "the same"),
    ("q", "", "the same"),
];

/// A setting, its values if they are few, and what it does.
pub(crate) const SETTINGS: [(&str, &[&str], &str); 5] = [
    ("log-level", &LEVELS, "the lowest level that the server logs"),
    ("timeout", &[], "seconds without a response or progress after which a call fails"),
    ("roots", &[], "the folders that the server is told about, as URIs"),
    ("verbose", &["on", "off"], "show every message on the wire"),
    ("answers", &["ask", "accept", "decline", "cancel"], "what to do when the server asks"),
];

const LEVELS: [&str; 9] =
    ["off", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The page that `help` shows, or the help of a word.
///
/// # Errors
/// When there is no such word.
pub(crate) fn help(name: &str) -> Result<String, String> {
    if name.is_empty() {
        let words = WORDS.iter().filter(|word| !matches!(word.0, "exit" | "q"));
        let words = words.map(|(name, usage, about)| {
            let usage = format!("{name} {usage}");
            format!("  {usage:<38} {about}\n")
        });
        return Ok(format!("{SYNTAX}{}{KEYS}", words.collect::<String>()));
    }
    let word = WORDS.iter().find(|word| word.0 == name);
    let (_, usage, about) =
        word.ok_or_else(|| format!("there is no word {name:?}; `help` lists them"))?;
    let mut text = format!("{name} {usage}\n  {about}\n");
    if name == "set" {
        for (name, values, about) in SETTINGS {
            let values = values.join(", ");
            let values = if values.is_empty() { values } else { format!(" ({values})") };
            text.push_str(&format!("  {name:<10} {about}{values}\n"));
        }
    }
    if name == "log" {
        let words = super::log::WORDS.join(", ");
        text.push_str(&format!("  words: {words}, all; an entry must match all that are given\n"));
    }
    Ok(text)
}

const SYNTAX: &str = "\
Calling tools
  tool(key: value, …)                    arguments by name, typed by the schema
  tool {\"key\": value}                    arguments as JSON
  tool                                   asks for the arguments one by one
  … &                                    runs in the background
Messages
  {\"jsonrpc\":\"2.0\",\"id\":1,…}             sent as it is; may span several lines
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
        for (name, _, about) in WORDS {
            let help = help(name).unwrap();
            assert!(help.contains(about), "{help}");
        }
        assert!(help("dance").is_err());
        let page = help("").unwrap();
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
        assert!(help("set").unwrap().contains("log-level"));
    }
}
