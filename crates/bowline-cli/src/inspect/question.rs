//! What servers ask, until the page answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline::client::ClientBuilder;
use bowline_inspector::{Feed, Keep};
use serde_json::{Value, json};

use crate::answers::{self, Answering, Answers, Asked, Offered};
use crate::debug::Question;
use crate::failure::Failure;
use crate::screen::Screen;

/// The most questions that wait at a time; a server that asks more is refused.
const MOST: usize = 256;

pub(super) struct Questions {
    feed: Feed,
    waiting: Mutex<HashMap<u64, Question>>,
    /// What the page lets the program answer by itself.
    rules: Mutex<Answers>,
    next: AtomicU64,
}

impl Questions {
    pub(super) fn new(feed: Feed) -> Self {
        let (waiting, rules) = (Mutex::default(), Mutex::default());
        Self { feed, waiting, rules, next: AtomicU64::new(1) }
    }

    /// Replaces the rules that answer questions from now on, in the form of docs/answers.md.
    pub(super) fn rule(&self, text: &str) -> Result<(), Failure> {
        let rules = if text.trim().is_empty() { "{}" } else { text };
        *self.rules() = Answers::of_rules(rules)?;
        self.feed.publish(Keep::As("rules"), &json!({ "event": "rules", "text": text }));
        Ok(())
    }

    fn rules(&self) -> MutexGuard<'_, Answers> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a client ask the page, after its rules and the answers that were prepared.
    pub(super) fn listen(
        self: &Arc<Self>,
        builder: ClientBuilder,
        connection: u64,
        answers: &Answers,
    ) -> ClientBuilder {
        let (questions, answers) = (Arc::clone(self), answers.clone());
        let quiet = crate::screen::OutputArgs { quiet: true, ..Default::default() };
        let screen = Arc::new(Screen::new(&quiet));
        screen.divert(|_| {});
        let ask: Answering = Arc::new(move |asked| {
            let by_rule = questions.rules().answer(&asked, &screen);
            let prepared = by_rule.or_else(|| answers.answer(&asked, &screen));
            let questions = Arc::clone(&questions);
            Box::pin(async move {
                match prepared {
                    Some(answer) => answer,
                    None => questions.ask(connection, asked).await,
                }
            })
        });
        let everything = Offered { forms: true, urls: true, sampling: true };
        answers::listen(builder, everything, &ask).samples_with_tools()
    }

    async fn ask(self: Arc<Self>, connection: u64, asked: Asked) -> answers::Answer {
        if self.lock().len() >= MOST {
            return Err(answers::refusal("too many questions wait for an answer"));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let params = match &asked {
            Asked::Form(form) => json!(form),
            Asked::Url(url) => json!(url),
            Asked::Sampling(params) => json!(params),
        };
        let kind = match &asked {
            Asked::Form(_) => "form",
            Asked::Url(_) => "url",
            Asked::Sampling(_) => "sampling",
        };
        let event = json!({
            "event": "question", "question": number, "connection": connection,
            "kind": kind, "method": asked.method(), "params": params,
        });
        let (question, answer) = Question::new(asked);
        self.lock().insert(number, question);
        self.feed.publish(Keep::As(&format!("c{connection}/question/{number}/")), &event);
        // Whatever ends it, an answer or a server that withdraws, it is gone from the page.
        let _waiting = Waiting { questions: Arc::clone(&self), connection, number };
        answer.await.unwrap_or_else(|_| Err(answers::refusal("the session ended")))
    }

    /// Answers a question as the page says.
    pub(super) fn answer(
        &self,
        number: u64,
        result: Option<Value>,
        error: Option<String>,
    ) -> Result<(), String> {
        let mut waiting = self.lock();
        let question = waiting.get(&number).ok_or("the question was withdrawn or answered")?;
        let answer = match (result, error) {
            (Some(result), _) => {
                question.asked.check(&result)?;
                Ok(result)
            }
            (None, why) => Err(answers::refusal(why.unwrap_or_else(|| "the user declined".into()))),
        };
        if let Some(question) = waiting.remove(&number) {
            question.answer(answer);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Question>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Waiting {
    questions: Arc<Questions>,
    connection: u64,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Self { questions, connection, number } = self;
        questions.lock().remove(number);
        questions.feed.forget(&format!("c{connection}/question/{number}/"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rules_are_replaced_whole_or_not_at_all() {
        let feed = Feed::default();
        let questions = Questions::new(feed.clone());
        let text = r#"{"forms":[{"action":"decline"}]}"#;
        questions.rule(text).unwrap();
        for (wrong, why) in [
            (r#"{"form":[]}"#, "unknown field `form`"),
            (r#"{"roots":["file:///x"]}"#, "roots are not answers"),
            ("{", "EOF"),
        ] {
            let failure = questions.rule(wrong).unwrap_err();
            assert!(failure.what.contains(why), "{}", failure.what);
        }
        let (told, _) = feed.after(0, usize::MAX).await;
        assert!(told.contains(&json!(text).to_string()), "{told}");
        questions.rule(" ").unwrap();
    }
}
