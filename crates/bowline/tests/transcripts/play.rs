//! Plays a transcript, and rewrites it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::link::Link;
use crate::matching::{Bindings, matches, with_placeholders};
use crate::script::{Client, Script, Step};

/// How long to wait for an expected message. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long an update waits for further messages.
const QUIET: Duration = Duration::from_millis(60);

/// Plays a transcript. The error says where it failed.
pub(crate) async fn check(script: &Script, link: Link, how: &str) -> Result<(), String> {
    let mut player = Player::new(script, link);
    player.open().await.map_err(|problem| player.failure(how, &problem))?;
    let mut unordered = None;
    for line in &script.lines {
        player.number = line.number;
        let played = match (&line.step, &mut unordered) {
            (Step::Unordered, _) => {
                unordered = Some(Vec::new());
                Ok(())
            }
            (Step::Expect(expected), Some(waiting)) => {
                waiting.push(expected);
                Ok(())
            }
            (Step::Blank, waiting) => match waiting.take() {
                Some(expected) => player.expect_any_order(expected).await,
                None => Ok(()),
            },
            (Step::Expect(expected), None) => player.expect(expected).await,
            (step, _) => player.step(step).await,
        };
        played.map_err(|problem| player.failure(how, &problem))?;
    }
    let ended = match unordered.take() {
        Some(expected) => player.expect_any_order(expected).await,
        None => Ok(()),
    };
    ended.map_err(|problem| player.failure(how, &problem))?;
    let failure = |problem: String| format!("{}: {how}: {problem}", script.name);
    player.expect_end().await.map_err(failure)?;
    player.link.ended().await.map_err(failure)
}

/// Plays a transcript and returns its text with the actual messages.
pub(crate) async fn update(script: &Script, link: Link) -> Result<String, String> {
    let mut player = Player::new(script, link);
    player.open().await.map_err(|problem| player.failure("update", &problem))?;
    let mut text = String::new();
    let mut old: Vec<&Value> = Vec::new();
    let mut has_news = false;
    for line in &script.lines {
        player.number = line.number;
        if let Step::Expect(expected) = &line.step {
            old.push(expected);
            continue;
        }
        if std::mem::take(&mut has_news) {
            text += &player.take_news(&std::mem::take(&mut old)).await?;
        }
        has_news = matches!(line.step, Step::Send(_) | Step::Close);
        text += &line.text;
        text.push('\n');
        player.step(&line.step).await.map_err(|problem| player.failure("update", &problem))?;
    }
    player.link.close().await;
    text += &player.take_news(&old).await?;
    Ok(text)
}

struct Player<'a> {
    script: &'a Script,
    link: Link,
    bindings: Bindings,
    /// The bindings made by `let`.
    lets: Bindings,
    number: usize,
}

impl<'a> Player<'a> {
    fn new(script: &'a Script, link: Link) -> Self {
        Self { script, link, bindings: Bindings::new(), lets: Bindings::new(), number: 0 }
    }

    fn failure(&self, how: &str, problem: &str) -> String {
        format!("{}:{}: {how}: {problem}", self.script.name, self.number)
    }

    /// Runs the handshake of the transcript's client.
    async fn open(&mut self) -> Result<(), String> {
        let Some(Client { revision, capabilities }) = &self.script.client else { return Ok(()) };
        let client = json!({ "name": "transcript", "version": "1.0.0" });
        if revision.as_str() >= "2026" {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": capabilities,
                "io.modelcontextprotocol/clientInfo": client,
            });
            self.bindings.insert("meta".to_owned(), meta);
            return Ok(());
        }
        let params = json!({
            "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client,
        });
        let initialize =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        self.link.send(&initialize.to_string()).await?;
        let answer = self.link.receive(PATIENCE).await?.unwrap_or_default();
        if answer["result"]["protocolVersion"].as_str() != Some(revision) {
            return Err(format!("the handshake failed: {answer}"));
        }
        self.link.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Send(frame) => {
                let frame = self.filled_in(frame)?;
                self.link.send(&frame).await
            }
            Step::Let(name, value) => {
                self.bindings.insert(name.clone(), value.clone());
                self.lets.insert(name.clone(), value.clone());
                Ok(())
            }
            Step::Close => {
                self.link.close().await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The message to send, with names replaced by their values.
    fn filled_in(&self, frame: &str) -> Result<String, String> {
        let mut text = frame.to_owned();
        for (name, value) in &self.bindings {
            text = text.replace(&format!(r#""<${name}>""#), &value.to_string());
        }
        match text.split_once(r#""<$"#) {
            Some((_, rest)) => {
                Err(format!("nothing is called ${}", rest.split('>').next().unwrap()))
            }
            None => Ok(text),
        }
    }

    async fn receive(&mut self, expected: &str) -> Result<Value, String> {
        match self.link.receive(PATIENCE).await {
            Ok(Some(got)) => Ok(got),
            Ok(None) => Err(format!("\n  expected {expected}\n  got      the end")),
            Err(problem) => Err(format!("\n  expected {expected}\n  got      {problem}")),
        }
    }

    async fn expect(&mut self, expected: &Value) -> Result<(), String> {
        let got = self.receive(&expected.to_string()).await?;
        if matches(expected, &got, self.script.is_subset, &mut self.bindings) {
            return Ok(());
        }
        Err(format!("\n  expected {expected}\n  got      {got}"))
    }

    async fn expect_any_order(&mut self, mut expected: Vec<&Value>) -> Result<(), String> {
        while !expected.is_empty() {
            let all: Vec<_> = expected.iter().map(ToString::to_string).collect();
            let got = self.receive(&all.join("\n        or ")).await?;
            let bindings = &mut self.bindings;
            let is_subset = self.script.is_subset;
            let place = expected.iter().position(|it| matches(it, &got, is_subset, bindings));
            let Some(place) = place else {
                return Err(format!(
                    "\n  expected {}\n  got      {got}",
                    all.join("\n        or ")
                ));
            };
            expected.remove(place);
        }
        Ok(())
    }

    async fn expect_end(&mut self) -> Result<(), String> {
        self.link.close().await;
        match self.link.receive(PATIENCE).await {
            Ok(None) => Ok(()),
            Ok(Some(got)) => Err(format!("at the end\n  expected nothing\n  got      {got}")),
            Err(problem) => Err(format!("at the end\n  expected the end\n  got      {problem}")),
        }
    }

    /// All messages that arrive, as lines of a transcript.
    async fn take_news(&mut self, old: &[&Value]) -> Result<String, String> {
        let mut text = String::new();
        let mut count = 0;
        while let Ok(Some(got)) = self.link.receive(QUIET).await {
            let expected = old.get(count).copied();
            let shown = with_placeholders(expected, &got, &self.lets);
            // Binds the names.
            matches(&shown, &got, false, &mut self.bindings);
            text += &format!("< {shown}\n");
            count += 1;
        }
        Ok(text)
    }
}
