//! Questions at the prompt: of a server, and for the arguments of a call.

use bowline::{ErrorObject, Json};
use serde_json::Value;

use super::super::dialog::{self, Dialog, Next};
use super::super::editor::Editor;
use super::super::question::Question;
use super::super::statement;
use super::Interactive;
use crate::screen::Style;

impl Interactive {
    /// A question of the server came in.
    pub(super) fn asked(&mut self, mut question: Question) {
        self.talk.identify(&mut question);
        match question.asked.by(self.talk.policy) {
            Some(answer) => {
                let (method, word) = (question.asked.method(), self.talk.policy.word());
                let _ = question.reply.send(answer);
                self.say(&format!("the server asked ({method}); answered by `{word}`"));
            }
            None => self.questions.push_back(question),
        }
        self.next_question();
    }

    /// Takes up the next question, if nothing is asked already.
    fn next_question(&mut self) {
        while self.dialog.is_none() {
            let Some(question) = self.questions.pop_front() else { return };
            if question.reply.is_closed() {
                continue;
            }
            let (text, dialog) = Dialog::open(question);
            let text = self.screen.err.paint(Style::Yellow, &text);
            self.say(&text);
            self.ask(dialog);
        }
    }

    /// Asks something; the line that was being typed comes back afterwards.
    pub(super) fn ask(&mut self, dialog: Dialog) {
        let draft = std::mem::take(&mut self.editor);
        self.pose(dialog, draft);
    }

    fn pose(&mut self, mut dialog: Dialog, draft: Editor) {
        let ask = dialog.ask();
        let about = ask.about.join("\n");
        self.dialog = Some((dialog, ask, draft));
        match about.is_empty() {
            true => self.redraw(),
            false => self.say(&about),
        }
    }

    pub(super) fn answer(&mut self, text: &str) {
        if let Some((id, answer)) = statement::response(text) {
            return self.respond(&id, answer);
        }
        let Some((dialog, ask, draft)) = self.dialog.take() else { return };
        match dialog.take(text) {
            Ok(Next::Ask(dialog)) => self.pose(*dialog, draft),
            Ok(Next::Call { tool, arguments, in_background }) => {
                self.editor = draft;
                let arguments = Json::from(&Value::Object(arguments));
                let done = self.talk.call_tool(&tool, &arguments);
                self.done(done, in_background);
                self.next_question();
            }
            Ok(Next::Answered(how)) => {
                self.editor = draft;
                self.say(how);
                self.next_question();
            }
            Err((dialog, problem)) => {
                self.dialog = Some((*dialog, ask, draft));
                self.complain(&problem);
            }
        }
    }

    /// A question is over; the next one is taken up.
    pub(super) fn end_dialog(&mut self) {
        if let Some((dialog, _, draft)) = self.dialog.take() {
            self.editor = draft;
            let how = dialog.cancel();
            self.say(how);
        }
        self.next_question();
    }

    /// Answers a question by the id of its request.
    pub(super) fn respond(&mut self, id: &Value, answer: Result<Json, Json>) {
        let Some(question) = self.take_question(id) else {
            return self.complain(&format!("no request of the server with id {id} waits"));
        };
        let told = match answer {
            Ok(result) => question.asked.read(&result.to_value()).map(|reply| {
                dialog::answer(question, reply);
            }),
            Err(error) => error
                .parse::<ErrorObject>()
                .map_err(|error| error.to_string())
                .map(|error| dialog::refuse(question, error)),
        };
        match told {
            Ok(()) => self.say("answered"),
            Err(problem) => self.complain(&format!("{problem}; the question was dropped")),
        }
        self.next_question();
    }

    /// The question that came in a request.
    fn take_question(&mut self, id: &Value) -> Option<Question> {
        let is_wanted = |question: &Question| question.id.as_ref() == Some(id);
        if self.dialog.as_ref().and_then(|(dialog, ..)| dialog.question()).is_some_and(is_wanted) {
            let (dialog, _, draft) = self.dialog.take()?;
            self.editor = draft;
            return dialog.into_question();
        }
        let place = self.questions.iter().position(is_wanted)?;
        self.questions.remove(place)
    }

    /// Nobody will answer these any more.
    pub(super) fn drop_questions(&mut self) {
        if let Some((dialog, _, draft)) = self.dialog.take() {
            self.editor = draft;
            dialog.cancel();
        }
        self.questions.drain(..).for_each(dialog::cancel);
    }
}
