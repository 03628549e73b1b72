//! What a line does.

use bowline::client::{CallError, Change, Changes, Wanted};
use bowline::{Client, Json};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::dialog::Dialog;
use super::super::link::Event;
use super::super::log::{Entry, Kind};
use super::super::statement::{self, Action, Message, Statement, first_word, split_words};
use super::super::words::{self, WORDS};
use super::{Show, Talk};
use crate::arguments::{from_members, text_arguments};
use crate::commands::list::{self, List};
use crate::commands::{call, complete};
use crate::render::json::indented;
use crate::text::{did_you_mean, line};

/// What became of a line.
#[derive(Debug)]
pub(crate) enum Done {
    Nothing,
    Said(String),
    /// These jobs were started.
    Started(Vec<u64>),
    /// Something has to be asked first.
    Ask(Box<Dialog>),
    /// A question of the server is to be answered, by id.
    Respond {
        id: Value,
        answer: Result<Json, Json>,
    },
    Restart,
    Clear,
    Quit,
}

impl Talk {
    /// Runs a line.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub(crate) fn run(&mut self, statement: Statement) -> Result<Done, String> {
        self.waits = !statement.in_background;
        match statement.action {
            Action::Nothing => Ok(Done::Nothing),
            Action::Messages(messages) => self.send(messages),
            Action::Call { tool, members } => {
                let arguments = from_members(&self.schema(&tool), members);
                self.call_tool(&tool, &Json::from(&arguments))
            }
            Action::Command { name, rest } => self.command(&name, &rest),
            Action::Word { name, rest } => self.word(&name, &rest),
        }
    }

    /// Calls a tool whose arguments are complete.
    pub(crate) fn call_tool(&mut self, name: &str, arguments: &Json) -> Result<Done, String> {
        let params = call::params(name, arguments);
        self.call(name, Show::Tool(name.to_owned()), "tools/call", params)
    }

    /// The input schema of a tool; any object, if it is not known.
    fn schema(&self, tool: &str) -> Value {
        let tool = self.catalog.tool(tool);
        tool.map_or_else(|| json!({ "type": "object" }), |tool| tool.input_schema.to_value())
    }

    fn tool(&mut self, name: &str, rest: &str) -> Result<Done, String> {
        let wrong = |problem| format!("{name}: {problem}");
        let schema = self.schema(name);
        let given = statement::given(rest).map_err(wrong)?;
        // Without a person to ask, the server says what is missing.
        if given.is_empty()
            && self.link.asks
            && let Some(dialog) = Dialog::call(name, &schema)
        {
            return Ok(Done::Ask(Box::new(dialog)));
        }
        let arguments = given.build(Some(&schema), false).map_err(|failure| wrong(failure.what))?;
        self.call_tool(name, &arguments)
    }

    /// A word that is not a command: a tool, or a mistake.
    fn word(&mut self, name: &str, rest: &str) -> Result<Done, String> {
        if self.catalog.tool(name).is_some() {
            return self.tool(name, rest);
        }
        let tools = self.catalog.tools.iter().map(|tool| tool.name.as_str());
        let near = did_you_mean(name, WORDS.iter().map(|word| word.0).chain(tools));
        let near = near.unwrap_or_else(|| "`help` shows what there is".to_owned());
        Err(format!("{name:?} is neither a command nor a tool; {near}"))
    }

    fn command(&mut self, name: &str, rest: &str) -> Result<Done, String> {
        // Most commands are followed by a word, and that by something else.
        let (first, more) = first_word(rest);
        Ok(match name {
            "help" => Done::Said(words::help(rest)?),
            "status" => Done::Said(self.status()),
            "log" => Done::Said(self.log(rest)?),
            "replay" => self.replay(rest)?,
            "set" => self.set(rest)?,
            "cancel" => Done::Said(self.cancel_by_number(rest)?),
            "restart" => Done::Restart,
            "clear" => Done::Clear,
            "quit" | "exit" | "q" => Done::Quit,
            "subscribe" => self.subscribe(rest)?,
            "unsubscribe" => {
                let task = self.subscriptions.remove(rest);
                task.ok_or_else(|| format!("not subscribed to {rest:?}"))?.abort();
                Done::Said(format!("no longer subscribed to {}", line(rest)))
            }
            "tools" => self.list(name, &list::TOOLS, rest)?,
            "prompts" => self.list(name, &list::PROMPTS, rest)?,
            "resources" => self.list(name, &list::RESOURCES, rest)?,
            "templates" => self.list(name, &list::TEMPLATES, rest)?,
            "tasks" => self.tasks(rest)?,
            "ping" => {
                let client = self.client()?;
                let ping = async move { client.ping().await.map(|()| Json::empty_object()) };
                self.start(name, Show::Pong, ping)
            }
            _ if first.is_empty() => return Err(missing(name)),
            "describe" => {
                let client = self.client()?;
                self.start(name, Show::Described(rest.to_owned()), fetched(client, &list::TOOLS))
            }
            "call" => self.tool(first, more)?,
            "raw" => self.call(first, Show::Json, first, statement::params(first, more)?)?,
            "notify" => self.notify(first, Some(statement::params(first, more)?))?,
            "prompt" => self.prompt(first, more)?,
            "complete" => {
                let params = complete::read(&split_words(rest)?).map_err(|failure| failure.what)?;
                self.call(name, Show::Values, "completion/complete", params.into())?
            }
            _ => {
                let params = json!({ "uri": rest }).into();
                self.call(rest, Show::Contents, "resources/read", params)?
            }
        })
    }

    fn list(&mut self, title: &str, of: &'static List, text: &str) -> Result<Done, String> {
        let client = self.client()?;
        Ok(self.start(title, Show::List(of, text.to_owned()), fetched(client, of)))
    }

    fn prompt(&mut self, name: &str, rest: &str) -> Result<Done, String> {
        let given = statement::given(rest).map_err(|problem| format!("{name}: {problem}"))?;
        let arguments =
            given.build(Some(&text_arguments()), false).map_err(|failure| failure.what)?;
        let params = json!({ "name": name, "arguments": arguments });
        self.call(name, Show::Prompt, "prompts/get", params.into())
    }

    fn subscribe(&mut self, uri: &str) -> Result<Done, String> {
        if uri.is_empty() {
            let all: Vec<&str> = self.subscriptions.keys().map(String::as_str).collect();
            let all = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
            return Ok(Done::Said(format!("subscribed to {}", line(&all))));
        }
        let client = self.client()?;
        let (events, uri) = (self.link.events.clone(), uri.to_owned());
        let told = format!("subscribed to {}", line(&uri));
        Ok(self.start_silent("subscribe", told, async move {
            let changes = client.changes(Wanted::new().resource(&uri)).await?;
            let task = tokio::spawn(send_changes(changes, events.clone()));
            let _ = events.send(Event::Subscribed(uri, task.abort_handle())).await;
            Ok(())
        }))
    }

    /// Sends messages as they are. Questions in the response are shown, not answered.
    fn send(&mut self, messages: Vec<Message>) -> Result<Done, String> {
        let mut started = Vec::new();
        for message in messages {
            let done = match message {
                Message::Request { id, method, params } => {
                    let call = self.prepare(&method, params)?;
                    self.start(method, Show::Message(id), call.once())
                }
                Message::Notification { method, params } => self.notify(&method, params)?,
                Message::Response { id, answer } => Done::Respond { id, answer },
            };
            match done {
                Done::Started(jobs) => started.extend(jobs),
                other => return Ok(other),
            }
        }
        Ok(Done::Started(started))
    }

    fn notify(&mut self, method: &str, params: Option<Json>) -> Result<Done, String> {
        let (client, method) = (self.client()?, method.to_owned());
        let told = format!("sent {}", line(&method));
        Ok(self.start_silent("notify", told, async move {
            client.notify(&method, params.as_ref()).await
        }))
    }

    fn log(&self, rest: &str) -> Result<String, String> {
        if let Some(number) = rest.strip_prefix('#') {
            let log = self.link.log();
            let entry = number.trim().parse().ok().and_then(|number| log.find(number));
            let entry = entry.ok_or_else(|| format!("the log has no message {rest}"))?;
            let text = match Json::from_text(entry.text.clone()) {
                Ok(_) => indented(&entry.text, self.link.settings.screen.out, 0),
                Err(_) => line(&entry.text),
            };
            return Ok(format!("{}\n{text}", entry.summary()));
        }
        let log = self.link.log();
        let found = log.filtered(&split_words(rest)?);
        let lines: Vec<String> = found.into_iter().map(Entry::summary).collect();
        Ok(if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") })
    }

    fn replay(&mut self, rest: &str) -> Result<Done, String> {
        let number = rest.trim_start_matches('#').parse().ok();
        let found = number.and_then(|number| self.link.log().find(number).cloned());
        let Some(entry) = found else {
            return Err(missing("replay"));
        };
        let method = entry.method.clone();
        let params = entry.params().map(|mut params| {
            // The new request has metadata of its own, such as its progress token.
            if let Some(members) = params.as_object_mut() {
                members.remove("_meta");
            }
            Json::from(&params)
        });
        if entry.kind == Kind::Notification {
            return self.notify(&method, params);
        }
        if entry.kind != Kind::Request {
            return Err(format!("#{} is neither a request nor a notification", entry.number));
        }
        let show = match method.as_str() {
            "tools/call" => Show::Tool(String::new()),
            _ => Show::Json,
        };
        self.call(&method, show, &method, params.unwrap_or_else(Json::empty_object))
    }

    fn cancel_by_number(&mut self, rest: &str) -> Result<String, String> {
        if rest.is_empty() {
            return Ok(match self.cancel_all() {
                0 => "nothing is running".to_owned(),
                count => format!("cancelled {count}"),
            });
        }
        let number = rest.trim_start_matches('#').parse().ok();
        match number.and_then(|number| self.cancel(number)) {
            Some(job) => Ok(format!("cancelled {}", line(&job.title))),
            None => Err(format!("{rest:?} is not running; `status` shows what is")),
        }
    }
}

/// What a command lacks.
fn missing(command: &str) -> String {
    let help = match command {
        "call" | "describe" => "which tool? `tools` lists them",
        "prompt" => "which prompt? `prompts` lists them",
        "complete" => "which prompt or template, and which argument?",
        "read" => "which URI? `resources` lists them",
        "replay" => "which message? `log sent` shows their numbers",
        _ => "which method?",
    };
    format!("{command}: {help}")
}

/// All pages of a list.
pub(super) async fn fetched(client: Client, of: &'static List) -> Result<Json, CallError> {
    list::all_pages(&client, of.method, of.member).await.map(|(all, _)| all)
}

/// Reports every change of a resource.
async fn send_changes(mut changes: Changes, events: mpsc::Sender<Event>) {
    while let Some(Ok(change)) = changes.next().await {
        let Change::Resource(uri) = change else { continue };
        let text = format!("changed: {}\n", line(&uri));
        if events.send(Event::Say(text)).await.is_err() {
            return;
        }
    }
}
