//! Asks the person at the terminal what a server wants to know, a line at a time. `bowline debug`
//! asks in its own way.

use std::io::{self, IsTerminal};

use tokio::sync::{Mutex, mpsc};

use crate::answers::{Answer, Asked, refusal};
use crate::debug::{Ask, Dialog, Question, input};
use crate::screen::Screen;

/// Whether there is somebody to ask.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question, after those that are open. The end of the input cancels it.
pub(crate) async fn ask(asked: Asked, screen: &Screen) -> Answer {
    static LINES: Mutex<Option<mpsc::Receiver<String>>> = Mutex::const_new(None);
    let mut lines = LINES.lock().await;
    let lines = lines.get_or_insert_with(input);
    let _held = screen.hold();
    let (question, answer) = Question::new(asked);
    let (text, mut dialog) = Dialog::open(question);
    screen.say(&format!("{text}\n"));
    loop {
        let Ask { about, prompt, .. } = dialog.ask();
        screen.say(&about.iter().map(|line| format!("{line}\n")).collect::<String>());
        screen.say(&prompt);
        let Some(line) = lines.recv().await else {
            screen.say("\n");
            dialog.cancel();
            break;
        };
        match dialog.take(&line) {
            Ok(None) => {}
            Ok(Some(answer)) => {
                dialog.answer(answer);
                break;
            }
            Err(problem) => screen.warn(&problem),
        }
    }
    answer.await.unwrap_or_else(|_| Err(refusal("nobody answered")))
}
