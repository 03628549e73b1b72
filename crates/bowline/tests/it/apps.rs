//! Apps: what tools and resources say about them in every revision, mistakes, and who sees them.

use bowline::model::ui;
use bowline::{
    App, BuildError, Context, Resource, Revision, ServeError, Server, Tool, model, testing,
};
use serde_json::{Value, json};

const URI: &str = "ui://board/view";
const HTML: &str = "<!doctype html><title>Board</title>";

fn server() -> Server {
    let app = App::new(HTML)
        .connect_domain("https://api.example.com")
        .resource_domain("https://*.example.com")
        .frame_domain("https://maps.example.com:8443")
        .base_uri_domain("https://example.com")
        .camera()
        .microphone()
        .geolocation()
        .clipboard_write()
        .prefers_border(true)
        .domain("board.host.example");
    Server::new("board", "1.0.0")
        .with(Resource::app(URI, app).title("The board"))
        .with(Tool::new("show", || async { "an empty board" }).ui(URI))
        .with(Tool::new("place", || async { "placed" }).ui(URI).app_only())
        .with(Tool::new("clear", || async { "cleared" }).model_only())
        .with(Tool::new("sees", |context: Context| async move { context.caller().shows_apps() }))
}

fn expected_ui() -> Value {
    json!({
        "csp": {
            "connectDomains": ["https://api.example.com"],
            "resourceDomains": ["https://*.example.com"],
            "frameDomains": ["https://maps.example.com:8443"],
            "baseUriDomains": ["https://example.com"],
        },
        "permissions": { "camera": {}, "microphone": {}, "geolocation": {}, "clipboardWrite": {} },
        "domain": "board.host.example",
        "prefersBorder": true,
    })
}

#[tokio::test]
async fn every_revision_with_metadata_has_them_on_tools_lists_and_contents() {
    testing::each_revision(async |builder| {
        let client = builder.connect(server()).await.unwrap();
        let has_meta = client.peer().unwrap().revision >= Revision::V2025_06_18;
        let tools = client.call_json("tools/list", json!({})).await.unwrap().to_value();
        let meta: Vec<&Value> = (0..3).map(|at| &tools["tools"][at]["_meta"]).collect();
        let both = json!({ "ui": { "resourceUri": URI }, "ui/resourceUri": URI });
        let hidden = json!({
            "ui": { "resourceUri": URI, "visibility": ["app"] }, "ui/resourceUri": URI,
        });
        let model = json!({ "ui": { "visibility": ["model"] } });
        let expected = if has_meta { [&both, &hidden, &model] } else { [&Value::Null; 3] };
        assert_eq!(meta, expected, "{:?}", client.peer());
        let listed = client.call_json("resources/list", json!({})).await.unwrap().to_value();
        let read = client.call_json("resources/read", json!({ "uri": URI })).await.unwrap();
        let read = read.to_value();
        let (entry, contents) = (&listed["resources"][0], &read["contents"][0]);
        let ui = if has_meta { expected_ui() } else { Value::Null };
        assert_eq!((&entry["_meta"]["ui"], &contents["_meta"]["ui"]), (&ui, &ui));
        assert_eq!(entry["mimeType"], "text/html;profile=mcp-app");
        assert_eq!(contents["mimeType"], entry["mimeType"]);
        assert_eq!((&contents["text"], &entry["name"]), (&json!(HTML), &json!("board/view")));
    })
    .await;
}

#[tokio::test]
async fn the_extension_is_declared_once_there_is_an_app() {
    testing::each_revision(async |builder| {
        let client = builder.connect(server()).await.unwrap();
        let peer = client.peer().unwrap();
        let has_extensions = peer.revision >= Revision::V2025_11_25;
        assert_eq!(peer.capabilities.has_extension(ui::ID), has_extensions);
    })
    .await;
    let plain = Server::new("plain", "1.0.0").with(Tool::new("a", || async { "" }));
    let client = testing::connect(plain).await.unwrap();
    assert!(!client.peer().unwrap().capabilities.has_extension(ui::ID));
}

#[tokio::test]
async fn handlers_know_whether_their_caller_shows_apps_in_both_eras() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for shows in [false, true] {
            let mut builder = testing::builder(revision);
            if shows {
                builder = builder.extension(ui::ID, ui::client_settings());
            }
            let client = builder.connect(server()).await.unwrap();
            let answer = client.call_tool("sees", json!({})).text().await.unwrap();
            assert_eq!(answer, shows.to_string(), "{revision}");
        }
    }
}

#[tokio::test]
async fn clients_read_both_spellings() {
    let client = testing::connect(server()).await.unwrap();
    let tools = client.list_tools().await.unwrap();
    let uis: Vec<_> = tools.iter().map(model::Tool::ui).collect();
    assert_eq!(uis[0].as_ref().unwrap().resource_uri.as_deref(), Some(URI));
    assert!(!uis[1].as_ref().unwrap().is_for_model());
    assert!(!uis[2].as_ref().unwrap().is_for_app());
    assert_eq!(uis[3], None);
}

#[tokio::test]
async fn only_on_request_are_they_hidden_from_clients_that_do_not_show_them() {
    let cached = |server: Server| {
        server.cache(std::time::Duration::from_secs(60), model::CacheScope::Public)
    };
    let seen = async |server: Server, shows: bool| {
        let mut builder = testing::builder(Revision::LATEST);
        if shows {
            builder = builder.extension(ui::ID, ui::client_settings());
        }
        let client = builder.connect(server).await.unwrap();
        let tools = client.call_json("tools/list", json!({})).await.unwrap().to_value();
        let scope = tools["cacheScope"].as_str().unwrap().to_owned();
        let readable = client.read_resource(URI).await.is_ok();
        let callable = client.call_tool("place", json!({})).await.is_ok();
        (tools["tools"].as_array().unwrap().len(), scope, readable, callable)
    };
    let all = || (4, "public".to_owned(), true, true);
    assert_eq!(seen(cached(server()), false).await, all());
    let hiding = || cached(server().hide_unusable_apps());
    assert_eq!(seen(hiding(), false).await, (3, "private".to_owned(), false, false));
    assert_eq!(seen(hiding(), true).await, (4, "private".to_owned(), true, true));
    // What is added later is hidden, too.
    let early = cached(Server::new("board", "1.0.0").hide_unusable_apps().with(server()));
    assert_eq!(seen(early, false).await, (3, "private".to_owned(), false, false));
}

async fn problem(server: Server) -> String {
    let (_ours, theirs) = tokio::io::duplex(64);
    match server.serve(theirs).await {
        Err(ServeError::Build(error @ BuildError::App { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn mistakes_are_found_when_the_server_is_built() {
    let show =
        |uri: &str| Server::new("board", "1.0.0").with(Tool::new("show", || async { "" }).ui(uri));
    for (server, expected) in [
        (
            show(URI),
            "tool \"show\": its app \"ui://board/view\" is not a resource of the server; help: add \
             `Resource::app(\"ui://board/view\", html)`",
        ),
        (
            show(URI).with(Resource::text(URI, "view", HTML)),
            "tool \"show\": its app \"ui://board/view\" must have the type \
             \"text/html;profile=mcp-app\", and has \"text/plain\"; help: create it with \
             `Resource::app`",
        ),
        (
            show("https://board.example"),
            "tool \"show\": the URI of its app, \"https://board.example\", must begin with ui://",
        ),
        (
            Server::new("board", "1.0.0").with(Resource::app("board:view", HTML)),
            "resource \"board:view\": the URI of an app must begin with ui://",
        ),
        (
            Server::new("board", "1.0.0")
                .with(Resource::app(URI, App::new(HTML).connect_domain("api.example.com"))),
            "resource \"ui://board/view\": csp.connectDomains: \"api.example.com\" is not an \
             origin; help: write scheme and host, as in https://api.example.com",
        ),
    ] {
        assert_eq!(problem(server).await, expected);
    }
}

#[tokio::test]
async fn a_tool_may_come_before_its_app_until_the_server_is_built() {
    let tool = || Tool::new("late", || async { "" }).ui("ui://late/1");
    let server = Server::new("board", "1.0.0").with(tool()).with(Resource::new(
        "ui://late/{id}",
        "late",
        |_: std::collections::HashMap<String, String>| async { App::new(HTML) },
    ));
    let unfinished = server.nest("x", Tool::new("other", || async { "" }));
    let problem = problem(unfinished).await;
    assert!(problem.contains("must have the type"), "{problem}");
    let server = self::server();
    let registry = server.registry();
    let client = testing::connect(server).await.unwrap();
    assert!(matches!(registry.add(tool()), Err(BuildError::App { .. })));
    registry.add((tool(), Resource::app("ui://late/1", HTML))).unwrap();
    assert_eq!(client.read_resource("ui://late/1").await.unwrap().contents.len(), 1);
}

#[tokio::test]
async fn a_handler_can_return_an_app() {
    let made = Resource::new("ui://made", "made", || async {
        App::new(HTML).resource_domain("https://cdn.example.com")
    });
    let server = Server::new("made", "1.0.0").with(made.mime_type(ui::MIME_TYPE));
    let client = testing::connect(server).await.unwrap();
    let read = client.read_resource("ui://made").await.unwrap();
    let csp = read.contents[0].ui().unwrap().csp.unwrap();
    assert_eq!(csp.to_string(), "resource https://cdn.example.com");
}

#[tokio::test]
async fn a_nested_server_cannot_hide_them() {
    let inner = server().hide_unusable_apps();
    let outer = Server::new("outer", "1.0.0").with(inner);
    let (_ours, theirs) = tokio::io::duplex(64);
    let result = outer.serve(theirs).await;
    let Err(ServeError::Build(BuildError::Nested { setting, .. })) = result else {
        panic!("{result:?}");
    };
    assert_eq!(setting, "hide_unusable_apps");
}
