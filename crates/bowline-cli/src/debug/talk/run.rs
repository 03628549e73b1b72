//! What a line does.

use bowline::client::{CallError, Change, Changes, Wanted};
use bowline::{Client, Json};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::dialog::Dialog;
use super::super::event::Event;
use super::super::log::{Entry, Filter};
use super::super::statement::{self, Action, Given, Message, Statement, split_words};
use super::super::words;
use super::{Show, Talk};
use crate::arguments::{self, ArgumentArgs};
use crate::commands::list::{self, List};
use crate::render::json::indented;
use crate::text::{did_you_mean, line};

/// What became of a line.
#[derive(Debug)]
pub(crate) enum Done {
    Nothing,
    Said(String),
    /// It could not be done; why.
    Failed(String),
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
    pub(crate) fn run(&mut self, statement: Statement) -> Done {
        let in_background = statement.in_background;
        let done = match statement.action {
            Action::Nothing => Ok(Done::Nothing),
            Action::Messages(messages) => self.send(messages),
            Action::Tool { name, arguments } => self.tool(&name, arguments, in_background),
            Action::Method { method, params } => self.call(&method, Show::Json, &method, params),
            Action::Command { name, rest } => self.command(&name, rest.trim(), in_background),
            Action::Word { name, rest } => self.word(&name, &rest, in_background),
        };
        done.unwrap_or_else(Done::Failed)
    }

    /// Calls a tool whose arguments are complete.
    pub(crate) fn call_tool(&mut self, name: &str, arguments: &Json) -> Done {
        let name_text = Value::from(name).to_string();
        let params = format!(r#"{{"name":{name_text},"arguments":{}}}"#, arguments.as_str());
        let params = Json::from_text(params).map_err(|error| error.to_string());
        let show = Show::Tool(name.to_owned());
        let done = params.and_then(|params| self.call(name, show, "tools/call", params));
        done.unwrap_or_else(Done::Failed)
    }

    fn tool(&mut self, name: &str, given: Given, in_background: bool) -> Result<Done, String> {
        let schema = self.catalog.schema(name).unwrap_or_else(|| json!({ "type": "object" }));
        let arguments = match given {
            Given::Json(json) => json,
            Given::Members(members) => Json::from(&arguments::from_members(&schema, members)),
            Given::Words(words) => {
                built(&words, &schema).map_err(|problem| format!("{name}: {problem}"))?
            }
            Given::Nothing => match Dialog::call(name, &schema, in_background) {
                Some(dialog) => return Ok(Done::Ask(Box::new(dialog))),
                None => Json::empty_object(),
            },
        };
        Ok(self.call_tool(name, &arguments))
    }

    /// A word that is not a command: a tool, or a mistake.
    fn word(&mut self, name: &str, rest: &str, in_background: bool) -> Result<Done, String> {
        if self.catalog.tool(name).is_some() {
            let given = statement::given(rest).map_err(|problem| format!("{name}: {problem}"))?;
            return self.tool(name, given, in_background);
        }
        let tools = self.catalog.tools.iter().map(|tool| tool.name.as_str());
        let near = did_you_mean(name, words::names().into_iter().chain(tools));
        let near = near.unwrap_or_else(|| "`help` shows what there is".to_owned());
        Err(format!("{name:?} is neither a command nor a tool; {near}"))
    }

    fn command(&mut self, name: &str, rest: &str, in_background: bool) -> Result<Done, String> {
        // Most commands are followed by a word, and that by something else.
        let (first, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
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
            "ping" => {
                let client = self.client()?;
                let ping = async move { client.ping().await.map(|()| Json::empty_object()) };
                self.start(name, Show::Pong, ping)
            }
            "raw" | "notify" if first.starts_with('{') => return Err(missing(name)),
            _ if first.is_empty() => return Err(missing(name)),
            "describe" => {
                let client = self.client()?;
                self.start(name, Show::Described(rest.to_owned()), fetched(client, &list::TOOLS))
            }
            "call" => {
                let given = statement::given(more);
                let given = given.map_err(|problem| format!("{first}: {problem}"))?;
                self.tool(first, given, in_background)?
            }
            "raw" => {
                let params = statement::params(first, more.trim())?;
                self.call(first, Show::Json, first, params)?
            }
            "notify" => {
                let params = statement::params(first, more.trim())?;
                self.notify(first.to_owned(), Some(params))?
            }
            "prompt" => self.prompt(first, more)?,
            _ => {
                let params = Json::from(&json!({ "uri": rest }));
                self.call(rest, Show::Contents, "resources/read", params)?
            }
        })
    }

    fn list(&mut self, title: &str, of: &'static List, text: &str) -> Result<Done, String> {
        let client = self.client()?;
        Ok(self.start(title, Show::List(of, text.to_owned()), fetched(client, of)))
    }

    fn prompt(&mut self, name: &str, rest: &str) -> Result<Done, String> {
        let arguments = match statement::given(rest) {
            Ok(Given::Json(json)) => Ok(json),
            Ok(Given::Words(words)) => {
                // The arguments of prompts are always text.
                built(&words, &json!({ "additionalProperties": { "type": "string" } }))
            }
            Ok(_) => Ok(Json::empty_object()),
            Err(problem) => Err(problem),
        };
        let arguments = arguments.map_err(|problem| format!("{name}: {problem}"))?;
        let params = json!({ "name": name, "arguments": arguments });
        self.call(name, Show::Prompt, "prompts/get", Json::from(&params))
    }

    fn subscribe(&mut self, uri: &str) -> Result<Done, String> {
        if uri.is_empty() {
            let all: Vec<&str> = self.subscriptions.keys().map(String::as_str).collect();
            let all = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
            return Ok(Done::Said(format!("subscribed to {}", line(&all))));
        }
        let client = self.client()?;
        let (events, uri) = (self.events.clone(), uri.to_owned());
        let show = Show::Text(format!("subscribed to {}", line(&uri)));
        Ok(self.start("subscribe", show, async move {
            let changes = client.changes(Wanted::new().resource(&uri)).await?;
            let task = tokio::spawn(send_changes(changes, events.clone()));
            let _ = events.send(Event::Subscribed(uri, task.abort_handle())).await;
            Ok(Json::empty_object())
        }))
    }

    /// Sends messages as they are. Questions in the response are shown, not answered.
    fn send(&mut self, messages: Vec<Message>) -> Result<Done, String> {
        let mut started = Vec::new();
        for message in messages {
            let done = match message {
                Message::Request { id, method, params } => self.request(id, method, params)?,
                Message::Notification { method, params } => self.notify(method, params)?,
                Message::Response { id, answer } => Done::Respond { id, answer },
            };
            match done {
                Done::Started(jobs) => started.extend(jobs),
                other => return Ok(other),
            }
        }
        Ok(Done::Started(started))
    }

    fn request(&mut self, id: Json, method: String, params: Json) -> Result<Done, String> {
        let (client, idle) = (self.client()?, self.idle);
        Ok(self.start(method.clone(), Show::Message(id), async move {
            let call = client.call_json(method, params);
            let call = if let Some(idle) = idle { call.timeout(idle) } else { call };
            call.once().await
        }))
    }

    fn notify(&mut self, method: String, params: Option<Json>) -> Result<Done, String> {
        let client = self.client()?;
        let show = Show::Text(format!("sent {}", line(&method)));
        Ok(self.start("notify", show, async move {
            client.notify(&method, params.as_ref()).await?;
            Ok(Json::empty_object())
        }))
    }

    fn log(&self, rest: &str) -> Result<String, String> {
        if let Some(number) = rest.strip_prefix('#') {
            let entry = number.trim().parse().ok().and_then(|number| self.log.find(number));
            let entry = entry.ok_or_else(|| format!("the log has no message {rest}"))?;
            let text = match Json::from_text(entry.text.clone()) {
                Ok(_) => indented(&entry.text, self.link.settings.screen.out, 0),
                Err(_) => line(&entry.text),
            };
            return Ok(format!("{}\n{text}", entry.summary()));
        }
        let found = self.log.filtered(&Filter::parse(&split_words(rest)?));
        let lines: Vec<String> = found.into_iter().map(Entry::summary).collect();
        Ok(if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") })
    }

    fn replay(&mut self, rest: &str) -> Result<Done, String> {
        let number = rest.trim_start_matches('#').parse().ok();
        let Some(entry) = number.and_then(|number| self.log.find(number)) else {
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
        if entry.is_notification() {
            return self.notify(method, params);
        }
        if !entry.is_request() {
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
        "read" => "which URI? `resources` lists them",
        "replay" => "which message? `log sent` shows their numbers",
        _ => "which method?",
    };
    format!("{command}: {help}")
}

/// Arguments from `key=value` words, typed by a schema and not checked.
fn built(words: &[String], schema: &Value) -> Result<Json, String> {
    let given = ArgumentArgs::default().read(words);
    given.and_then(|given| given.build(Some(schema), false)).map_err(|failure| failure.what)
}

async fn fetched(client: Client, of: &'static List) -> Result<Json, CallError> {
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
