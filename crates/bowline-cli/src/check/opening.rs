//! A connection that is opened as the revision has it, and closed again. Several checks look at it,
//! and the survey has made one of each revision already.

use serde_json::{Value, json};

use super::evidence::Evidence;
use super::probe::{Probe, Trouble};
use super::seen::Seen;
use super::wire::{Ending, Link, Until, request};

/// What came of it.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    /// The answer to `initialize`, or to `server/discover`.
    pub(super) answer: Value,
    pub(super) evidence: Vec<Evidence>,
    pub(super) seen: Seen,
    /// How the program ended when its input was closed.
    pub(super) ending: Option<Ending>,
}

impl Opened {
    /// Closes a connection on which nothing but this answer was asked for.
    pub(super) async fn close(mut link: Link, answer: Value) -> Self {
        let evidence = std::mem::take(&mut link.evidence);
        let (ending, seen) = link.close().await;
        Self { answer, evidence, seen, ending }
    }
}

impl Probe {
    /// A connection of this revision, from its beginning to its end.
    pub(super) async fn opened(&mut self) -> Result<Opened, Trouble> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => {
                let surveyed = self.settings.openings.get(&self.revision).cloned();
                let opened = match surveyed {
                    Some(opened) => opened,
                    None => self.open_and_close().await?,
                };
                self.seen.merge(opened.seen.clone());
                opened
            }
        };
        self.evidence.extend(opened.evidence.iter().cloned());
        self.opened = Some(opened.clone());
        Ok(opened)
    }

    async fn open_and_close(&mut self) -> Result<Opened, Trouble> {
        let mut link = self.fresh().await?;
        let answer = match self.revision.is_modern() {
            true => {
                let id = link.next_id();
                let frame = request(self.revision, &id, "server/discover", json!({})).to_string();
                let heard = link.exchange(&frame, Until::Answer(&id), &[]).await;
                heard.map(|heard| heard.answer(&id).cloned().unwrap_or_default())
            }
            false => link.shake_hands(self.revision.as_str()).await,
        };
        match answer {
            Ok(answer) => Ok(Opened::close(link, answer).await),
            Err(lost) => {
                self.finish(link).await;
                Err(lost.into())
            }
        }
    }
}
