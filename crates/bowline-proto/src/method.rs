//! The table of methods: every request and notification, who sends it to whom, in which revisions,
//! and which capability it needs.
//!
//! There are two ways to use it. By type: [`Method`] and [`Notice`] tie a name to its parameters
//! and result, so that the type of an answer follows from the request and never from its shape. By
//! name: [`find`] returns the [`Row`] that applies in a revision. Both are generated from the one
//! list below; everything that needs to know the methods asks here.

mod need;

use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned};

pub use self::need::Need;
use crate::model::*;
use crate::model::{skill, task_extension};
use crate::revision::Adapt;
use crate::revision::Revision::{self, *};

/// A request: its name, parameters and result.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// The parameters. Those that are read on the hot path borrow from the frame.
    type Params<'a>: Serialize + Deserialize<'a> + Adapt;
    /// The result.
    type Result: Serialize + DeserializeOwned + Adapt + Send + 'static;
}

/// A notification: its name and parameters.
pub trait Notice {
    /// The name on the wire.
    const NAME: &'static str;
    /// The parameters.
    type Params: Serialize + DeserializeOwned + Adapt + Send + 'static;
}

/// Whether it is a request or a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// It awaits an answer.
    Request,
    /// It does not.
    Notification,
}

/// Who may send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// A client, to a server.
    ToServer,
    /// A server, to a client.
    ToClient,
    /// Either.
    Both,
}

impl Direction {
    /// Whether a server may receive it.
    pub const fn reaches_server(self) -> bool {
        matches!(self, Self::ToServer | Self::Both)
    }

    /// Whether a client may receive it.
    pub const fn reaches_client(self) -> bool {
        matches!(self, Self::ToClient | Self::Both)
    }
}

/// A method in a range of revisions in which nothing about it changes except its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The name on the wire.
    pub name: &'static str,
    /// Whether it is a request or a notification.
    pub kind: MethodKind,
    /// Who may send it.
    pub direction: Direction,
    /// The first revision that has it in this form.
    pub first: Revision,
    /// The last one.
    pub last: Revision,
    /// What the receiver must have declared.
    pub needs: Need,
}

impl Row {
    /// Whether the row applies in a revision.
    pub fn holds_in(&self, revision: Revision) -> bool {
        (self.first..=self.last).contains(&revision)
    }
}

/// The row of a method in a revision; `None` if the revision does not have the method.
pub fn find(name: &str, revision: Revision) -> Option<&'static Row> {
    METHODS.iter().find(|row| row.name == name && row.holds_in(revision))
}

/// Whether any revision has the method. Other names are extensions of a peer.
pub fn is_known(name: &str) -> bool {
    METHODS.iter().any(|row| row.name == name)
}

/// Requests of the legacy era that the modern era only embeds, in [`InputRequests`].
pub const EMBEDDED: [&str; 3] = [CreateMessage::NAME, ElicitationCreate::NAME, ListRoots::NAME];

/// Generates the marker types with their traits, and the rows of the table.
macro_rules! methods {
    (
        requests { $(
            $(#[$doc:meta])*
            $request:ident = $name:literal: $params:ty => $result:ty {
                $($direction:ident, $first:ident ..= $last:ident, $needs:expr);+ $(;)?
            }
        )* }
        notifications { $(
            $(#[$notice_doc:meta])*
            $notice:ident = $notice_name:literal: $notice_params:ty {
                $($way:ident, $from:ident ..= $to:ident, $wants:expr);+ $(;)?
            }
        )* }
    ) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub enum $request {}

            impl Method for $request {
                const NAME: &'static str = $name;
                type Params<'a> = $params;
                type Result = $result;
            }
        )*
        $(
            $(#[$notice_doc])*
            #[derive(Debug, Clone, Copy)]
            pub enum $notice {}

            impl Notice for $notice {
                const NAME: &'static str = $notice_name;
                type Params = $notice_params;
            }
        )*

        /// Every method of every revision.
        pub static METHODS: &[Row] = &[
            $($(Row {
                name: $name,
                kind: MethodKind::Request,
                direction: Direction::$direction,
                first: $first,
                last: $last,
                needs: $needs,
            },)+)*
            $($(Row {
                name: $notice_name,
                kind: MethodKind::Notification,
                direction: Direction::$way,
                first: $from,
                last: $to,
                needs: $wants,
            },)+)*
        ];
    };
}

methods! {
    requests {
        // The table is searched from its start: the most frequent method is the first.
        /// Calls a tool.
        CallTool = "tools/call": CallToolParams<'a> => CallToolResult {
            ToServer, V2024_11_05 ..= V2026_07_28, Need::Tools;
        }
        /// Opens a legacy session.
        Initialize = "initialize": InitializeParams<'a> => InitializeResult {
            ToServer, V2024_11_05 ..= V2025_11_25, Need::Nothing;
        }
        /// Checks that the peer is alive.
        Ping = "ping": EmptyParams<'a> => EmptyResult {
            Both, V2024_11_05 ..= V2025_11_25, Need::Nothing;
        }
        /// Asks for the server's revisions and capabilities.
        Discover = "server/discover": EmptyParams<'a> => DiscoverResult {
            ToServer, V2026_07_28 ..= V2026_07_28, Need::Nothing;
        }
        /// Lists the tools.
        ListTools = "tools/list": PaginatedParams<'a> => ListToolsResult {
            ToServer, V2024_11_05 ..= V2026_07_28, Need::Tools;
        }
        /// Lists the prompts.
        ListPrompts = "prompts/list": PaginatedParams<'a> => ListPromptsResult {
            ToServer, V2024_11_05 ..= V2026_07_28, Need::Prompts;
        }
        /// Fills in a prompt.
        GetPrompt = "prompts/get": GetPromptParams<'a> => GetPromptResult {
            ToServer, V2024_11_05 ..= V2026_07_28, Need::Prompts;
        }
        /// Lists the resources.
        ListResources = "resources/list": PaginatedParams<'a> => ListResourcesResult {
            ToServer, V2024_11_05 ..= V2026_07_28, Need::Resources;
        }
        /// Lists the resource templates.
        ListResourceTemplates = "resources/templates/list":
            PaginatedParams<'a> => ListResourceTemplatesResult {
            ToServer, V2024_11_05 ..= V2026_07_28, Need::Resources;
        }
        /// Reads a resource.
        ReadResource = "resources/read": ReadResourceParams<'a> => ReadResourceResult {
            ToServer, V2024_11_05 ..= V2026_07_28, Need::Resources;
        }
        /// Subscribes to changes of a resource.
        Subscribe = "resources/subscribe": SubscribeParams<'a> => EmptyResult {
            ToServer, V2024_11_05 ..= V2025_11_25, Need::ResourceSubscriptions;
        }
        /// Unsubscribes.
        Unsubscribe = "resources/unsubscribe": SubscribeParams<'a> => EmptyResult {
            ToServer, V2024_11_05 ..= V2025_11_25, Need::ResourceSubscriptions;
        }
        /// Completes an argument.
        Complete = "completion/complete": CompleteParams<'a> => CompleteResult {
            // The first revision has the method but no capability for it.
            ToServer, V2024_11_05 ..= V2024_11_05, Need::Nothing;
            ToServer, V2025_03_26 ..= V2026_07_28, Need::Completions;
        }
        /// Sets the minimum level of log messages.
        SetLevel = "logging/setLevel": SetLevelParams<'a> => EmptyResult {
            ToServer, V2024_11_05 ..= V2025_11_25, Need::Logging;
        }
        /// Subscribes to changes for as long as the request lasts.
        SubscriptionsListen = "subscriptions/listen":
            SubscriptionsListenParams<'a> => SubscriptionsListenResult {
            ToServer, V2026_07_28 ..= V2026_07_28, Need::Nothing;
        }
        /// Asks the client's model.
        CreateMessage = "sampling/createMessage": CreateMessageParams => CreateMessageResult {
            ToClient, V2024_11_05 ..= V2025_11_25, Need::Sampling;
        }
        /// Lists the client's roots.
        ListRoots = "roots/list": ListRootsParams => ListRootsResult {
            ToClient, V2024_11_05 ..= V2025_11_25, Need::Roots;
        }
        /// Asks the client's user.
        ElicitationCreate = "elicitation/create": ElicitParams => ElicitResult {
            ToClient, V2025_06_18 ..= V2025_11_25, Need::Elicitation;
        }
        /// Gets the status of a task. 2025-11-25.
        GetTask = "tasks/get": TaskParams<'a> => GetTaskResult {
            Both, V2025_11_25 ..= V2025_11_25, Need::Tasks;
        }
        /// Waits for the result of a task. 2025-11-25.
        GetTaskPayload = "tasks/result": TaskParams<'a> => GetTaskPayloadResult {
            Both, V2025_11_25 ..= V2025_11_25, Need::Tasks;
        }
        /// Which tasks are there? 2025-11-25.
        ListTasks = "tasks/list": PaginatedParams<'a> => ListTasksResult {
            Both, V2025_11_25 ..= V2025_11_25, Need::TaskList;
        }
        /// Cancels a task. 2025-11-25.
        CancelTask = "tasks/cancel": TaskParams<'a> => GetTaskResult {
            Both, V2025_11_25 ..= V2025_11_25, Need::TaskCancel;
        }
        /// Gets the status and result of a task. Tasks extension.
        GetTaskDetail = "tasks/get": task_extension::TaskParams<'a> => task_extension::GetTaskResult {
            ToServer, V2026_07_28 ..= V2026_07_28, Need::Extension(task_extension::ID);
        }
        /// Answers the input requests of a task. Tasks extension.
        UpdateTask = "tasks/update": task_extension::UpdateTaskParams<'a> => EmptyResult {
            ToServer, V2026_07_28 ..= V2026_07_28, Need::Extension(task_extension::ID);
        }
        /// Asks a task to stop. Tasks extension.
        StopTask = "tasks/cancel": task_extension::TaskParams<'a> => EmptyResult {
            ToServer, V2026_07_28 ..= V2026_07_28, Need::Extension(task_extension::ID);
        }
        /// Lists the skills. Skills extension.
        ListSkills = "skills/list": PaginatedParams<'a> => skill::ListSkillsResult {
            ToServer, V2025_11_25 ..= V2026_07_28, Need::Extension(skill::ID);
        }
        /// Gets a skill. Skills extension.
        GetSkill = "skills/get": skill::GetSkillParams<'a> => skill::GetSkillResult {
            ToServer, V2025_11_25 ..= V2026_07_28, Need::Extension(skill::ID);
        }
        /// Lists a folder. Skills extension.
        ReadDirectory = "resources/directory/read":
            skill::ReadDirectoryParams<'a> => skill::ReadDirectoryResult {
            ToServer, V2025_11_25 ..= V2026_07_28, Need::Extension(skill::ID);
        }
    }
    notifications {
        /// The client is ready.
        Initialized = "notifications/initialized": NoticeParams {
            ToServer, V2024_11_05 ..= V2025_11_25, Need::Nothing;
        }
        /// A request was cancelled.
        Cancelled = "notifications/cancelled": CancelledParams {
            Both, V2024_11_05 ..= V2026_07_28, Need::Nothing;
        }
        /// A request makes progress.
        Progress = "notifications/progress": ProgressParams {
            Both, V2024_11_05 ..= V2025_11_25, Need::Nothing;
            ToClient, V2026_07_28 ..= V2026_07_28, Need::Nothing;
        }
        /// A log message of the server.
        LoggingMessage = "notifications/message": LoggingMessageParams {
            ToClient, V2024_11_05 ..= V2026_07_28, Need::Nothing;
        }
        /// The list of tools changed.
        ToolListChanged = "notifications/tools/list_changed": NoticeParams {
            ToClient, V2024_11_05 ..= V2026_07_28, Need::Nothing;
        }
        /// The list of prompts changed.
        PromptListChanged = "notifications/prompts/list_changed": NoticeParams {
            ToClient, V2024_11_05 ..= V2026_07_28, Need::Nothing;
        }
        /// The list of resources changed.
        ResourceListChanged = "notifications/resources/list_changed": NoticeParams {
            ToClient, V2024_11_05 ..= V2026_07_28, Need::Nothing;
        }
        /// A resource changed.
        ResourceUpdated = "notifications/resources/updated": ResourceUpdatedParams {
            ToClient, V2024_11_05 ..= V2026_07_28, Need::Nothing;
        }
        /// The client's roots changed.
        RootsListChanged = "notifications/roots/list_changed": NoticeParams {
            ToServer, V2024_11_05 ..= V2025_11_25, Need::Nothing;
        }
        /// The user has completed the interaction at a URL.
        ElicitationComplete = "notifications/elicitation/complete": ElicitationCompleteParams {
            ToClient, V2025_11_25 ..= V2025_11_25, Need::Nothing;
        }
        /// A task changed. 2025-11-25.
        TaskStatusChanged = "notifications/tasks/status": TaskStatusParams {
            Both, V2025_11_25 ..= V2025_11_25, Need::Nothing;
        }
        /// A task changed. Tasks extension.
        TaskChanged = "notifications/tasks": task_extension::TaskChangedParams {
            ToClient, V2026_07_28 ..= V2026_07_28, Need::Nothing;
        }
        /// The server acknowledges a subscription: its first message.
        SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged":
            SubscriptionsAcknowledgedParams {
            ToClient, V2026_07_28 ..= V2026_07_28, Need::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_name_do_not_overlap() {
        for revision in Revision::ALL {
            for row in METHODS.iter().filter(|row| row.holds_in(revision)) {
                let twins = METHODS
                    .iter()
                    .filter(|other| other.name == row.name && other.holds_in(revision))
                    .count();
                assert_eq!(twins, 1, "{} in {revision}", row.name);
            }
        }
    }

    #[test]
    fn revisions_have_what_the_specification_says() {
        let has = |name: &str| Revision::ALL.map(|revision| find(name, revision).is_some());
        assert_eq!(has("initialize"), [true, true, true, true, false]);
        assert_eq!(has("server/discover"), [false, false, false, false, true]);
        assert_eq!(has("tools/call"), [true; 5]);
        assert_eq!(has("elicitation/create"), [false, false, true, true, false]);
        assert_eq!(has("tasks/get"), [false, false, false, true, true]);
        assert_eq!(has("tasks/result"), [false, false, false, true, false]);
        assert_eq!(has("notifications/elicitation/complete"), [false, false, false, true, false]);
        assert_eq!(has("elicitation/request"), [false; 5]);
        assert!(is_known("ping") && !is_known("acme/ping"));
    }
}
