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

struct Database;

#[tokio::test]
async fn state_that_is_missing_is_found_before_the_first_client() {
    let is_missing = |error: &BuildError| {
        let message = error.to_string();
        matches!(error, BuildError::State { .. })
            && message.contains("Database, but the server has none; help: add it with")
    };
    check(server().with(tool("a").needs_state::<Database>()), is_missing).await;
    let prompt = Prompt::new("p", || async { "" }).needs_state::<Database>();
    check(server().with(prompt), is_missing).await;
    let resource = Resource::text("it://r", "r", "").needs_state::<Database>();
    check(server().with(resource), is_missing).await;
    // The order does not matter, and a nested server's own state does.
    let needs = || tool("a").needs_state::<Database>();
    let nested = server().with(needs()).state(Database);
    let built = server().nest("in", nested).with(needs()).state(Database);
    let registry = built.registry();
    testing::connect(built).await.unwrap();
    registry.add(tool("b").needs_state::<Database>()).unwrap();
    let added = registry.add(tool("c").needs_state::<u8>()).unwrap_err().to_string();
    assert_eq!(
        added,
        "tool \"c\" needs a state of type u8, but the server has none; help: add it with \
         `Server::state`"
    );
    let alone = server().nest("in", server().with(needs()).state(Database)).with(needs());
    check(alone, is_missing).await;
}
