//! Questions of servers to clients, and the answers.

use serde_json::Value;

use super::{Adapt, Unsupported, only, since, unsupported};
use crate::model::{
    Choices, CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitSchema, ElicitUrlParams, FormMode, InputRequest, InputRequests,
    ListRootsResult, PrimitiveSchema, ResultBody, SamplingMessage, SingleSelectSchema,
};
use crate::revision::Revision::{self, *};

/// In the modern era answers are embedded in a request, without type and `_meta`.
fn embed(answer: &mut impl ResultBody, to: Revision) {
    *answer.result_type_mut() = None;
    if to.is_modern() {
        *answer.meta_mut() = None;
    }
}

impl Adapt for InputRequests {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        self.values_mut().try_for_each(|question| question.adapt(to))
    }
}

impl Adapt for InputRequest {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        match self {
            Self::Elicit(params) => params.adapt(to),
            Self::CreateMessage(params) => params.adapt(to),
            Self::ListRoots(params) => params.adapt(to),
        }
    }
}

impl Adapt for CreateMessageParams {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if to < V2025_11_25 {
            if self.tools.is_some() || self.tool_choice.is_some() {
                return unsupported("tools in sampling", to);
            }
            self.messages = self.messages.drain(..).flat_map(split).collect();
        }
        only(V2025_11_25, to, &mut self.task);
        if to.is_modern() {
            self.meta = None;
        }
        self.tools.adapt(to)?;
        self.messages.adapt(to)
    }
}

/// A message with several blocks becomes several messages with one block, as older revisions
/// require.
fn split(mut message: SamplingMessage) -> Vec<SamplingMessage> {
    if message.content.blocks().len() <= 1 {
        return vec![message];
    }
    let role = message.role;
    let blocks = std::mem::take(message.content.blocks_mut());
    let alone = |block| SamplingMessage { role, content: vec![block].into(), meta: None };
    blocks.into_iter().map(alone).collect()
}

impl Adapt for CreateMessageResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        // The only answer that keeps `_meta` when it is embedded, because it is a message, too.
        self.result_type = None;
        let content = std::mem::replace(&mut self.content, Vec::new().into());
        let mut message = SamplingMessage { role: self.role, content, meta: None };
        let adapted = message.adapt(to);
        self.content = message.content;
        adapted
    }
}

impl Adapt for ListRootsResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        embed(self, to);
        self.roots.adapt(to)
    }
}

impl Adapt for ElicitResult {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        embed(self, to);
        let lists = |content: &serde_json::Map<_, _>| content.values().any(Value::is_array);
        if to < V2025_11_25 && self.content.as_ref().is_some_and(lists) {
            return unsupported("form field with several values", to);
        }
        Ok(())
    }
}

impl Adapt for ElicitParams {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        match self {
            Self::Form(form) => form.adapt(to),
            Self::Url(url) => url.adapt(to),
        }
    }
}

impl Adapt for ElicitFormParams {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if to < V2025_06_18 {
            return unsupported("elicitation", to);
        }
        // Peers of 2025-11-25 may declare both modes, so say which.
        self.mode = (to >= V2025_11_25).then_some(FormMode::Form);
        only(V2025_11_25, to, &mut self.task);
        if to.is_modern() {
            self.meta = None;
        }
        self.requested_schema.adapt(to)
    }
}

impl Adapt for ElicitUrlParams {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if to < V2025_11_25 {
            return unsupported("elicitation by URL", to);
        }
        if to == V2025_11_25 && self.elicitation_id.is_none() {
            return unsupported("elicitation by URL without an id", to);
        }
        only(V2025_11_25, to, &mut self.elicitation_id);
        only(V2025_11_25, to, &mut self.task);
        if to.is_modern() {
            self.meta = None;
        }
        Ok(())
    }
}

impl Adapt for ElicitSchema {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_11_25, to, &mut self.dialect);
        self.properties.values_mut().try_for_each(|field| field.adapt(to))
    }
}

impl Adapt for PrimitiveSchema {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        match self {
            Self::String(field) => {
                since(V2025_11_25, to, &mut field.default);
                field.pattern = None;
            }
            Self::Number(field) => since(V2025_11_25, to, &mut field.default),
            Self::Boolean(_) => {}
            Self::SingleSelect(field) => single_select(field, to),
            Self::MultiSelect(_) if to < V2025_11_25 => {
                return unsupported("form field with several values", to);
            }
            Self::MultiSelect(_) => {}
        }
        Ok(())
    }
}

/// 2025-06-18 has the titles in a second list.
fn single_select(field: &mut SingleSelectSchema, to: Revision) {
    since(V2025_11_25, to, &mut field.default);
    if let Choices::Titled(choices) = &mut field.choices
        && to < V2025_11_25
    {
        let pairs = choices.drain(..).map(|choice| (choice.value, choice.title));
        let (values, names) = pairs.unzip();
        field.choices = Choices::Named(values, names);
    }
}
