//! A connection that is opened as the revision wants it, and closed again. Several checks look at
//! it, and the survey has made one of each revision already.

use serde_json::{Value, json};

use crate::connection::{Connection, Ending};
use crate::evidence::Evidence;
use crate::observed::Observed;
use crate::probe::{NotPassed, Probe};

/// A connection from its beginning to its end.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// The answer to `initialize`, or to `server/discover`.
    pub(crate) answer: Value,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) observed: Observed,
    /// How the program ended when its input was closed.
    pub(crate) ending: Option<Ending>,
}

impl Opening {
    /// Closes a connection on which nothing else was requested.
    pub(crate) async fn close(mut connection: Connection, answer: Value) -> Self {
        let evidence = std::mem::take(&mut connection.evidence);
        let ending = connection.close().await;
        Self { answer, evidence, observed: connection.observed, ending }
    }
}

impl Probe {
    /// A connection of this revision, from its beginning to its end.
    pub(crate) async fn opening(&mut self) -> Result<Opening, NotPassed> {
        let opening = match self.opening.take() {
            Some(opening) => opening,
            None => {
                let opening = match self.settings.openings.get(&self.revision).cloned() {
                    Some(surveyed) => surveyed,
                    None => self.open_and_close().await?,
                };
                self.observed.merge(opening.observed.clone());
                opening
            }
        };
        self.evidence.extend(opening.evidence.iter().cloned());
        self.opening = Some(opening.clone());
        Ok(opening)
    }

    async fn open_and_close(&mut self) -> Result<Opening, NotPassed> {
        let mut connection = self.fresh().await?;
        let answer = if self.revision.is_modern() {
            let asked = connection.ask(self.revision, "server/discover", json!({})).await;
            asked.map(|reply| reply.message.unwrap_or_default())
        } else {
            connection.shake_hands(self.revision.as_str()).await
        };
        match answer {
            Ok(answer) => Ok(Opening::close(connection, answer).await),
            Err(lost) => {
                self.finish(connection).await;
                Err(lost.into())
            }
        }
    }
}
