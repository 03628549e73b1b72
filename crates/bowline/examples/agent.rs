//! An agent: a model that calls the tools of a server until it has an answer.
//!
//! The model is a script. A real one is an HTTP request with `messages` and the definitions.

use bowline::agent::Functions;
use bowline::model::CallToolResult;
use bowline::{Client, Server, tool};
use serde_json::{Value, json};

/// Add two numbers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// A model that follows a script.
struct Script(std::vec::IntoIter<Value>);

impl Script {
    fn new() -> Self {
        let call = |id: &str, arguments: &str| {
            let function = json!({ "name": "add", "arguments": arguments });
            json!({ "role": "assistant", "tool_calls": [{ "id": id, "type": "function", "function": function }] })
        };
        let lines = vec![
            call("1", r#"{"a":3}"#),
            call("2", r#"{"a":3,"b":4}"#),
            json!({ "role": "assistant", "content": "It is 7." }),
        ];
        Self(lines.into_iter())
    }

    async fn complete(&mut self, _messages: &[Value], _functions: &Value) -> Option<Value> {
        self.0.next()
    }
}

/// Talks to the model until it calls no more functions.
async fn answer(
    client: &Client,
    model: &mut Script,
    question: &str,
) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(Server::new("calculator", "1.0.0").with(add)).await?;
    let messages = answer(&client, &mut Script::new(), "What is 3 + 4?").await?;
    serde_json::to_writer_pretty(std::io::stdout(), &messages)?;
    Ok(())
}

#[tokio::test]
async fn the_model_gets_its_results_and_its_mistakes() {
    let client = Client::connect(Server::new("calculator", "1.0.0").with(add)).await.unwrap();
    let messages = answer(&client, &mut Script::new(), "What is 3 + 4?").await.unwrap();
    assert!(messages[2]["content"].as_str().unwrap().starts_with("Error: "), "{}", messages[2]);
    assert_eq!(messages[4], json!({ "role": "tool", "tool_call_id": "2", "content": "7" }));
    assert_eq!(messages.last().unwrap()["content"], "It is 7.");
}
