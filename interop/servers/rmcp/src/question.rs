//! Requests to the client: sent immediately in the legacy era, in the result in the modern era.

use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde_json::{Value, json};

/// A request to the client.
pub enum Question {
    Form,
    Message(String),
    Roots,
}

/// Whether the client supports 2026-07-28.
pub fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl Question {
    /// Asks the client, and turns its response into a result.
    pub async fn ask(
        self,
        answers: Option<InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = if !is_modern(context) {
            self.request(context)
                .await
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
        } else if let Some(mut answers) = answers {
            answers.remove("answer").unwrap_or_default()
        } else {
            let questions = InputRequests::from([("answer".to_owned(), self.embed())]);
            // The state must come back unchanged.
            let state = Some("a b.c/d+e=\"f\"".to_owned());
            return Ok(InputRequiredResult::new(Some(questions), state).into());
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(self.tell(&answer))]).into())
    }

    async fn request(&self, context: &RequestContext<RoleServer>) -> Result<Value, ServiceError> {
        let peer = &context.peer;
        let answer = match self {
            Self::Form => serde_json::to_value(peer.create_elicitation(form()).await?),
            Self::Message(text) => serde_json::to_value(peer.create_message(message(text)).await?),
            Self::Roots => serde_json::to_value(peer.list_roots().await?),
        };
        Ok(answer.unwrap_or_default())
    }

    pub fn embed(&self) -> InputRequest {
        match self {
            Self::Form => InputRequest::Elicitation(ElicitRequest::new(form())),
            Self::Message(text) => {
                InputRequest::CreateMessage(CreateMessageRequest::new(message(text)))
            }
            Self::Roots => InputRequest::ListRoots(ListRootsRequest::default()),
        }
    }

    pub fn tell(&self, answer: &Value) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match self {
            Self::Form => match answer["action"].as_str() {
                Some("accept") => {
                    format!("{}: {}", text(&answer["content"]["name"]), answer["content"]["count"])
                }
                Some("decline") => "declined".to_owned(),
                _ => "cancelled".to_owned(),
            },
            Self::Message(_) => {
                format!("{}: {}", text(&answer["model"]), text(&answer["content"]["text"]))
            }
            Self::Roots => {
                let roots = answer["roots"].as_array().into_iter().flatten();
                roots.map(|root| text(&root["uri"])).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

fn form() -> ElicitRequestParams {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Name" },
            "count": { "type": "integer", "minimum": 1, "default": 1 }
        },
        "required": ["name"]
    });
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "What would you like?".to_owned(),
        requested_schema: serde_json::from_value(schema).expect("the schema is one of a form"),
    }
}

fn message(text: &str) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text(text)], 100)
}
