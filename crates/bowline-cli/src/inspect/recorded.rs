//! Sessions that were recorded: opened without a connection, compared, exported, replayed, and
//! served again.

use bowline::Server;
use bowline_gateway::diff::{Surface, behaviour};
use bowline_gateway::export::{har, html, otlp};
use bowline_gateway::mock::Mock;
use bowline_gateway::recording::Recording;
use bowline_inspector::{Feed, Form, Keep, Problem, Side};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::link::Link;
use crate::commands::diff::{for_programs, surface};
use crate::commands::replay::replay;
use crate::failure::Failure;

/// A session that was opened.
pub(super) struct Recorded {
    pub(super) text: String,
}

impl Recorded {
    /// Keeps a session, and tells pages of it.
    pub(super) fn open(
        name: &str,
        text: String,
        number: u64,
        feed: &Feed,
    ) -> Result<Self, Problem> {
        let recording = parse(&text)?;
        let event = json!({
            "event": "connection", "connection": number, "state": "file",
            "about": format!("session file {name}"), "name": name, "isFile": true,
            "server": recording.opening.server(), "problems": recording.problems,
        });
        feed.publish(Keep::As(&format!("c{number}/state")), &event);
        Ok(Self { text })
    }
}

fn parse(text: &str) -> Result<Recording, Problem> {
    Recording::from_reader(text.as_bytes()).map_err(|why| Problem {
        what: why,
        remedy: Some("expected a file of `--record` or `bowline tap --record`".to_owned()),
    })
}

pub(super) fn export(text: &str, to: Form) -> Result<Value, Problem> {
    let recording = parse(text)?;
    let text = match to {
        Form::Har => har(&recording).to_string(),
        Form::Otlp => otlp(&recording).to_string(),
        Form::Html => html(&recording),
    };
    Ok(json!({ "text": text }))
}

/// One side of a comparison.
pub(super) enum Compared {
    Session(Box<Recording>),
    Server(Box<Surface>),
}

impl Compared {
    pub(super) async fn of(side: Side, link: Option<&Link>) -> Result<Self, Problem> {
        match (side, link) {
            (Side::Session { text }, _) => Ok(Self::Session(Box::new(parse(&text)?))),
            (Side::Server { .. }, Some(link)) => {
                let offered = surface(&link.client()?).await?;
                Ok(Self::Server(Box::new(offered)))
            }
            (Side::Server { connection }, None) => {
                Err(Problem::new(format!("connection {connection} is closed")))
            }
        }
    }

    /// What differs: what is offered, and where both are sessions, what was answered.
    pub(super) fn compare(&self, other: &Self) -> Value {
        let offered = |side: &Self| match side {
            Self::Session(recording) => Surface::of(recording),
            Self::Server(surface) => (**surface).clone(),
        };
        let mut found = vec![("surface".to_owned(), offered(self).compare(&offered(other), &[]))];
        if let (Self::Session(one), Self::Session(other)) = (self, other) {
            found.extend(behaviour(one, other, &[]));
        }
        for_programs(&found)
    }
}

/// Replays a session against the server of a connection, and reports what differs.
pub(super) async fn repeat(link: &Link, text: &str) {
    let state =
        |state: &str| json!({ "event": "replay", "connection": link.number, "state": state });
    link.publish("replay", &state("running"));
    let found = match parse(text) {
        Ok(recording) => replay(&link.resolved, &recording).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    let mut event = state("done");
    match found {
        Ok(found) => {
            event["requests"] = found.len().into();
            event["differences"] = for_programs(&found)["differences"].take();
        }
        Err(problem) => event["problem"] = json!(problem),
    }
    link.publish("replay", &event);
}

/// Serves the answers of a session until it is dropped; returns where, and the serving.
pub(super) async fn serve(
    text: &str,
) -> Result<(String, impl Future<Output = ()> + 'static), Problem> {
    let answers = Mock::new(&parse(text)?, false);
    let failed = |error: std::io::Error| Problem::from(Failure::usage(error.to_string()));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
    let url = format!("http://{}/mcp", listener.local_addr().map_err(failed)?);
    let server = answers.server().await.map_err(|error| Problem::from(Failure::from(error)))?;
    let serving = async move {
        // It fails only when it cannot listen any more: the connection to it says so.
        let _ = Server::http(server).serve_until(listener, std::future::pending()).await;
    };
    Ok((url, serving))
}
