//! Questions at the prompt: of a server, and for the arguments of a call.

use bowline::{ErrorObject, Json};
use serde_json::Value;

use super::super::dialog::{About, Dialog, Question};
use super::super::editor::Editor;
use super::super::form::Ask;
use super::super::statement;
use super::Interactive;
use crate::screen::Style;

/// What is being asked, and the line that was being typed before.
pub(super) struct Asking {
    dialog: Dialog,
    pub(super) ask: Ask,
    draft: Editor,
}

/// Waits until the server no longer wants the answer that is being typed.
pub(super) async fn withdrawn(asking: &mut Option<Asking>) {
    match asking {
        Some(asking) => asking.dialog.withdrawn().await,
        None => std::future::pending().await,
    }
}

impl Interactive {
    /// A question of the server came in.
    pub(super) fn asked(&mut self, mut question: Question) {
        self.talk.identify(&mut question);
        let settings = &self.talk.link.settings;
        match settings.answers.answer(&question.asked, &settings.screen) {
            Some(answer) => {
                question.answer(answer);
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
        let answer = match asking.dialog.take(text) {
            Ok(answer) => answer,
            Err(problem) => return self.complain(&problem),
        };
        let Some(dialog) = self.end_asking() else { return };
        let Some(answer) = answer else { return self.ask(dialog) };
        match dialog.about {
            About::Question(question) => self.say(question.answer(answer)),
            About::Call(tool) => {
                let arguments = Json::from(&answer.unwrap_or_default());
                let done = self.talk.call_tool(&tool, &arguments);
                self.done(done);
            }
        }
        self.next_question();
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
        let Some(question) = self.take_question(id) else {
            return self.complain(&format!("no request of the server with id {id} is waiting"));
        };
        let answer = match answer.map(|result| result.to_value()) {
            Ok(result) => question.asked.check(&result).map(|()| Ok(result)),
            Err(error) => error.parse::<ErrorObject>().map(Err).map_err(|it| it.to_string()),
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
        if self.asking.as_ref().and_then(|it| it.dialog.question()).is_some_and(is_wanted) {
            return match self.end_asking()?.about {
                About::Question(question) => Some(*question),
                About::Call(_) => None,
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
        for question in self.questions.drain(..) {
            question.cancel();
        }
    }
}
