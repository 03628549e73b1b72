//! APIs behind a gateway, by their OpenAPI documents: a pet store that is like many public ones,
//! with their oddities, and documents and answers that mean harm.

use std::sync::Arc;
use std::time::Duration;

use bowline::client::{Client, Target};
use bowline::model::{CallToolResult, ContentBlock};
use bowline_gateway::bridge::ToolRules;
use bowline_gateway::gateway::{Api, ApiOptions, Document, OpenApiError};
use bowline_web::{Reach, Url, Web};
use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use crate::web::{Seen, Site, json as as_json, status};
use crate::world::{connect, names, plan, server, soon, texts};

fn store() -> Value {
    serde_json::from_str(include_str!("../../testdata/openapi/petstore.json")).unwrap()
}

fn options(url: &str) -> ApiOptions {
    ApiOptions {
        name: "pets".to_owned(),
        base: Url::parse(url).unwrap(),
        headers: vec![("X-Api-Key".to_owned(), "sekrit".to_owned())],
        authorize: None,
        web: Web::builder().build().unwrap(),
        timeout: Duration::from_secs(60),
        output: 1000,
        tools: ToolRules::default(),
    }
}

fn build(document: &Value, options: ApiOptions) -> Result<Api, OpenApiError> {
    Api::build(&Document::parse(document.to_string().as_bytes())?, options)
}

/// A gateway in front of an API, and a client of it.
async fn behind(document: &Value, options: ApiOptions) -> Client {
    let api = build(document, options).unwrap();
    let (gateway, client) = connect(plan(vec![server("pets", move || Ok(api.server()))])).await;
    // It goes on for as long as the client is used.
    std::mem::forget(gateway);
    client
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    soon(client.call_tool(format!("pets__{tool}"), arguments)).await.unwrap()
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Answers with what was asked.
fn echo(seen: &Seen) -> Response<String> {
    as_json(&json!({ "method": seen.method, "target": seen.target, "body": seen.text() }))
}

#[tokio::test]
async fn operations_become_tools_with_names_schemas_and_hints() {
    let api = build(&store(), options("http://127.0.0.1:1/v1")).unwrap();
    let labels: Vec<_> = api.tools().iter().map(|(name, what)| format!("{name}: {what}")).collect();
    assert_eq!(
        labels,
        [
            "listPets: GET /pets",
            "createPet: POST /pets",
            "get_pets_petid: GET /pets/{petId}",
            "put_pets_petid: PUT /pets/{petId}",
            "deletePet: DELETE /pets/{petId}",
            "pets_photo: GET /pets/{petId}/photo",
            "findByTags: GET /pets/search",
            "order.place: POST /store/order",
            "export: GET /export",
        ]
    );
    let left_out = api.left_out().join("\n");
    for part in [
        "POST /pets/{petId}/photo (uploadPhoto): its body must be multipart/form-data",
        "GET /elsewhere (elsewhere): \"other.json#/Pet\" is in another document",
        "POST /pets/{petId}/clone (createPet): POST /pets has the same name",
    ] {
        assert!(left_out.contains(part), "{part}: {left_out}");
    }
    let client = behind(&store(), options("http://127.0.0.1:1/v1")).await;
    let tools = soon(client.list_tools()).await.unwrap();
    let tool = |name: &str| tools.iter().find(|it| it.name == format!("pets__{name}")).unwrap();
    let hints = |name: &str| {
        let hints = tool(name).annotations.clone().unwrap();
        (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
    };
    assert_eq!(hints("listPets"), (Some(true), None, None));
    assert_eq!(hints("createPet"), (Some(false), None, None));
    assert_eq!(hints("put_pets_petid"), (Some(false), None, Some(true)));
    assert_eq!(hints("deletePet"), (Some(false), Some(true), Some(true)));
    assert_eq!(tool("listPets").title.as_deref(), Some("List all pets"));
    let list = tool("listPets").input_schema.to_value();
    assert_eq!(
        list["properties"]["limit"],
        json!({ "type": "integer", "format": "int32", "maximum": 100, "exclusiveMinimum": 0,
            "description": "How many to return" })
    );
    // What is configured is not the caller's.
    let arguments: Vec<_> = list["properties"].as_object().unwrap().keys().collect();
    assert_eq!(arguments, ["limit", "status", "X-Trace", "next_part"]);
    let create = tool("createPet").input_schema.to_value();
    assert_eq!(create["required"], json!(["name"]));
    assert_eq!(create["properties"]["owner"]["$ref"], "#/$defs/Owner");
    assert_eq!(create["properties"]["nick"]["type"], json!(["string", "null"]));
    assert!(create["properties"].get("id").is_none(), "{create}");
    // A name that is taken puts the body under a name of its own.
    let put = tool("put_pets_petid").input_schema.to_value();
    assert_eq!(put["required"], json!(["petId", "body"]));
    let got = tool("get_pets_petid").output_schema.as_ref().unwrap().to_value();
    assert_eq!(got["type"], "object");
    assert!(tool("deletePet").output_schema.is_none());
}

#[tokio::test]
async fn arguments_go_where_the_document_says() {
    let site = Site::start(echo).await;
    let client = behind(&store(), options(&format!("{}/v1/?key=k", site.url))).await;
    for (tool, arguments, method, target, body) in [
        (
            "listPets",
            json!({ "limit": 5, "status": ["new", "sold & gone"], "X-Trace": "t1" }),
            "GET",
            "/v1/pets?key=k&limit=5&status=new&status=sold%20%26%20gone",
            "",
        ),
        (
            "createPet",
            json!({ "name": "Rex", "owner": { "name": "Ann" }, "nick": null }),
            "POST",
            "/v1/pets?key=k",
            r#"{"name":"Rex","nick":null,"owner":{"name":"Ann"}}"#,
        ),
        (
            "put_pets_petid",
            json!({ "petId": "a/b?c#d%2e", "body": { "petId": 1 } }),
            "PUT",
            "/v1/pets/a%2Fb%3Fc%23d%252e?key=k",
            r#"{"petId":1}"#,
        ),
        ("deletePet", json!({ "petId": "7" }), "DELETE", "/v1/pets/7?key=k", ""),
        (
            "findByTags",
            json!({ "tags": ["a", "b"], "filter": { "age": 3 } }),
            "GET",
            "/v1/pets/search?key=k&tags=a%7Cb&filter%5Bage%5D=3",
            "",
        ),
    ] {
        call(&client, tool, arguments).await;
        let seen = site.taken();
        assert_eq!(seen.len(), 1, "{tool}");
        let got = (seen[0].method.as_str(), seen[0].target.as_str(), seen[0].text());
        assert_eq!(got, (method, target, body));
        assert_eq!(seen[0].header("x-api-key"), Some("sekrit"));
        assert_eq!(seen[0].header("content-type").is_some(), !body.is_empty());
        assert_eq!(seen[0].header("x-trace"), (tool == "listPets").then_some("t1"));
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_api() {
    let site = Site::start(echo).await;
    let client = behind(&store(), options(&site.url)).await;
    for (tool, arguments) in [
        ("deletePet", json!({ "petId": ".." })),
        ("deletePet", json!({ "petId": "../../admin" })),
        ("deletePet", json!({ "petId": "." })),
        ("deletePet", json!({ "petId": "" })),
        ("deletePet", json!({})),
        ("listPets", json!({ "X-Trace": "a\r\nHost: evil" })),
        ("listPets", json!({ "X-Api-Key": "mine" })),
        ("listPets", json!({ "Authorization": "mine" })),
        ("listPets", json!({ "session": "mine" })),
        ("listPets", json!({ "limit": 1000 })),
        ("listPets", json!({ "next_part": "everything" })),
        ("createPet", json!({ "name": "Rex", "id": 5 })),
    ] {
        let result = call(&client, tool, arguments.clone()).await;
        assert_eq!(result.is_error, Some(true), "{arguments}: {result:?}");
    }
    assert!(site.taken().is_empty());
}

/// Answers of all types.
fn typed(seen: &Seen) -> Response<Bytes> {
    let answer = |media: &str, body: &'static [u8]| {
        Response::builder().header("content-type", media).body(Bytes::from_static(body)).unwrap()
    };
    match seen.target.split('?').next().unwrap() {
        "/pets/json" => answer(
            "application/json",
            br#"{"id": 1, "name": "Rex", "big": 12345678901234567890123}"#,
        ),
        "/pets/problem" => {
            let problem = answer("application/problem+json", br#"{"title":"no such pet"}"#);
            let (mut head, body) = problem.into_parts();
            head.status = http::StatusCode::NOT_FOUND;
            Response::from_parts(head, body)
        }
        "/pets/lie" => answer("application/json", br#"{"id": "one"}"#),
        "/pets/broken" => answer("application/json", b"{"),
        "/pets/html" => answer("text/html", b"<p>no</p>"),
        "/pets/7" => Response::builder().status(204).body(Bytes::new()).unwrap(),
        "/pets/image/photo" => answer("image/png", b"\x89PNG"),
        "/pets/big/photo" => answer("image/png", &[0; 1001]),
        "/pets/pdf/photo" => answer("application/pdf", b"%PDF"),
        "/pets/stream/photo" => answer("text/event-stream", b"data: x\n\n"),
        "/export" => answer("text/csv", b"a,b\n"),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn answers_are_what_they_say() {
    let site = Site::of_bytes(typed).await;
    let client = behind(&store(), options(&site.url)).await;
    let get = async |id: &str| call(&client, "get_pets_petid", json!({ "petId": id })).await;
    let pet = get("json").await;
    assert_ne!(pet.is_error, Some(true), "{pet:?}");
    let structured = pet.structured_content.as_ref().unwrap();
    assert!(structured.as_str().contains("12345678901234567890123"), "{structured:?}");
    assert_eq!(serde_json::from_str::<Value>(&text(&pet)).unwrap()["name"], "Rex");
    for (id, parts) in [
        ("problem", &["HTTP 404 Not Found", "no such pet"][..]),
        ("lie", &["{\"id\": \"one\"}", "has succeeded", "answer.id"]),
        ("broken", &["not the JSON that it says"]),
        ("html", &["<p>no</p>", "it is not JSON"]),
    ] {
        let told = get(id).await;
        assert_eq!(told.is_error, Some(true), "{id}");
        assert!(parts.iter().all(|part| text(&told).contains(part)), "{id}: {}", text(&told));
    }
    let deleted = call(&client, "deletePet", json!({ "petId": "7" })).await;
    assert_eq!(text(&deleted), "HTTP 204 No Content, without content");
    assert_ne!(deleted.is_error, Some(true));
    let photo = async |id: &str| call(&client, "pets_photo", json!({ "petId": id })).await;
    let image = photo("image").await;
    let ContentBlock::Image(image) = &image.content[0] else { panic!("{image:?}") };
    assert_eq!((image.mime_type.as_str(), image.data.as_str()), ("image/png", "iVBORw=="));
    for (id, part) in [
        ("big", "image/png of more than 1000 bytes"),
        ("pdf", "it is application/pdf"),
        ("stream", "it is text/event-stream"),
    ] {
        let told = photo(id).await;
        assert!(told.is_error == Some(true) && text(&told).contains(part), "{}", text(&told));
    }
    assert_eq!(text(&call(&client, "export", json!({})).await), "a,b\n");
}

#[tokio::test]
async fn a_long_answer_is_read_in_parts_that_fit_together() {
    let long: String = (0..400).map(|at| format!("{at} ü\n")).collect();
    let answers = Arc::new(std::sync::Mutex::new(long.clone()));
    let now = Arc::clone(&answers);
    let site = Site::start(move |seen| {
        let body = now.lock().unwrap().clone();
        let media = if seen.target == "/export" { "text/csv" } else { "application/json" };
        Response::builder().header("content-type", media).body(body).unwrap()
    })
    .await;
    let client = behind(&store(), options(&site.url)).await;
    let (mut read, mut next) = (String::new(), None::<String>);
    for _ in 0..10 {
        let arguments =
            next.as_ref().map_or_else(|| json!({}), |next| json!({ "next_part": next }));
        let part = call(&client, "export", arguments).await;
        let [ContentBlock::Text(text), ContentBlock::Text(note)] = &part.content[..] else {
            panic!()
        };
        assert!(text.text.len() <= 1000);
        read += &text.text;
        let told = note.text.split_once("next_part = \"");
        next = told.map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
        if next.is_none() {
            break;
        }
    }
    assert_eq!(read, long);
    // Where JSON is promised, a part says that it is one.
    let pet = call(&client, "get_pets_petid", json!({ "petId": "1" })).await;
    let part = pet.structured_content.as_ref().unwrap().to_value();
    assert_eq!(part["part"], long[..part["part"].as_str().unwrap().len()]);
    let next = part["next_part"].as_str().unwrap().to_owned();
    // What has changed meanwhile is not patched together.
    answers.lock().unwrap().insert(0, 'x');
    let told = call(&client, "get_pets_petid", json!({ "petId": "1", "next_part": next })).await;
    assert!(text(&told).contains("changed meanwhile"), "{}", text(&told));
    // What does not only read is not sent twice.
    let made = call(&client, "createPet", json!({ "name": "Rex" })).await;
    assert!(text(&made).contains("the rest was left out"), "{}", text(&made));
}

#[tokio::test]
async fn only_the_same_origin_redirects_and_methods_stay() {
    let other = Site::start(echo).await;
    let to = other.url.clone();
    let site = Site::start(move |seen| {
        let redirect = |code: u16, to: &str| {
            let response = Response::builder().status(code).header("location", to);
            response.body(String::new()).unwrap()
        };
        match seen.target.as_str() {
            "/pets/near" => redirect(301, "/pets/near/"),
            "/pets/far" => redirect(302, &format!("{to}/pets/1")),
            "/pets/loop" => redirect(307, "/pets/loop"),
            "/pets" => redirect(302, "/pets/near/"),
            _ => echo(seen),
        }
    })
    .await;
    let client = behind(&store(), options(&site.url)).await;
    let get = async |id: &str| text(&call(&client, "get_pets_petid", json!({ "petId": id })).await);
    assert!(get("near").await.contains("/pets/near/"));
    assert!(get("far").await.contains("HTTP 302 Found: the API redirects"));
    assert!(get("loop").await.contains("more than 5 times"));
    let made = call(&client, "createPet", json!({ "name": "Rex" })).await;
    assert!(text(&made).contains("HTTP 302"), "{}", text(&made));
    assert!(other.taken().is_empty());
}

#[tokio::test]
async fn an_api_that_fails_says_how() {
    let site = Site::start(|_| {
        let mut response = status(503, &"x".repeat(100_000));
        response.headers_mut().insert("retry-after", "30".parse().unwrap());
        response
    })
    .await;
    let client = behind(&store(), options(&site.url)).await;
    let told = text(&call(&client, "export", json!({})).await);
    assert!(told.starts_with("HTTP 503 Service Unavailable, retry after 30\nxxx"), "{told}");
    assert!(told.len() < 20_000 && told.ends_with("[the rest was left out]"));
    // Nobody listens.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = behind(&store(), options(&format!("http://{closed}"))).await;
    let told = text(&call(&client, "export", json!({})).await);
    assert!(told.contains("cannot connect"), "{told}");
    // It accepts, and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let client =
        behind(&store(), ApiOptions { timeout: Duration::from_millis(50), ..options(&url) }).await;
    let told = text(&call(&client, "createPet", json!({ "name": "Rex" })).await);
    assert!(told.contains("may have been carried out"), "{told}");
}

#[tokio::test]
async fn a_document_reaches_no_private_address() {
    let site = Site::start(echo).await;
    let guarded = Web::builder().reach(Reach::public()).build().unwrap();
    let client = behind(&store(), ApiOptions { web: guarded, ..options(&site.url) }).await;
    let told = text(&call(&client, "export", json!({})).await);
    assert!(told.contains("not allowed") && told.contains("base = "), "{told}");
    assert!(site.taken().is_empty());
}

#[tokio::test]
async fn only_what_is_chosen_is_looked_at() {
    let tools = ToolRules {
        allow: texts(&["*Pet*", "export"]),
        deny: texts(&["delete*"]),
        ..ToolRules::default()
    };
    let api = build(&store(), ApiOptions { tools, ..options("http://127.0.0.1:1") }).unwrap();
    let named: Vec<_> = api.tools().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named, ["listPets", "createPet", "export"]);
    let nothing = ToolRules { allow: texts(&["nothing"]), ..ToolRules::default() };
    let told = build(&store(), ApiOptions { tools: nothing, ..options("http://127.0.0.1:1") });
    assert!(matches!(told, Err(OpenApiError::Empty(_))));
}

#[tokio::test]
async fn hostile_documents_are_bounded() {
    let with = |paths: Value, schemas: Value| json!({ "openapi": "3.1.0", "paths": paths, "components": { "schemas": schemas } });
    let left_out = |path: &str, operation: Value, schemas: Value| {
        let good = json!({ "get": { "operationId": "good" } });
        let paths = json!({ "/good": good, path: { "post": operation } });
        let api = build(&with(paths, schemas), options("http://127.0.0.1:1")).unwrap();
        assert_eq!(api.tools().len(), 1, "{path}");
        api.left_out().join("\n")
    };
    let body = |schema: Value| {
        json!({ "requestBody": { "required": true,
            "content": { "application/json": { "schema": schema } } } })
    };
    let a = || json!({ "$ref": "#/components/schemas/A" });
    for (path, operation, schemas, why) in [
        ("/../admin", json!({}), json!({}), "must not have . or .. in it"),
        ("/%2e%2E/admin", json!({}), json!({}), "must not have . or .. in it"),
        ("//evil.example/\u{d}\n", json!({}), json!({}), "must begin with /"),
        ("/a?b={c}", json!({}), json!({}), "have no query"),
        ("/{a", json!({}), json!({}), "a { without a }"),
        ("/x", body(a()), json!({ "A": a() }), "refers to itself"),
        (
            "/x",
            body(json!({ "type": "object", "allOf": [a()] })),
            json!({ "A": { "allOf": [a()] } }),
            "endless",
        ),
        ("/x", body(json!({ "$ref": "http://169.254.169.254/" })), json!({}), "another document"),
        ("/x", body(json!({ "$dynamicRef": "#a" })), json!({}), "is not supported"),
        ("/x", body(json!([])), json!({}), "not an object"),
        ("/x", body(json!({ "type": 5 })), json!({}), "type"),
        ("/x", json!({ "parameters": [{ "$ref": "#/nowhere" }] }), json!({}), "leads nowhere"),
        ("/x", json!({ "parameters": [{ "in": "query" }] }), json!({}), "has no name"),
    ] {
        let told = left_out(path, operation, schemas);
        assert!(told.contains(why), "{path:?} {why}: {told}");
    }
    // A tree that recursion alone makes endless is fine.
    let tree = json!({ "Node": { "type": "object", "properties": {
        "children": { "type": "array", "items": { "$ref": "#/components/schemas/Node" } } } } });
    let paths =
        json!({ "/tree": { "post": body(json!({ "$ref": "#/components/schemas/Node" })) } });
    assert_eq!(build(&with(paths, tree), options("http://127.0.0.1:1")).unwrap().tools().len(), 1);
    let many: serde_json::Map<_, _> =
        (0..2001).map(|at| (format!("/{at}"), json!({ "get": {} }))).collect();
    let told = build(&with(many.into(), json!({})), options("http://127.0.0.1:1"));
    assert!(matches!(told, Err(OpenApiError::TooMany { count: 2001, .. })));
    // Each operation refers to everything.
    let wide: Vec<Value> = (0..3000).map(|_| json!({ "type": "string" })).collect();
    let many: serde_json::Map<_, _> =
        (0..150).map(|at| (format!("/{at}"), json!({ "post": body(a()) }))).collect();
    let told =
        build(&with(many.into(), json!({ "A": { "anyOf": wide } })), options("http://127.0.0.1:1"));
    assert!(matches!(told, Err(OpenApiError::TooComplex)));
}

#[tokio::test]
async fn trace_context_and_rules_apply_as_to_all_servers() {
    let site = Site::start(echo).await;
    let api = build(&store(), options(&site.url)).unwrap();
    let mut plan = plan(vec![server("pets", move || Ok(api.server()))]);
    plan.policy.rules.push(crate::world::rule("all", &[], &["pets/*"], &["pets/deletePet"]));
    let (_gateway, client) = connect(plan).await;
    assert!(!names(&client).await.contains(&"pets__deletePet".to_owned()));
    assert!(soon(client.call_tool("pets__deletePet", json!({ "petId": "1" }))).await.is_err());
    assert!(site.taken().is_empty());
    let called = client.call_tool("pets__export", json!({}));
    soon(called).await.unwrap();
    assert_eq!(site.taken().len(), 1);
    // The same in memory, without a gateway.
    let api = build(&store(), options(&site.url)).unwrap();
    let client = Client::connect(Target::from(api.server())).await.unwrap();
    assert_eq!(soon(client.list_tools()).await.unwrap().len(), 9);
}
