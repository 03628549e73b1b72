//! What the earlier runs of a handler have left, and whether an answer fits its question.

use std::collections::BTreeMap;
use std::fmt::Display;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::{
    CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, InputRequest, InputRequests,
    ListRootsResult,
};
use bowline_schema::{Schema, SchemaError};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What earlier runs have left: it travels sealed from round to round, or is kept in a task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Past {
    pub(super) expires: u64,
    pub(super) round: u32,
    /// The questions of the last round, by key, each as a digest: an answer counts only for the
    /// question that was asked.
    pub(super) asked: BTreeMap<String, String>,
    pub(super) answers: BTreeMap<String, Recorded>,
    pub(super) memo: BTreeMap<String, Json>,
    /// The forms among the questions of the last round, by key, if the handler has returned them:
    /// nothing else knows them when the answers come.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) forms: BTreeMap<String, AskedForm>,
    /// What a handler that returns its questions calls those that have another key in its task.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) names: BTreeMap<String, String>,
    /// The state of a handler that returns its questions.
    #[serde(default)]
    pub(super) own: Option<Json>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Recorded {
    pub(super) question: String,
    pub(super) answer: Json,
}

impl Past {
    /// Adds answers to questions of the last round.
    pub(crate) fn record(&mut self, given: Vec<(String, Json)>) {
        for (key, answer) in given {
            let question = self.asked.get(&key).cloned().unwrap_or_default();
            self.answers.insert(key, Recorded { question, answer });
        }
    }

    /// The bytes that it takes, roughly.
    pub(crate) fn size(&self) -> usize {
        let answers = self.answers.iter().map(|(key, it)| key.len() + it.answer.as_str().len());
        let memo = self.memo.iter().map(|(key, value)| key.len() + value.as_str().len());
        let own = self.own.as_ref().map_or(0, |own| own.as_str().len());
        let names = self.names.iter().map(|(key, name)| key.len() + name.len());
        let forms = self.forms.iter().map(|(key, form)| key.len() + form.0.as_str().len());
        answers.chain(memo).chain(names).chain(forms).sum::<usize>() + own
    }

    /// Checks that an answer has the shape that the kind of question requires, and fits the form
    /// that is kept for its key.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn check_answer(
        &self,
        key: &str,
        question: &InputRequest,
        answer: &Json,
    ) -> Result<(), ErrorObject> {
        check_shape(question, answer).map_err(|error| {
            let method = question.method();
            let message = format!("inputResponses.{key}: not an answer to {method}: {error}");
            ErrorObject::invalid_params(message)
        })?;
        self.check_form(key, answer)
    }

    /// Checks that an answer fits the form that is kept for its key.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn check_form(&self, key: &str, answer: &Json) -> Result<(), ErrorObject> {
        let Some(form) = self.forms.get(key) else { return Ok(()) };
        form.check(answer)
            .map_err(|why| ErrorObject::invalid_params(format!("inputResponses.{key}: {why}")))
    }

    /// The answer to a question, if it was given.
    pub(super) fn recorded(&self, key: &str, fingerprint: &str) -> Option<Json> {
        let recorded = self.answers.get(key)?;
        // If the question has changed since, this is not its answer.
        (recorded.question == fingerprint).then(|| recorded.answer.clone())
    }

    /// Gives questions that a handler returned other keys where theirs have been used: the keys of
    /// a task are never used again.
    pub(super) fn rename(&mut self, asked: InputRequests) -> InputRequests {
        let mut names = BTreeMap::new();
        let mut renamed = InputRequests::default();
        for (name, question) in asked {
            let is_used = |key: &str| {
                let was_asked = self.asked.contains_key(key) || self.answers.contains_key(key);
                was_asked || renamed.get(key).is_some()
            };
            let mut key = name.clone();
            let mut number = 2_u64;
            while is_used(&key) {
                key = format!("{name}-{number}");
                number += 1;
            }
            renamed.insert(key.as_str(), question);
            if key != name {
                names.insert(key, name);
            }
        }
        self.names = names;
        renamed
    }

    /// What the handler calls a question.
    pub(super) fn name_of(&self, key: &str) -> String {
        self.names.get(key).map_or(key, String::as_str).to_owned()
    }

    /// Whether a key stands for another question already. The keys of a task are never used again.
    pub(super) fn is_taken(&self, key: &str, fingerprint: &str) -> bool {
        let answered = self.answers.get(key).map(|it| it.question.as_str());
        let taken = answered.or_else(|| self.asked.get(key).map(String::as_str));
        taken.is_some_and(|taken| taken != fingerprint)
    }
}

/// The form of a question: what its answer must fit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct AskedForm(Json);

impl AskedForm {
    /// `None` for a question of another kind.
    ///
    /// # Errors
    /// When no answer can be checked against it. This is a mistake in the server.
    pub(crate) fn of(question: &InputRequest) -> Result<Option<Self>, ErrorObject> {
        let InputRequest::Elicit(ElicitParams::Form(form)) = question else { return Ok(None) };
        let wrong = |why: &dyn Display| ErrorObject::internal(format!("a returned form: {why}"));
        let form = Self(Json::new(&form.requested_schema).map_err(|error| wrong(&error))?);
        form.compiled().map_err(|error| wrong(&error))?;
        Ok(Some(form))
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub(crate) fn check(&self, answer: &Json) -> Result<(), String> {
        let answer: ElicitResult = answer.parse().map_err(|error| error.to_string())?;
        if answer.action != ElicitAction::Accept && answer.content.is_none() {
            return Ok(());
        }
        let content = Value::Object(answer.content.unwrap_or_default());
        let form = self.compiled().map_err(|error| error.to_string())?;
        form.validate("content", &content).map_err(|error| error.to_string())
    }

    fn compiled(&self) -> Result<Schema, SchemaError> {
        Schema::compile(&self.0.to_value())
    }
}

/// Whether an answer has the shape that the kind of question requires.
pub(super) fn fits(question: &InputRequest, answer: &Json) -> bool {
    check_shape(question, answer).is_ok()
}

fn check_shape(question: &InputRequest, answer: &Json) -> Result<(), serde_json::Error> {
    match question {
        InputRequest::Elicit(_) => answer.parse::<ElicitResult>().map(drop),
        InputRequest::CreateMessage(_) => answer.parse::<CreateMessageResult>().map(drop),
        InputRequest::ListRoots(_) => answer.parse::<ListRootsResult>().map(drop),
    }
}

/// Why a call elsewhere, which waited for answers, cannot go on.
pub(crate) fn interrupted(call: &str) -> ErrorObject {
    ErrorObject::internal(format!(
        "{call} was interrupted while it waited for input; its effects may have happened; help: \
         find out before you call again"
    ))
}

/// A digest of a question.
pub(super) fn fingerprint(question: &InputRequest) -> String {
    let text = serde_json::to_vec(question).unwrap_or_default();
    let hash = digest(&SHA256, &text);
    hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
