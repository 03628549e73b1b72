//! What a test client should be like: its revision, and what it answers when it is asked.

use bowline_proto::model::{
    CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, LoggingLevel, Root,
};
use bowline_proto::revision::Revision;

use super::answers::Answers;
use super::link::Link;
use super::{TestClient, TestError};
use crate::{ServeError, Server};

/// What a test client should be like.
#[must_use = "nothing happens until it connects"]
pub struct TestClientBuilder {
    pub(super) revision: Revision,
    pub(super) answers: Answers,
    pub(super) log_level: Option<LoggingLevel>,
}

impl TestClientBuilder {
    /// The revision to speak. The newest, if not said.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    /// Answers questions to the user, and declares that the client can.
    pub fn on_elicit(
        mut self,
        answer: impl Fn(ElicitParams) -> ElicitResult + Send + Sync + 'static,
    ) -> Self {
        self.answers.elicit = Some(Box::new(answer));
        self
    }

    /// Answers questions to the model, and declares that the client can.
    pub fn on_sample(
        mut self,
        answer: impl Fn(CreateMessageParams) -> CreateMessageResult + Send + Sync + 'static,
    ) -> Self {
        self.answers.sample = Some(Box::new(answer));
        self
    }

    /// Tells these folders, and declares that the client can.
    pub fn roots(mut self, roots: Vec<Root>) -> Self {
        self.answers.roots = Some(roots);
        self
    }

    /// Wants log messages from this level on.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Starts the server and connects to it.
    ///
    /// # Errors
    /// When the server cannot be built, or refuses the revision.
    pub async fn connect(self, server: Server) -> Result<TestClient, TestError> {
        let core = server.build().map_err(ServeError::from)?;
        let mut client = TestClient {
            link: Link::open(core),
            revision: self.revision,
            answers: self.answers,
            log_level: self.log_level,
            initialized: None,
        };
        if !client.revision.is_modern() {
            client.initialize().await?;
        }
        Ok(client)
    }
}
