//! Commands as tools: `run = ["df", "-h", "{path}"]`.
//!
//! Each argument of a call replaces its placeholder within one word of the command. Nothing is ever
//! split or read by a shell, so a value cannot become a second word; and a word that begins with
//! a placeholder cannot become an option, because values that begin with `-` are rejected there.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use bowline::client::{ProcessGroup, find_program};
use bowline::model::ToolAnnotations;
use bowline::{Context, Json, Server, Tool, with_causes};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::rate::Rate;

/// A command that is a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandTool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// The program and its arguments; `{name}` is replaced by an argument of the call.
    pub run: Vec<String>,
    /// The JSON Schema of each argument. Those that are not here are strings.
    pub arguments: BTreeMap<String, Value>,
    /// Which arguments may be left out. A word with such a placeholder is left out then.
    pub optional: Vec<String>,
    /// The folder to run it in.
    pub cwd: Option<std::path::PathBuf>,
    /// Variables to set. Nothing else is inherited, except `PATH`, `HOME` and the locale.
    pub env: Vec<(String, String)>,
    /// How long it may take.
    pub timeout: Duration,
    /// How many bytes of output it may write.
    pub output: usize,
    /// Whether it changes nothing.
    pub is_read_only: bool,
    /// How often each caller may run it.
    pub rate: Option<Rate>,
    /// How many of them each caller may run at a time.
    pub running: Option<usize>,
}

/// What commands inherit from the gateway's environment, which has secrets.
const INHERITED: [&str; 11] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR", // On Windows:
    "SystemRoot",
    "PATHEXT",
    "COMSPEC",
    "TEMP",
    "USERPROFILE",
];

impl CommandTool {
    /// The placeholders, each once, in order.
    #[must_use]
    pub fn placeholders(&self) -> Vec<String> {
        let mut found = Vec::new();
        for part in self.run.iter().flat_map(|word| parts(word)) {
            if let Part::Placeholder(name) = part
                && !found.iter().any(|it| it == name)
            {
                found.push(name.to_owned());
            }
        }
        found
    }

    /// What is wrong with it, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Some(program) = self.run.first().filter(|it| !it.is_empty()) else {
            return Some("run is empty; help: write run = [\"program\", \"argument\"]".to_owned());
        };
        if parts(program).iter().any(|part| matches!(part, Part::Placeholder(_))) {
            return Some("the program itself cannot be an argument of the call".to_owned());
        }
        let known = self.placeholders();
        let given = self.arguments.keys().chain(&self.optional);
        if let Some(name) = given.into_iter().find(|name| !known.contains(name)) {
            return Some(format!("{{{name}}} does not occur in run"));
        }
        let set = Server::new("trial", "1").registry().set(self.tool(&self.name));
        set.err().map(|error| with_causes(&error))
    }

    /// The tool, under a name.
    pub fn tool(&self, name: &str) -> Tool {
        let mut properties = Map::new();
        for argument in self.placeholders() {
            let schema = self.arguments.get(&argument).cloned();
            properties.insert(argument, schema.unwrap_or_else(|| json!({ "type": "string" })));
        }
        let mut required = self.placeholders();
        required.retain(|name| !self.optional.contains(name));
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        let annotations =
            ToolAnnotations { read_only_hint: Some(self.is_read_only), ..Default::default() };
        let this = self.clone();
        let tool = Tool::raw(name, schema, move |_: Context, arguments: Json| {
            let this = this.clone();
            async move { this.call(&arguments.to_value()).await }
        });
        let description = self.description.clone().unwrap_or_else(|| self.run.join(" "));
        tool.description(description).annotations(annotations)
    }

    /// The words of one call.
    ///
    /// # Errors
    /// When an argument cannot be in its place; for the model.
    pub fn words(&self, arguments: &Value) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        'words: for word in &self.run {
            let mut text = String::new();
            for part in parts(word) {
                let name = match part {
                    Part::Text(part) => {
                        text.push_str(part);
                        continue;
                    }
                    Part::Placeholder(name) => name,
                };
                let value = match arguments.get(name) {
                    None | Some(Value::Null) if self.optional.iter().any(|it| it == name) => {
                        continue 'words;
                    }
                    None | Some(Value::Null) => return Err(format!("{name} is missing")),
                    Some(Value::String(value)) => value.clone(),
                    Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
                    Some(_) => return Err(format!("{name} must be a text or a number")),
                };
                if value.contains('\0') {
                    return Err(format!("{name} must not contain a NUL character"));
                }
                if text.is_empty() && value.starts_with('-') {
                    return Err(format!("{name} must not begin with \"-\", as options do"));
                }
                text.push_str(&value);
            }
            words.push(text);
        }
        Ok(words)
    }

    async fn call(&self, arguments: &Value) -> Result<String, String> {
        let words = self.words(arguments)?;
        let (program, args) = words.split_first().ok_or("run is empty")?;
        let path = self.env.iter().rev().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| std::ffi::OsStr::new(value));
        let mut command = tokio::process::Command::new(find_program(program, path));
        command.args(args).env_clear().kill_on_drop(true);
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = &self.cwd {
            command.current_dir(dir);
        }
        ProcessGroup::lead(&mut command);
        let mut child =
            command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
        // Ends what the command has started, too, if the call is given up.
        let mut group = Abandoned { group: ProcessGroup::of(&child), is_over: false };
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let run = async {
            let (out, err) = tokio::join!(read(out, self.output), read(err, self.output / 4));
            (child.wait().await, out, err)
        };
        let Ok((status, out, err)) = tokio::time::timeout(self.timeout, run).await else {
            return Err(format!(
                "{program} did not finish within {:?} and was ended",
                self.timeout
            ));
        };
        group.is_over = true;
        let status = status.map_err(|error| format!("{program}: {error}"))?;
        if status.success() {
            return Ok(out);
        }
        let said = if err.trim().is_empty() { out } else { err };
        Err(format!("{program} failed ({status})\n{}", said.trim_end()))
    }
}

/// Kills a command and its descendants when it is dropped before its end.
struct Abandoned {
    group: ProcessGroup,
    is_over: bool,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if !self.is_over {
            self.group.kill();
        }
    }
}

/// Reads all of a stream, and keeps its beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>, most: usize) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let (mut kept, mut dropped) = (Vec::new(), 0);
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let room = read.min(most.saturating_sub(kept.len()));
        kept.extend_from_slice(&buffer[..room]);
        dropped += read - room;
    }
    let mut text = String::from_utf8_lossy(&kept).into_owned();
    if dropped > 0 {
        text += &format!("\n[{dropped} more bytes of output were left out]");
    }
    text
}

enum Part<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Text and placeholders of a word. Braces around anything but a name are text.
fn parts(word: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), word);
    while let Some(at) = rest.find('{') {
        let name = rest[at + 1..].split_once('}').map(|(name, _)| name);
        let is_name = |name: &&str| {
            !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        };
        if let Some(name) = name.filter(is_name) {
            parts.push(Part::Text(&rest[..at]));
            parts.push(Part::Placeholder(name));
            rest = &rest[at + name.len() + 2..];
        } else {
            parts.push(Part::Text(&rest[..=at]));
            rest = &rest[at + 1..];
        }
    }
    parts.push(Part::Text(rest));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(run: &[&str]) -> CommandTool {
        CommandTool {
            name: "x".to_owned(),
            description: None,
            run: run.iter().map(|it| (*it).to_owned()).collect(),
            arguments: BTreeMap::new(),
            optional: Vec::new(),
            cwd: None,
            env: Vec::new(),
            timeout: Duration::from_secs(10),
            output: 1000,
            is_read_only: false,
            rate: None,
            running: None,
        }
    }

    #[test]
    fn a_value_stays_one_word_and_never_becomes_an_option() {
        let df = command(&["df", "-h", "{path}", "--label={path}", "{not a name}"]);
        let hostile = "/ ; rm -rf / $(id) `id` \" ' \n {path}";
        let words = df.words(&json!({ "path": hostile })).unwrap();
        assert_eq!(words, ["df", "-h", hostile, &format!("--label={hostile}"), "{not a name}"]);
        for (wrong, why) in [
            (json!({ "path": "--output=/etc/passwd" }), "begin with"),
            (json!({ "path": "a\0b" }), "NUL"),
            (json!({ "path": ["a"] }), "text or a number"),
            (json!({}), "missing"),
        ] {
            assert!(df.words(&wrong).unwrap_err().contains(why), "{wrong}");
        }
    }

    #[test]
    fn words_with_optional_arguments_are_left_out() {
        let mut list = command(&["ls", "--sort={by}", "{path}"]);
        list.optional = vec!["by".to_owned()];
        assert_eq!(list.words(&json!({ "path": "p" })).unwrap(), ["ls", "p"]);
        list.optional.push("other".to_owned());
        assert!(list.problem().unwrap().contains("{other} does not occur"));
        assert!(command(&["{path}"]).problem().unwrap().contains("program itself"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn output_time_and_environment_are_bounded() {
        let mut print = command(&["sh", "-c", "env | grep -c '^CARGO'; yes | head -c 5000"]);
        // Machines can be slow; what ends by itself is not to be ended.
        let patient = |mut it: CommandTool| {
            it.timeout = Duration::from_secs(60);
            it
        };
        print.output = 100;
        let print = patient(print);
        let printed = print.call(&json!({})).await.unwrap();
        assert!(printed.starts_with("0\n"), "{printed}");
        assert!(printed.ends_with("more bytes of output were left out]"), "{printed}");
        let mut sleep = command(&["sleep", "1000"]);
        sleep.timeout = Duration::from_millis(50);
        assert!(sleep.call(&json!({})).await.unwrap_err().contains("did not finish"));
        let failing = patient(command(&["sh", "-c", "echo wrong >&2; exit 3"]));
        let told = failing.call(&json!({})).await.unwrap_err();
        assert!(told.contains("exit status: 3") && told.contains("wrong"), "{told}");
    }
}
