//! An agent: a model that uses the notes server until it has an answer. `notes-agent URL` uses one
//! that runs already.
//!
//! The model is a script. A real one is an HTTP request with the messages and the definitions.

#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use bowline::Client;
use bowline::agent::Functions;
use bowline::client::Target;
use bowline::model::CallToolResult;
use serde_json::{Value, json};

/// A model that follows a script.
struct Script(std::vec::IntoIter<Value>);

impl Script {
    fn new() -> Self {
        let call = |id: &str, name: &str, arguments: Value| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let call = json!({ "id": id, "type": "function", "function": function });
            json!({ "role": "assistant", "tool_calls": [call] })
        };
        let lines = vec![
            call("1", "add", json!({ "title": "Bowline" })),
            call("2", "add", json!({ "title": "Bowline", "body": "A knot." })),
            call("3", "search", json!({ "query": "knot", "limit": null })),
            json!({ "role": "assistant", "content": "There is one note about knots." }),
        ];
        Self(lines.into_iter())
    }

    async fn complete(&mut self, _messages: &[Value], _functions: &Value) -> Option<Value> {
        self.0.next()
    }
}

/// Talks to the model until it calls no more functions.
async fn answer(client: &Client, model: &mut Script, question: &str) -> anyhow::Result<Vec<Value>> {
    let functions = Functions::openai_strict(&client.list_tools().await?);
    let mut messages = vec![json!({ "role": "user", "content": question })];
    while let Some(message) = model.complete(&messages, functions.definitions()).await {
        let calls = functions.calls(&message);
        messages.push(message);
        if calls.is_empty() {
            break;
        }
        let mut results = Vec::new();
        for call in calls {
            let result = match &call.tool {
                Ok(tool) => client.call_tool(&tool.name, &tool.arguments).await?,
                Err(problem) => CallToolResult::failure(problem),
            };
            results.push((call, result));
        }
        messages.extend(functions.results(&results));
    }
    Ok(messages)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let target: Target = match std::env::args().nth(1) {
        Some(url) => url.into(),
        None => bowline_examples::notes(":memory:")?.into(),
    };
    let client = Client::connect(target).await?;
    for message in answer(&client, &mut Script::new(), "What do I know about knots?").await? {
        println!("{message}");
    }
    client.close().await;
    Ok(())
}
