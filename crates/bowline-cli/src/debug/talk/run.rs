//! What a line does.

use bowline::Json;
use bowline::client::{CallError, Change, Changes, Wanted};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::dialog::Dialog;
use super::super::event::Event;
use super::super::journal::{Entry, Filter};
use super::super::statement::{self, Action, Given, Message, Statement, split_words};
use super::super::{field, words};
use super::{NOT_CONNECTED, Show, Talk};
use crate::arguments::ArgumentArgs;
use crate::commands::list::all_pages;
use crate::text::{did_you_mean, line};

/// What came of a line.
#[derive(Debug)]
pub(crate) enum Done {
    /// Nothing.
    Nothing,
    /// Text for people.
    Said(String),
    /// It could not be done; why.
    Failed(String),
    /// Calls were started.
    Started(Vec<u64>),
    /// Something has to be asked first.
    Ask(Box<Dialog>),
    /// A question of the server is answered, by id.
    Respond { id: Value, answer: Result<Json, Json> },
    /// The connection is to be made anew.
    Restart,
    /// The screen is to be cleared.
    Clear,
    /// The session is over.
    Quit,
}

fn failed(why: impl Into<String>) -> Done {
    Done::Failed(why.into())
}

impl Talk {
    /// Does what a line says.
    pub(crate) fn run(&mut self, statement: Statement) -> Done {
        let Statement { action, in_background } = statement;
        match action {
            Action::Nothing => Done::Nothing,
            Action::Messages(messages) => self.send(messages),
            Action::Tool { name, arguments } => self.tool(&name, arguments, in_background),
            Action::Method { method, params } => {
                self.call(method.clone(), Show::Json, &method, params)
            }
            Action::Command { name, rest } => self.command(&name, rest.trim(), in_background),
            Action::Word { name, rest } => self.word(&name, &rest, in_background),
        }
    }

    /// Calls a tool whose arguments are complete.
    pub(crate) fn call_tool(&mut self, name: &str, arguments: &Json) -> Done {
        let name_text = Value::from(name).to_string();
        let params = format!(r#"{{"name":{name_text},"arguments":{}}}"#, arguments.as_str());
        match Json::from_text(params) {
            Ok(params) => {
                self.call(name.to_owned(), Show::Tool(name.to_owned()), "tools/call", params)
            }
            Err(error) => failed(error.to_string()),
        }
    }

    fn tool(&mut self, name: &str, arguments: Given, in_background: bool) -> Done {
        let none = json!({ "type": "object" });
        let schema = self.catalog.schema(name).unwrap_or(&none);
        let arguments = match arguments {
            Given::Json(json) => Ok(json),
            Given::Members(members) => Ok(Json::from(&field::arguments(schema, members))),
            Given::Words(words) => ArgumentArgs::default()
                .read(&words)
                .and_then(|given| given.build(Some(schema), false))
                .map_err(|failure| failure.what),
            Given::Nothing => match Dialog::call(name, schema, in_background) {
                Some(dialog) => return Done::Ask(Box::new(dialog)),
                None => Ok(Json::empty_object()),
            },
        };
        match arguments {
            Ok(arguments) => self.call_tool(name, &arguments),
            Err(problem) => failed(format!("{name}: {problem}")),
        }
    }

    /// A word that is no command: a tool, or a mistake.
    fn word(&mut self, name: &str, rest: &str, in_background: bool) -> Done {
        if self.catalog.schema(name).is_some() {
            return match statement::given(rest) {
                Ok(arguments) => self.tool(name, arguments, in_background),
                Err(problem) => failed(format!("{name}: {problem}")),
            };
        }
        let tools = self.catalog.tools.iter().map(|(name, _)| name.as_str());
        let near = did_you_mean(name, words::names().into_iter().chain(tools));
        let near = near.unwrap_or_else(|| "`help` shows what there is".to_owned());
        failed(format!("{name:?} is neither a command nor a tool; {near}"))
    }

    fn command(&mut self, name: &str, rest: &str, in_background: bool) -> Done {
        match name {
            "help" if rest.is_empty() => Done::Said(words::help()),
            "help" => match words::help_of(rest) {
                Some(help) => Done::Said(help),
                None => failed(format!("there is no word {rest:?}; `help` shows all")),
            },
            "status" => Done::Said(self.status()),
            "log" => self.log(rest),
            "replay" => self.replay(rest),
            "set" => self.set(rest),
            "cancel" => self.cancel_by_number(rest),
            "restart" => Done::Restart,
            "clear" => Done::Clear,
            "quit" | "exit" | "q" => Done::Quit,
            "call" => match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
                ("", _) => failed("call which tool? `tools` shows them"),
                (tool, rest) => match statement::given(rest) {
                    Ok(arguments) => self.tool(tool, arguments, in_background),
                    Err(problem) => failed(format!("{tool}: {problem}")),
                },
            },
            "raw" | "notify" => match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
                (method, _) if method.is_empty() || method.starts_with('{') => {
                    failed(format!("{name} which method?"))
                }
                (method, rest) => match statement::params(method, rest.trim()) {
                    Ok(params) if name == "raw" => {
                        self.call(method.to_owned(), Show::Json, method, params)
                    }
                    Ok(params) => self.notify(method.to_owned(), Some(params)),
                    Err(problem) => failed(problem),
                },
            },
            _ => self.ask_server(name, rest),
        }
    }

    /// Commands that ask the server something.
    fn ask_server(&mut self, name: &str, rest: &str) -> Done {
        let Some(client) = self.link.client().cloned() else { return failed(NOT_CONNECTED) };
        let show = match name {
            "tools" => Show::Tools(rest.to_owned()),
            "describe" if rest.is_empty() => return failed("describe which tool?"),
            "describe" => Show::Described(rest.to_owned()),
            "prompts" => Show::Prompts,
            "resources" => Show::Resources,
            "templates" => Show::Templates,
            "ping" => Show::Pong,
            "prompt" => return self.prompt(rest),
            "read" if rest.is_empty() => return failed("read which URI?"),
            "read" => {
                let params = Json::from(&json!({ "uri": rest }));
                return self.call(rest.to_owned(), Show::Contents, "resources/read", params);
            }
            "subscribe" => return self.subscribe(rest),
            _ => return self.unsubscribe(rest),
        };
        let wanted = show.clone();
        let running = async move {
            let (method, member) = match wanted {
                Show::Pong => return client.ping().await.map(|()| Json::empty_object()),
                Show::Prompts => ("prompts/list", "prompts"),
                Show::Resources => ("resources/list", "resources"),
                Show::Templates => ("resources/templates/list", "resourceTemplates"),
                _ => ("tools/list", "tools"),
            };
            all_pages(&client, method, member).await.map(|(all, _)| all)
        };
        Done::Started(vec![self.start(name, show, Box::pin(running))])
    }

    fn prompt(&mut self, rest: &str) -> Done {
        let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() {
            return failed("fill in which prompt? `prompts` shows them");
        }
        let text = |words: Vec<String>| {
            // The arguments of prompts are always text.
            let texts = json!({ "additionalProperties": { "type": "string" } });
            ArgumentArgs::default().read(&words)?.build(Some(&texts), false)
        };
        let arguments = match statement::given(rest) {
            Ok(Given::Json(json)) => Ok(json),
            Ok(Given::Words(words)) => text(words).map_err(|failure| failure.what),
            Ok(_) => Ok(Json::empty_object()),
            Err(problem) => Err(problem),
        };
        match arguments {
            Ok(arguments) => {
                let params = json!({ "name": name, "arguments": arguments });
                self.call(name.to_owned(), Show::Prompt, "prompts/get", Json::from(&params))
            }
            Err(problem) => failed(format!("{name}: {problem}")),
        }
    }

    fn subscribe(&mut self, uri: &str) -> Done {
        if uri.is_empty() {
            let all: Vec<&str> = self.subscriptions.keys().map(String::as_str).collect();
            return Done::Said(match all.is_empty() {
                true => "subscribed to nothing".to_owned(),
                false => format!("subscribed to {}", line(&all.join(", "))),
            });
        }
        let Some(client) = self.link.client().cloned() else { return failed(NOT_CONNECTED) };
        let (events, uri) = (self.events.clone(), uri.to_owned());
        let show = Show::Text(format!("subscribed to {}", line(&uri)));
        let running = async move {
            let changes = client.changes(Wanted::new().resource(&uri)).await?;
            let task = tokio::spawn(tell_changes(changes, events.clone()));
            let _ = events.send(Event::Subscribed(uri, task.abort_handle())).await;
            Ok(Json::empty_object())
        };
        Done::Started(vec![self.start("subscribe", show, Box::pin(running))])
    }

    fn unsubscribe(&mut self, uri: &str) -> Done {
        match self.subscriptions.remove(uri) {
            Some(task) => {
                task.abort();
                Done::Said(format!("no longer subscribed to {}", line(uri)))
            }
            None => failed(format!("{uri:?} is not subscribed to")),
        }
    }

    /// Sends messages as they are. Questions of the server in an answer are shown, not answered.
    fn send(&mut self, messages: Vec<Message>) -> Done {
        let mut started = Vec::new();
        for message in messages {
            let done = match message {
                Message::Request { id, method, params } => self.request(id, method, params),
                Message::Notification { method, params } => self.notify(method, params),
                Message::Response { id, answer } => Done::Respond { id, answer },
            };
            match done {
                Done::Started(jobs) => started.extend(jobs),
                other => return other,
            }
        }
        Done::Started(started)
    }

    fn request(&mut self, id: Json, method: String, params: Json) -> Done {
        let Some(client) = self.link.client().cloned() else { return failed(NOT_CONNECTED) };
        let (title, idle) = (method.clone(), self.idle);
        let running = async move {
            let call = client.call_raw(&method, params);
            let Some(idle) = idle else { return call.await };
            let late = |_| CallError::TimedOut { method: method.clone(), after: idle };
            tokio::time::timeout(idle, call).await.map_err(late)?
        };
        Done::Started(vec![self.start(title, Show::Message(id), Box::pin(running))])
    }

    fn notify(&mut self, method: String, params: Option<Json>) -> Done {
        let Some(client) = self.link.client().cloned() else { return failed(NOT_CONNECTED) };
        let show = Show::Text(format!("sent {}", line(&method)));
        let running = async move {
            client.notify(&method, params.as_ref()).await?;
            Ok(Json::empty_object())
        };
        Done::Started(vec![self.start("notify", show, Box::pin(running))])
    }

    fn log(&self, rest: &str) -> Done {
        if let Some(number) = rest.strip_prefix('#') {
            let entry = number.trim().parse().ok().and_then(|number| self.journal.find(number));
            return match entry {
                Some(entry) => {
                    let text = crate::render::json::indented(&entry.text, self.paint(), 0);
                    let is_json = Json::from_text(entry.text.clone()).is_ok();
                    let text = if is_json { text } else { line(&entry.text) };
                    Done::Said(format!("{}\n{text}", entry.summary()))
                }
                None => failed(format!("the log has no message {rest}")),
            };
        }
        let words = match split_words(rest) {
            Ok(words) => words,
            Err(problem) => return failed(problem),
        };
        let found = self.journal.filtered(&Filter::parse(&words));
        let lines: Vec<String> = found.into_iter().map(Entry::summary).collect();
        Done::Said(match lines.is_empty() {
            true => "nothing".to_owned(),
            false => lines.join("\n"),
        })
    }

    fn replay(&mut self, rest: &str) -> Done {
        let number = rest.trim().trim_start_matches('#').parse().ok();
        let Some(entry) = number.and_then(|number| self.journal.find(number)) else {
            return failed("replay which message? `log sent` shows their numbers");
        };
        let Some((method, params)) = entry.question() else {
            return failed(format!("#{} is no request and no notification", entry.number));
        };
        let params = params.as_ref().map(|params| {
            let mut params = params.clone();
            // Who asks and how is told anew; the token of the old call is not used twice.
            if let Some(members) = params.as_object_mut() {
                members.remove("_meta");
            }
            Json::from(&params)
        });
        match entry.is_request() {
            true => {
                let params = params.unwrap_or_else(Json::empty_object);
                let show = match method.as_str() {
                    "tools/call" => Show::Tool(String::new()),
                    _ => Show::Json,
                };
                self.call(method.clone(), show, &method, params)
            }
            false => self.notify(method, params),
        }
    }

    fn cancel_by_number(&mut self, rest: &str) -> Done {
        if rest.is_empty() {
            return Done::Said(match self.cancel_all() {
                0 => "nothing is running".to_owned(),
                count => format!("cancelled {count}"),
            });
        }
        let number = rest.trim_start_matches('#').parse().ok();
        match number.and_then(|number| self.cancel(number)) {
            Some(job) => Done::Said(format!("cancelled {}", line(&job.title))),
            None => failed(format!("{rest:?} is not running; `status` shows what is")),
        }
    }
}

/// Tells of every change of a resource, until nobody listens.
async fn tell_changes(mut changes: Changes, events: mpsc::Sender<Event>) {
    while let Some(Ok(change)) = changes.next().await {
        let Change::Resource(uri) = change else { continue };
        let text = format!("changed: {}\n", line(&uri));
        if events.send(Event::Say(text)).await.is_err() {
            return;
        }
    }
}
