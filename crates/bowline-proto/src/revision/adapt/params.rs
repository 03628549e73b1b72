//! The parameters of requests and notifications.

use super::{Adapt, Unsupported, only, since, unsupported};
use crate::model::{
    CallToolParams, CancelledParams, CompleteParams, ElicitationCompleteParams, EmptyParams,
    GetPromptParams, InitializeParams, ListRootsParams, LoggingMessageParams, NoticeParams,
    PaginatedParams, ProgressParams, ReadResourceParams, Reference, RequestMeta,
    ResourceUpdatedParams, SetLevelParams, SubscribeParams, SubscriptionsAcknowledgedParams,
    SubscriptionsListenParams, TaskParams, TaskStatusParams, skill, task_extension,
};
use crate::revision::Revision::{self, *};

impl Adapt for RequestMeta<'_> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if !to.is_modern() {
            self.protocol_version = None;
            self.client_capabilities = None;
            self.client_info = None;
            self.log_level = None;
        }
        Ok(())
    }
}

/// Parameters that differ only in `_meta`.
macro_rules! only_meta_differs {
    ($($name:ty),* $(,)?) => {$(
        impl Adapt for $name {
            fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
                self.meta.adapt(to)
            }
        }
    )*};
}

only_meta_differs!(
    EmptyParams<'_>,
    PaginatedParams<'_>,
    SetLevelParams<'_>,
    SubscribeParams<'_>,
    SubscriptionsListenParams<'_>,
    TaskParams<'_>,
    task_extension::TaskParams<'_>,
    task_extension::UpdateTaskParams<'_>,
    skill::GetSkillParams<'_>,
    skill::ReadDirectoryParams<'_>,
);

/// Parameters that are the same wherever the method exists.
macro_rules! never_differs {
    ($($name:ty),* $(,)?) => {$(
        impl Adapt for $name {
            fn adapt(&mut self, _: Revision) -> Result<(), Unsupported> {
                Ok(())
            }
        }
    )*};
}

never_differs!(
    NoticeParams,
    LoggingMessageParams,
    ResourceUpdatedParams,
    ElicitationCompleteParams,
    SubscriptionsAcknowledgedParams,
    TaskStatusParams,
    ListRootsParams,
);

impl Adapt for InitializeParams<'_> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        self.capabilities.adapt(to)?;
        self.client_info.adapt(to)?;
        self.meta.adapt(to)
    }
}

impl Adapt for CallToolParams<'_> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        only(V2025_11_25, to, &mut self.task);
        since(V2026_07_28, to, &mut self.input_responses);
        since(V2026_07_28, to, &mut self.request_state);
        self.meta.adapt(to)
    }
}

impl Adapt for GetPromptParams<'_> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2026_07_28, to, &mut self.input_responses);
        since(V2026_07_28, to, &mut self.request_state);
        self.meta.adapt(to)
    }
}

impl Adapt for ReadResourceParams<'_> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2026_07_28, to, &mut self.input_responses);
        since(V2026_07_28, to, &mut self.request_state);
        self.meta.adapt(to)
    }
}

impl Adapt for CompleteParams<'_> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.context);
        if let Reference::Prompt(prompt) = &mut self.reference {
            since(V2025_06_18, to, &mut prompt.title);
        }
        self.meta.adapt(to)
    }
}

impl Adapt for task_extension::TaskChangedParams {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        self.input_requests.adapt(to)
    }
}

impl Adapt for ProgressParams {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_03_26, to, &mut self.message);
        Ok(())
    }
}

impl Adapt for CancelledParams {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if self.request_id.is_none() && to != V2025_11_25 {
            return unsupported("cancellation without a request id", to);
        }
        Ok(())
    }
}
