//! Handlers that return questions themselves, and parts built from definitions.

use bowline::client::FormAnswer;
use bowline::model::{
    self, ElicitFormParams, ElicitParams, ElicitResult, ElicitSchema, InputRequest,
};
use bowline::{
    Context, HandlerError, InputRequired, Json, Limits, Prompt, Resource, Revision, Server, Step,
    Tool, testing,
};
use serde_json::{Value, json};

use crate::raw::{Raw, call, code, modern, request, text};

fn form(message: &str) -> InputRequest {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let requested_schema: ElicitSchema = serde_json::from_value(schema).unwrap();
    let message = message.to_owned();
    let form = ElicitFormParams { message, requested_schema, ..ElicitFormParams::default() };
    InputRequest::Elicit(ElicitParams::Form(form))
}

/// Asks for the first name, then for the last one; keeps the first in its state.
fn names(context: &Context) -> Step<String> {
    let given = |key: &str| {
        let answer = context.answer::<ElicitResult>(key)?;
        Some(answer.content?.get("name")?.as_str()?.to_owned())
    };
    let kept = context.request_state::<Value>();
    match (kept, given("first"), given("last")) {
        (None, ..) => {
            let question = InputRequired::new().ask("first", form("First?"));
            Step::Ask(question.state(json!({ "secret": "sesame" })))
        }
        (_, Some(first), _) => {
            let question = InputRequired::new().ask("last", form("Last?"));
            Step::Ask(question.state(json!({ "first": first })))
        }
        (Some(state), _, Some(last)) => {
            Step::Done(format!("{} {last}", state["first"].as_str().unwrap()))
        }
        (Some(state), None, None) => Step::Done(format!("no answer, but {state}")),
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greeting {
    #[serde(default)]
    greeting: String,
}

fn server() -> Server {
    let prompt = model::Prompt { name: "names".to_owned(), ..model::Prompt::default() };
    let resource = model::Resource { uri: "names:all".to_owned(), ..model::Resource::default() };
    Server::new("steps", "1.0.0")
        .with(Tool::new("typed", |context: Context, it: Greeting| async move {
            match names(&context) {
                Step::Done(names) => Step::Done(format!("{}{names}", it.greeting)),
                Step::Ask(asked) => Step::Ask(asked),
            }
        }))
        .with(Tool::raw(
            "raw",
            json!({ "type": "object" }),
            |context: Context, _: Json| async move { Ok::<_, HandlerError>(names(&context)) },
        ))
        .with(Prompt::from_model(
            prompt,
            |context: Context, _: Json| async move { names(&context) },
        ))
        .with(Resource::from_model(resource, |context: Context, _: String| async move {
            names(&context)
        }))
        .with(Tool::new("again", |context: Context, _: Greeting| async move {
            match context.request_state::<u32>() {
                Some(2) => Step::Done("done"),
                round => Step::Ask(InputRequired::new().state(json!(round.unwrap_or(0) + 1))),
            }
        }))
        .with(Tool::new("forever", |_: Context, _: Greeting| async move {
            Step::<String>::Ask(InputRequired::new().ask("again", form("Again?")))
        }))
}

#[tokio::test]
async fn returned_questions_are_asked_in_every_era() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = testing::builder(revision)
            .on_form(|form| async move {
                let name = if form.message == "First?" { "Ada" } else { "Lovelace" };
                Ok(FormAnswer::accept(&json!({ "name": name })))
            })
            .connect(server())
            .await
            .unwrap();
        let typed = client.call_tool("typed", json!({ "greeting": "Hi " })).text().await.unwrap();
        assert_eq!(typed, "Hi Ada Lovelace", "{revision}");
        let raw = client.call_tool("raw", json!({})).text().await.unwrap();
        assert_eq!(raw, "Ada Lovelace", "{revision}");
        let prompt = client.get_prompt("names", &[]).await.unwrap();
        let prompt = serde_json::to_value(&prompt.messages[0].content).unwrap();
        assert_eq!(prompt["text"], "Ada Lovelace", "{revision}");
        let resource = client.read_resource("names:all").await.unwrap();
        assert_eq!(resource.contents[0].as_text(), Some("Ada Lovelace"), "{revision}");
        let again = client.call_tool("again", json!({})).text().await.unwrap();
        assert_eq!(again, "done", "{revision}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_answer_is_told_what_is_missing() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let error = client.call_tool("raw", json!({})).await.unwrap_err();
        let error = error.as_refusal().unwrap();
        assert!(error.message.contains("forms"), "{revision}: {error}");
        assert_eq!(client.call_tool("again", json!({})).text().await.unwrap(), "done");
    }
}

#[tokio::test]
async fn returned_questions_end_at_the_limit() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let limits = Limits { rounds: 3, ..Limits::default() };
        let client = testing::builder(revision)
            .on_form(|_| async { Ok(FormAnswer::Decline) })
            .connect(server().limits(limits))
            .await
            .unwrap();
        let error = client.call_tool("forever", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("more than 3 rounds"), "{revision}: {error}");
    }
}

fn again(tool: &str, responses: Value, state: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": {}, "inputResponses": responses, "requestState": state });
    modern(request(1, "tools/call", params))
}

#[tokio::test]
async fn the_state_of_a_handler_is_sealed_and_bound() {
    let mut raw = Raw::start(server());
    let asked = raw.ask(&modern(call(1, "raw", json!({})))).await;
    let state = asked["result"]["requestState"].clone();
    assert!(!state.as_str().unwrap().contains("sesame"), "{asked}");
    let answer = json!({ "first": { "action": "accept", "content": { "name": "Ada" } } });
    for refused in [
        again("typed", answer.clone(), &state),
        again("raw", answer.clone(), &json!("{\"secret\":\"sesame\"}")),
    ] {
        assert_eq!(code(&raw.ask(&refused).await), -32602);
    }
    let asked = raw.ask(&again("raw", answer, &state)).await;
    assert_eq!(asked["result"]["inputRequests"]["last"]["params"]["message"], "Last?");
    // An answer counts only for a question that was asked in the last round.
    let stale = json!({ "first": { "action": "accept", "content": { "name": "Eve" } } });
    let done = raw.ask(&again("raw", stale, &asked["result"]["requestState"])).await;
    assert_eq!(text(&done), r#"no answer, but {"first":"Ada"}"#);
}

/// What a client that does not look at the form sends back to a handler that returned it.
#[tokio::test]
async fn answers_to_returned_questions_fit_the_form() {
    let picky = |context: Context, _: Json| async move {
        let Some(answer) = context.answer::<ElicitResult>("age") else {
            let schema = json!({ "type": "object", "required": ["age"], "properties":
                { "age": { "type": "integer", "minimum": 18 } } });
            let form = ElicitFormParams {
                requested_schema: serde_json::from_value(schema).unwrap(),
                ..ElicitFormParams::default()
            };
            let question = InputRequest::Elicit(ElicitParams::Form(form));
            return Step::Ask(InputRequired::new().ask("age", question));
        };
        Step::Done(json!(answer.content).to_string())
    };
    let server = || {
        let tool = Tool::raw("picky", json!({ "type": "object" }), picky);
        Server::new("steps", "1.0.0").with(tool)
    };
    for (answer, problem) in [
        (json!({ "action": "accept", "content": { "age": 17 } }), "content.age is 17"),
        (json!({ "action": "accept", "content": { "age": "18" } }), "content.age"),
        (json!({ "action": "accept", "content": {} }), "content.age is missing"),
        (json!({ "action": "accept" }), "content.age is missing"),
        (json!({ "action": "decline", "content": { "age": 17 } }), "content.age is 17"),
        (json!({ "age": 18 }), "action"),
    ] {
        let mut raw = Raw::start(server());
        let asked = raw.ask(&modern(call(1, "picky", json!({})))).await;
        let state = &asked["result"]["requestState"];
        let refused = raw.ask(&again("picky", json!({ "age": answer }), state)).await;
        assert_eq!(code(&refused), -32602, "{answer}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("inputResponses.age: "), "{message}");
        assert!(message.contains(problem), "{message}");
        // The state still counts for an answer that fits.
        let right = json!({ "age": { "action": "accept", "content": { "age": 18 } } });
        assert_eq!(text(&raw.ask(&again("picky", right, state)).await), r#"{"age":18}"#);

        let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
        raw.send(&call(1, "picky", json!({}))).await;
        let asked = raw.next().await;
        raw.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
        let told = raw.next().await.to_string();
        assert!(told.contains("invalid answer from the client: "), "{told}");
        assert!(told.contains(problem), "{told}");
    }
    for (action, expected) in [("decline", "null"), ("cancel", "null")] {
        let mut raw = Raw::start(server());
        let asked = raw.ask(&modern(call(1, "picky", json!({})))).await;
        let answer = json!({ "age": { "action": action } });
        let told = raw.ask(&again("picky", answer, &asked["result"]["requestState"])).await;
        assert_eq!(text(&told), expected);
    }
}

#[tokio::test]
async fn definitions_are_listed_as_they_are() {
    let tool = json!({
        "name": "search",
        "title": "Search",
        "description": "Searches.",
        "inputSchema": { "type": "object", "$ref": "https://example.com/not-there", "z": 1, "a": 1.10 },
        "outputSchema": { "type": "object", "required": ["hits"] },
        "annotations": { "readOnlyHint": true },
        "icons": [{ "src": "https://example.com/i.png" }],
        "_meta": { "example.com/cost": 3 },
        "x-vendor": { "more": [1, 2] }
    });
    let prompt = json!({ "name": "p", "title": "P", "arguments": [{ "name": "a" }], "x": 1 });
    let resource = json!({ "uri": "r:1", "name": "r", "size": 3, "mimeType": "a/b", "x": 1 });
    let template = json!({ "uriTemplate": "t:{id}", "name": "t", "mimeType": "a/b", "x": 1 });
    fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
        serde_json::from_str(&value.to_string()).unwrap()
    }
    let server = Server::new("front", "1.0.0")
        .with(Tool::from_model(read(&tool), |_: Context, arguments: Json| async move {
            // It does not match the output schema, and nobody minds.
            let mut result = model::CallToolResult::success(vec![]);
            result.structured_content = Some(arguments);
            result.extra.insert("x-more".to_owned(), json!(true));
            result
        }))
        .with(Prompt::from_model(read(&prompt), |_: Context, arguments: Json| async move {
            arguments.as_str().to_owned()
        }))
        .with(Resource::from_model(read(&resource), |_: Context, uri: String| async move { uri }))
        .with(Resource::template_from_model(
            read(&template),
            |_: Context, uri: String| async move { uri },
        ));
    let registry = server.registry();
    assert_eq!(json!(registry.tools()[0]), tool);
    assert_eq!(json!(registry.prompts()[0]), prompt);
    assert_eq!(json!(registry.resources()[0]), resource);
    assert_eq!(json!(registry.resource_templates()[0]), template);
    let mut raw = Raw::start(server);
    let listed = raw.ask(&modern(request(1, "tools/list", json!({})))).await;
    assert_eq!(listed["result"]["tools"][0], tool);
    let result = raw.ask(&modern(call(2, "search", json!({ "unknown": [1] })))).await;
    assert_eq!(result["result"]["structuredContent"], json!({ "unknown": [1] }));
    assert_eq!(result["result"]["x-more"], true);
    let get = request(3, "prompts/get", json!({ "name": "p", "arguments": { "a": "1" } }));
    let got = raw.ask(&modern(get)).await;
    assert_eq!(got["result"]["messages"][0]["content"]["text"], r#"{"a":"1"}"#);
    for uri in ["r:1", "t:7"] {
        let read = raw.ask(&modern(request(4, "resources/read", json!({ "uri": uri })))).await;
        assert_eq!(read["result"]["contents"], json!([{ "uri": uri, "text": uri }]), "{uri}");
    }
}
