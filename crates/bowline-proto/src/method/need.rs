//! The capabilities that methods require, and whether a peer declared them.

use crate::model::{ClientCapabilities, ServerCapabilities};

/// The capability that the receiver of a request must have declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// None.
    Nothing,
    /// A server's `tools`.
    Tools,
    /// A server's `prompts`.
    Prompts,
    /// A server's `resources`.
    Resources,
    /// A server's `resources.subscribe`.
    ResourceSubscriptions,
    /// A server's `completions`.
    Completions,
    /// A server's `logging`.
    Logging,
    /// A client's `sampling`.
    Sampling,
    /// A client's `roots`.
    Roots,
    /// A client's `elicitation`.
    Elicitation,
    /// Either's `tasks`.
    Tasks,
    /// Either's `tasks.list`.
    TaskList,
    /// Either's `tasks.cancel`.
    TaskCancel,
    /// An extension, declared by both.
    Extension(&'static str),
}

impl Need {
    /// The capability's name, as it appears in the declaration.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Tools => Some("tools"),
            Self::Prompts => Some("prompts"),
            Self::Resources => Some("resources"),
            Self::ResourceSubscriptions => Some("resources.subscribe"),
            Self::Completions => Some("completions"),
            Self::Logging => Some("logging"),
            Self::Sampling => Some("sampling"),
            Self::Roots => Some("roots"),
            Self::Elicitation => Some("elicitation"),
            Self::Tasks => Some("tasks"),
            Self::TaskList => Some("tasks.list"),
            Self::TaskCancel => Some("tasks.cancel"),
            Self::Extension(id) => Some(id),
        }
    }

    /// Whether a server declared it.
    pub fn is_met_by_server(self, server: &ServerCapabilities) -> bool {
        let tasks = server.tasks.as_ref();
        match self {
            Self::Nothing => true,
            Self::Tools => server.tools.is_some(),
            Self::Prompts => server.prompts.is_some(),
            Self::Resources => server.resources.is_some(),
            Self::ResourceSubscriptions => {
                server.resources.as_ref().is_some_and(|it| it.subscribe == Some(true))
            }
            Self::Completions => server.completions.is_some(),
            Self::Logging => server.logging.is_some(),
            Self::Tasks => tasks.is_some(),
            Self::TaskList => tasks.is_some_and(|tasks| tasks.list.is_some()),
            Self::TaskCancel => tasks.is_some_and(|tasks| tasks.cancel.is_some()),
            Self::Extension(id) => server.has_extension(id),
            Self::Sampling | Self::Roots | Self::Elicitation => false,
        }
    }

    /// Whether a client declared it.
    pub fn is_met_by_client(self, client: &ClientCapabilities) -> bool {
        let tasks = client.tasks.as_ref();
        match self {
            Self::Nothing => true,
            Self::Sampling => client.sampling.is_some(),
            Self::Roots => client.roots.is_some(),
            Self::Elicitation => client.elicitation.is_some(),
            Self::Tasks => tasks.is_some(),
            Self::TaskList => tasks.is_some_and(|tasks| tasks.list.is_some()),
            Self::TaskCancel => tasks.is_some_and(|tasks| tasks.cancel.is_some()),
            Self::Extension(id) => client.has_extension(id),
            Self::Tools
            | Self::Prompts
            | Self::Resources
            | Self::ResourceSubscriptions
            | Self::Completions
            | Self::Logging => false,
        }
    }
}
