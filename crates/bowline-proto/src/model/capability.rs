//! What each side declares that it can do.
//!
//! A capability says that a feature exists, not what it contains: `tools.listChanged` is not a
//! tool. An empty object means "yes"; absence means "no".

use serde::{Deserialize, Serialize};

use crate::json::{Extra, Sparse};
use crate::members::Members;

/// Settings of an experimental feature or an extension, by its name.
pub type Settings = Members<Extra>;

/// What a client can do for a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Features outside the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Settings>,
    /// Lists the folders it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// Lets the server ask its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// Lets the server ask its user. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Runs requests of the server as tasks. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ClientTasksCapability>,
    /// Extensions, by identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Settings>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

impl ClientCapabilities {
    /// Whether the user can be shown a form: `{}` means yes, `{"url":{}}` alone means no.
    pub fn has_elicitation_form(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|it| it.form.is_some() || it.url.is_none())
    }

    /// Whether the user can be sent to a URL.
    pub fn has_elicitation_url(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|it| it.url.is_some())
    }

    /// Whether an extension is declared.
    pub fn has_extension(&self, id: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.get(id).is_some())
    }
}

/// What a server can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// Features outside the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Settings>,
    /// Sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Extra>,
    /// Completes arguments. Since 2025-03-26; the first revision has the method without a
    /// capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<Extra>,
    /// Has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    /// Has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// Has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// Runs requests as tasks. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ServerTasksCapability>,
    /// Extensions, by identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Settings>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

impl ServerCapabilities {
    /// Whether a caller may request that a tool runs as a task. 2025-11-25.
    pub fn has_tool_tasks(&self) -> bool {
        let requests = self.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
        requests.and_then(|requests| requests.tools.as_ref()).is_some_and(|it| it.call.is_some())
    }

    /// Whether an extension is declared.
    pub fn has_extension(&self, id: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.get(id).is_some())
    }
}

/// A client's roots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RootsCapability {
    /// Notifies of changes. Up to 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// A client's sampling.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingCapability {
    /// Can add context from this server or all servers. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Extra>,
    /// Can let the model use tools. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Extra>,
}

/// A client's elicitation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationCapability {
    /// Shows forms. Since 2025-11-25; the `{}` of 2025-06-18 means the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Extra>,
    /// Opens URLs. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Extra>,
}

/// A server's list of tools or prompts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListCapability {
    /// Notifies of changes of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// A server's resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// Notifies of changes of single resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Notifies of changes of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Which of a client's requests can be tasks. 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientTasksCapability {
    /// Answers `tasks/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Extra>,
    /// Answers `tasks/cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Extra>,
    /// Requests that can be tasks, such as `sampling.createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ClientTaskRequests>,
}

/// Requests to a client that can be tasks. 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientTaskRequests {
    /// `sampling/createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingTasks>,
    /// `elicitation/create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationTasks>,
}

/// Sampling as a task. 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingTasks {
    /// `sampling/createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_message: Option<Extra>,
}

/// Elicitation as a task. 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationTasks {
    /// `elicitation/create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Extra>,
}

/// Which of a server's requests can be tasks. 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerTasksCapability {
    /// Answers `tasks/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Extra>,
    /// Answers `tasks/cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Extra>,
    /// Requests that can be tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ServerTaskRequests>,
}

/// Requests to a server that can be tasks. 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerTaskRequests {
    /// Tools as tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolTasks>,
}

/// Tools as tasks. 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolTasks {
    /// `tools/call`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Extra>,
}
