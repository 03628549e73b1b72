//! The results of requests.

use super::content::structured;
use super::{Adapt, Unsupported, unsupported};
use crate::model::{
    CacheScope, CallToolResult, CompleteResult, Completion, CreateTaskResult, DiscoverResult,
    EmptyResult, GetPromptResult, GetTaskPayloadResult, GetTaskResult, InitializeResult,
    InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListTasksResult, ListToolsResult, PromptMessage, ReadResourceResult, ResultBody, ResultType,
    SubscriptionsListenResult, meta_key, skill, task_extension,
};
use crate::revision::Revision;

/// Only modern results have a type and the sender's identity; strict legacy peers reject both.
fn frame(result: &mut impl ResultBody, kind: ResultType, to: Revision) {
    *result.result_type_mut() = to.is_modern().then_some(kind);
    if !to.is_modern()
        && let Some(meta) = result.meta_mut()
    {
        meta.0.remove(meta_key::SERVER_INFO);
        if meta.0.is_empty() {
            *result.meta_mut() = None;
        }
    }
}

/// Cache hints are required in the modern era and unknown before. By default nothing is cached.
fn cache(ttl_ms: &mut Option<u64>, scope: &mut Option<CacheScope>, to: Revision) {
    if to.is_modern() {
        ttl_ms.get_or_insert_default();
        scope.get_or_insert_default();
    } else {
        *ttl_ms = None;
        *scope = None;
    }
}

/// Results that differ only in the envelope.
macro_rules! only_frame_differs {
    ($($name:ty),* $(,)?) => {$(
        impl Adapt for $name {
            fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
                frame(self, ResultType::Complete, to);
                Ok(())
            }
        }
    )*};
}

only_frame_differs!(
    EmptyResult,
    CreateTaskResult,
    GetTaskResult,
    GetTaskPayloadResult,
    ListTasksResult,
    SubscriptionsListenResult,
);

/// Lists: the envelope, the cache hints, and each item.
macro_rules! list {
    ($($name:ty: $items:ident),* $(,)?) => {$(
        impl Adapt for $name {
            fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
                frame(self, ResultType::Complete, to);
                cache(&mut self.ttl_ms, &mut self.cache_scope, to);
                self.$items.adapt(to)
            }
        }
    )*};
}

list!(
    ListToolsResult: tools,
    ListPromptsResult: prompts,
    ListResourcesResult: resources,
    ListResourceTemplatesResult: resource_templates,
    ReadResourceResult: contents,
);

impl Adapt for InitializeResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        self.server_info.adapt(to)?;
        self.capabilities.adapt(to)
    }
}

impl Adapt for DiscoverResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        cache(&mut self.ttl_ms, &mut self.cache_scope, to);
        self.capabilities.adapt(to)
    }
}

impl Adapt for CallToolResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        let wraps = std::mem::take(&mut self.wraps_content);
        structured(&mut self.structured_content, wraps, &mut self.content, to);
        self.content.adapt(to)
    }
}

impl Adapt for GetPromptResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        self.messages.adapt(to)
    }
}

impl Adapt for PromptMessage {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        self.content.adapt(to)
    }
}

impl Adapt for CompleteResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        let completion = &mut self.completion;
        if completion.values.len() > Completion::MAX_VALUES {
            let all = completion.values.len();
            completion.values.truncate(Completion::MAX_VALUES);
            completion.has_more = Some(true);
            completion.total.get_or_insert_with(|| u64::try_from(all).unwrap_or(u64::MAX));
        }
        Ok(())
    }
}

impl Adapt for InputRequiredResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if !to.is_modern() {
            return unsupported("question inside an answer", to);
        }
        frame(self, ResultType::InputRequired, to);
        self.input_requests.adapt(to)
    }
}

impl Adapt for task_extension::CreateTaskResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if !to.is_modern() {
            return unsupported("task that the server decides on", to);
        }
        frame(self, ResultType::Task, to);
        Ok(())
    }
}

impl Adapt for task_extension::GetTaskResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        self.input_requests.adapt(to)
    }
}

impl Adapt for skill::ListSkillsResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        cache(&mut self.ttl_ms, &mut self.cache_scope, to);
        Ok(())
    }
}

impl Adapt for skill::GetSkillResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        cache(&mut self.ttl_ms, &mut self.cache_scope, to);
        Ok(())
    }
}

impl Adapt for skill::ReadDirectoryResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        frame(self, ResultType::Complete, to);
        cache(&mut self.ttl_ms, &mut self.cache_scope, to);
        self.resources.adapt(to)
    }
}
