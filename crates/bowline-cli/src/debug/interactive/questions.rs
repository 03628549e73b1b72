//! Questions at the prompt: of a server, and for the arguments of a call.

use bowline::{ErrorObject, Json};
use serde_json::Value;

use super::super::dialog::{Dialog, Next};
use super::super::editor::Editor;
use super::super::form::Ask;
use super::super::question::Question;
use super::super::statement;
use super::Interactive;
use crate::screen::Style;

/// What is being asked, and the line that was being typed before.
pub(super) struct Asking {
    dialog: Dialog,
    pub(super) ask: Ask,
    draft: Editor,
}

impl Asking {
    fn question(&self) -> Option<&Question> {
        match &self.dialog {
            Dialog::Server { question, .. } => Some(question),
            Dialog::Call { .. } => None,
        }
    }
}

/// Waits until the server no longer wants the answer that is being typed.
pub(super) async fn withdrawn(asking: &mut Option<Asking>) {
    match asking {
        Some(Asking { dialog: Dialog::Server { question, .. }, .. }) => question.withdrawn().await,
        _ => std::future::pending().await,
    }
}

impl Interactive {
    /// A question of the server came in.
    pub(super) fn asked(&mut self, mut question: Question) {
        self.talk.identify(&mut question);
        match question.asked.by(self.talk.policy) {
            Some(answer) => {
                let (method, word) = (question.asked.method(), self.talk.policy.word());
                question.answer(answer);
                self.say(&format!("the server asked ({method}); answered by `{word}`"));
            }
            None => self.questions.push_back(question),
        }
        self.next_question();
    }

    /// Asks the next question, if nothing is being asked.
    fn next_question(&mut self) {
        while self.asking.is_none() {
            let Some(question) = self.questions.pop_front() else { return };
            if !question.is_withdrawn() {
                let (text, dialog) = Dialog::open(question);
                let text = self.screen.err.paint(Style::Yellow, &text);
                self.say(&text);
                self.ask(dialog);
            }
        }
    }

    /// Asks something; the line that was being typed comes back afterwards.
    pub(super) fn ask(&mut self, mut dialog: Dialog) {
        let ask = dialog.ask();
        let about = ask.about.join("\n");
        let draft = std::mem::take(&mut self.editor);
        self.asking = Some(Asking { dialog, ask, draft });
        self.say(&about);
    }

    fn end_asking(&mut self) -> Option<Dialog> {
        let asking = self.asking.take()?;
        self.editor = asking.draft;
        Some(asking.dialog)
    }

    pub(super) fn answer(&mut self, text: &str) {
        if let Some((id, answer)) = statement::response(text) {
            return self.respond(&id, answer);
        }
        let Some(asking) = &mut self.asking else { return };
        match asking.dialog.take(text) {
            Ok(Next::Ask) => {
                if let Some(dialog) = self.end_asking() {
                    self.ask(dialog);
                }
            }
            Ok(Next::Call(arguments)) => {
                if let Some(Dialog::Call { tool, in_background, .. }) = self.end_asking() {
                    let done = self.talk.call_tool(&tool, &Json::from(&Value::Object(arguments)));
                    self.done(done, in_background);
                }
                self.next_question();
            }
            Ok(Next::Answered(how)) => {
                self.end_asking();
                self.say(how);
                self.next_question();
            }
            Err(problem) => self.complain(&problem),
        }
    }

    /// Gives up the question, and asks the next one.
    pub(super) fn end_dialog(&mut self) {
        if let Some(dialog) = self.end_asking() {
            self.say(dialog.cancel());
        }
        self.next_question();
    }

    /// Answers a question by the id of its request.
    pub(super) fn respond(&mut self, id: &Value, answer: Result<Json, Json>) {
        let Some(mut question) = self.take_question(id) else {
            return self.complain(&format!("no request of the server with id {id} is waiting"));
        };
        let answer = match answer {
            Ok(result) => question.asked.read(&result.to_value()).map(Ok),
            Err(error) => {
                error.parse::<ErrorObject>().map(Err).map_err(|problem| problem.to_string())
            }
        };
        match answer {
            Ok(answer) => {
                question.answer(answer);
                self.say("answered");
            }
            Err(problem) => self.complain(&format!("{problem}; the question was dropped")),
        }
        self.next_question();
    }

    fn take_question(&mut self, id: &Value) -> Option<Question> {
        let is_wanted = |question: &Question| question.id.as_ref() == Some(id);
        if self.asking.as_ref().and_then(Asking::question).is_some_and(is_wanted) {
            return match self.end_asking()? {
                Dialog::Server { question, .. } => Some(*question),
                Dialog::Call { .. } => None,
            };
        }
        let place = self.questions.iter().position(is_wanted)?;
        self.questions.remove(place)
    }

    /// Cancels everything that is asked.
    pub(super) fn drop_questions(&mut self) {
        if let Some(dialog) = self.end_asking() {
            dialog.cancel();
        }
        for mut question in self.questions.drain(..) {
            question.cancel();
        }
    }
}
