//! `bowline debug`: a session with a server, typed at a prompt or piped in.

mod complete;
mod dialog;
mod editor;
mod form;
mod history;
mod interactive;
mod link;
mod log;
mod paint;
mod pipe;
mod show;
mod statement;
mod talk;
mod terminal;
mod words;

use std::io::IsTerminal;

use clap::Args;
use tokio::sync::mpsc;

pub(crate) use self::dialog::{Dialog, Question};
pub(crate) use self::form::Ask;
use self::interactive::Interactive;
use self::link::{Link, MOST_WAITING};
use self::pipe::Pipe;
pub(crate) use self::pipe::input;
use self::talk::Talk;
use crate::failure::Failure;
use crate::screen::OutputArgs;
use crate::session::Settings;
use crate::target::TargetArgs;

/// Talk to a server at a prompt, or through a pipe
///
/// In a terminal, `help` shows what you can type. Otherwise each line of standard input is a
/// request, as JSON-RPC or as you would type it; responses go to standard output, one per line, and
/// the exit code is that of the first failure.
#[derive(Args)]
pub(crate) struct Debug {
    /// Read standard input line by line, even in a terminal
    #[arg(long)]
    no_interactive: bool,

    /// Without a terminal: how many requests run at a time; with more than one, responses come as
    /// soon as they are ready
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,

    #[command(flatten)]
    target: TargetArgs,
}

impl Debug {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let is_interactive = !self.no_interactive
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal();
        let settings = Settings::new(&self.target.options, root)?;
        let resolved = self.target.resolve()?;
        let (events, happened) = mpsc::channel(MOST_WAITING);
        let talk = Talk::new(Link::new(resolved, settings, is_interactive, events));
        if !is_interactive {
            return Pipe::new(talk, happened, self.jobs).run().await;
        }
        talk.link.divert();
        let output = self.target.options.output.clone().or(root);
        Interactive::new(talk, happened, output)?.run().await;
        Ok(())
    }
}
