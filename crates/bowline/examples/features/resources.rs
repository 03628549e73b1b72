//! Resources and resource templates.

use bowline::model::{Annotations, Role};
use bowline::{HandlerError, Resource, Server, Structured};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::icon;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Page {
    pub(super) id: String,
}

#[derive(Deserialize, JsonSchema)]
struct User {
    id: u32,
}

#[derive(Deserialize, JsonSchema)]
struct File {
    /// Which kind of file.
    kind: Kind,
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Notes,
    Numbers,
    Pictures,
}

pub(super) fn server() -> Server {
    let annotations = Annotations {
        audience: Some(vec![Role::User]),
        priority: Some(1.0),
        last_modified: Some("2025-01-12T15:00:58Z".to_owned()),
    };
    Server::new("resources", "1.0.0")
        .with(
            Resource::text("test://text", "text", "hello")
                .title("Text")
                .description("Always the same.")
                .annotations(annotations)
                .icon(icon())
                .meta("example.com/kind", "greeting"),
        )
        .with(Resource::bytes("test://bytes", "bytes", [0, 1, 254, 255]))
        .with(Resource::new("test://json", "json", || async { Structured(json!({ "a": [1] })) }))
        .with(Resource::new("test://broken", "broken", || async {
            Err::<String, _>("the disk is on fire")
        }))
        .with(
            Resource::new("test://users/{id}", "user", user)
                .title("User")
                .description("A user by number.")
                .mime_type("text/plain")
                .icon(icon()),
        )
        .with(Resource::new("test://files/{kind}/{name}", "file", file).complete(
            "name",
            |completing| async move {
                match completing.other("kind") {
                    Some("notes") => completing.matching(&["shopping", "shoes"]),
                    Some(_) => Vec::new(),
                    None => completing.matching(&["shopping", "shoes", "shares"]),
                }
            },
        ))
}

async fn user(user: User) -> Result<String, HandlerError> {
    match user.id {
        0 => Err(HandlerError::resource_not_found("test://users/0")),
        id => Ok(format!("user {id}")),
    }
}

async fn file(file: File) -> String {
    let kind = match file.kind {
        Kind::Notes => "notes",
        Kind::Numbers => "numbers",
        Kind::Pictures => "pictures",
    };
    format!("{} among the {kind}", file.name)
}
