//! Mistakes in a server are reported before the first client connects.

use bowline::{BuildError, Prompt, Resource, ServeError, Server, Tool, testing};
use serde_json::json;

fn server() -> Server {
    Server::new("build", "1.0.0")
}

fn tool(name: &str) -> Tool {
    Tool::new(name, || async { "" })
}

async fn check(server: Server, is_expected: fn(&BuildError) -> bool) {
    let (_ours, theirs) = tokio::io::duplex(64);
    match server.serve(theirs).await {
        Err(ServeError::Build(error)) => assert!(is_expected(&error), "{error:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let server = server().with(tool("a"));
    let registry = server.registry();
    let note = || Resource::new("it://b", "b", || async { "" });
    assert!(registry.add((tool("b"), note(), tool("a"))).is_err());
    assert_eq!(registry.tool_names(), ["a"]);
    registry.add((tool("b"), note())).unwrap();
    assert_eq!(registry.tool_names(), ["a", "b"]);
}

#[tokio::test]
async fn duplicates_are_refused() {
    let is_duplicate = |error: &BuildError| matches!(error, BuildError::Duplicate { .. });
    check(server().with((tool("a"), tool("a"))), is_duplicate).await;
    check(server().with(tool("a")).with(server().with(tool("a"))), is_duplicate).await;
    let prompt = || Prompt::new("p", || async { "" });
    check(server().with((prompt(), prompt())), is_duplicate).await;
    let resource = |uri| Resource::text(uri, "x", "");
    check(server().with((resource("it://a"), resource("it://a"))), is_duplicate).await;
    // Parts of different kinds may have the same name.
    let different = server().with((tool("a"), Prompt::new("a", || async { "" })));
    assert!(testing::connect(different.nest("b", tool("a"))).await.is_ok());
}

#[tokio::test]
async fn names_schemas_and_uris_are_checked() {
    let is_name = |error: &BuildError| matches!(error, BuildError::Name { .. });
    for name in ["", "a\nb", "a\0", &"x".repeat(129)] {
        check(server().with(tool(name)), is_name).await;
    }
    let is_schema = |error: &BuildError| matches!(error, BuildError::Schema { .. });
    let endless = json!({ "type": "object", "$ref": "https://example.com/schema" });
    for schema in [
        json!(7),
        json!({ "type": "string" }),
        json!({ "type": "object", "properties": 7 }),
        endless,
    ] {
        check(server().with(tool("a").input_schema(schema)), is_schema).await;
    }
    let is_uri = |error: &BuildError| matches!(error, BuildError::Uri { .. });
    for uri in ["it://{", "it://{}", "it://{a", "no scheme", "", "{scheme}:x", "1t:x"] {
        check(server().with(Resource::new(uri, "x", || async { "" })), is_uri).await;
    }
}
