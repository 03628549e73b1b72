//! What the earlier runs of a handler have left, and whether an answer fits its question.

use std::collections::BTreeMap;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::{
    CreateMessageResult, ElicitResult, InputRequest, InputRequests, ListRootsResult,
};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

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
        answers.chain(memo).chain(names).sum::<usize>() + own
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

/// Whether an answer has the shape that the kind of question requires.
pub(super) fn fits(question: &InputRequest, answer: &Json) -> bool {
    check_answer("", question, answer).is_ok()
}

/// Checks that an answer has the shape that the kind of question requires.
///
/// # Errors
/// When it has another one.
pub(crate) fn check_answer(
    key: &str,
    question: &InputRequest,
    answer: &Json,
) -> Result<(), ErrorObject> {
    let checked = match question {
        InputRequest::Elicit(_) => answer.parse::<ElicitResult>().map(drop),
        InputRequest::CreateMessage(_) => answer.parse::<CreateMessageResult>().map(drop),
        InputRequest::ListRoots(_) => answer.parse::<ListRootsResult>().map(drop),
    };
    checked.map_err(|error| {
        let method = question.method();
        let message = format!("inputResponses.{key}: not an answer to {method}: {error}");
        ErrorObject::invalid_params(message)
    })
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
