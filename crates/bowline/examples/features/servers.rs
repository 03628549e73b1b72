//! The servers by name.

mod asks;
mod notes;
mod prompts;
mod resources;
mod tools;
mod works;

use bowline::model::{Icon, IconTheme};
use bowline::{Limits, Prompt, Resource, Server, Tool};

/// The names of all servers.
pub(crate) const NAMES: &[&str] = &[
    "features",
    "empty",
    "tools",
    "resources",
    "prompts",
    "works",
    "changes",
    "asks",
    "pages",
    "example-server",
    "mcp-logger",
    "counter",
    "operator",
    "ExampleServer",
];

/// The server with this name.
pub(crate) fn server(name: &str) -> Option<Server> {
    Some(match name {
        "features" => features(),
        "empty" => Server::new("empty", "1.0.0"),
        "tools" => tools::server(),
        "resources" => resources::server(),
        "prompts" => prompts::server(),
        "works" => works::server(),
        "changes" => works::changing(),
        "asks" => asks::server(),
        "pages" => pages(),
        "example-server" => notes::example_server(),
        "mcp-logger" => notes::mcp_logger(),
        "counter" => notes::counter(),
        "operator" => notes::operator(),
        "ExampleServer" => notes::documented(),
        _ => return None,
    })
}

/// All features at once, with every part of a server's description.
fn features() -> Server {
    Server::new("features", "1.2.3")
        .title("All features")
        .description("Has one of each.")
        .website("https://example.com/features")
        .icon(icon())
        .instructions("Call what you like.")
        .with((tools::server(), resources::server(), prompts::server()))
}

/// Lists of several pages.
fn pages() -> Server {
    let tools: Vec<_> =
        ["a", "b", "c", "d", "e"].map(|name| Tool::new(name, || async { "page" })).into();
    let prompts: Vec<_> = ["a", "b", "c"].map(|name| Prompt::new(name, || async { "page" })).into();
    let resource = |name: &str| Resource::text(format!("page://{name}"), name, "page");
    let family = |name: &str| {
        let uri = format!("page://{name}/{{id}}");
        Resource::new(uri, name, |page: resources::Page| async move { page.id })
    };
    Server::new("pages", "1.0.0")
        .limits(Limits { page: 2, ..Limits::default() })
        .with((tools, prompts))
        .with(["a", "b", "c"].map(resource).into_iter().collect::<Vec<_>>())
        .with(["a", "b", "c"].map(family).into_iter().collect::<Vec<_>>())
}

fn icon() -> Icon {
    Icon {
        src: "https://example.com/icon.png".to_owned(),
        mime_type: Some("image/png".to_owned()),
        sizes: Some(vec!["48x48".to_owned()]),
        theme: Some(IconTheme::Light),
    }
}
