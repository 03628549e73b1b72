//! Tools that return every kind of content.

use bowline::model::{
    Annotations, ContentBlock, ResourceContents, Role, TextContent, ToolAnnotations,
};
use bowline::{ErrorObject, HandlerError, Server, Structured, Tool, model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::icon;

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Point {
    x: i64,
    y: i64,
}

pub(super) fn server() -> Server {
    Server::new("tools", "1.0.0").with((blocks(), data(), failures()))
}

fn blocks() -> Vec<Tool> {
    let annotations = ToolAnnotations {
        title: Some("A greeting".to_owned()),
        read_only_hint: Some(true),
        destructive_hint: Some(false),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    };
    vec![
        Tool::new("text", || async { "hello" })
            .title("Text")
            .description("Say hello.")
            .annotations(annotations)
            .icon(icon())
            .meta("example.com/kind", "greeting"),
        Tool::new("image", || async { ContentBlock::image("iVBORw0KGgo=", "image/png") }),
        Tool::new("audio", || async { ContentBlock::audio("UklGRgAAAABXQVZF", "audio/wav") }),
        Tool::new("embedded", || async {
            let contents = ResourceContents::text("test://embedded", "inside");
            ContentBlock::resource(contents.with_mime_type("text/plain"))
        }),
        Tool::new("link", || async { link() }),
        Tool::new("annotated", || async { annotated() }),
        Tool::new("nothing", || async {}),
    ]
}

fn link() -> ContentBlock {
    ContentBlock::ResourceLink(model::Resource {
        uri: "test://linked".to_owned(),
        name: "linked".to_owned(),
        title: Some("Linked".to_owned()),
        description: Some("Read it elsewhere.".to_owned()),
        mime_type: Some("text/plain".to_owned()),
        icons: Some(vec![icon()]),
        ..model::Resource::default()
    })
}

fn annotated() -> ContentBlock {
    let annotations = Annotations {
        audience: Some(vec![Role::User, Role::Assistant]),
        priority: Some(0.5),
        last_modified: Some("2025-01-12T15:00:58Z".to_owned()),
    };
    let mut meta = model::Meta::default();
    meta.set("example.com/kind", "remark");
    ContentBlock::Text(TextContent {
        text: "for both".to_owned(),
        annotations: Some(annotations),
        meta: Some(meta),
    })
}

fn data() -> Vec<Tool> {
    vec![
        Tool::new("sum", |sum: Sum| async move { sum.a + sum.b }).description("Add two numbers."),
        Tool::new("point", || async { Structured(Point { x: 1, y: 2 }) }),
        Tool::new("list", || async { Structured(vec![1, 2, 3]) }),
        Tool::new("null", || async { Structured(None::<i64>) }),
    ]
}

fn failures() -> Vec<Tool> {
    vec![
        Tool::new("fails", || async { Err::<String, _>("no luck") }),
        Tool::new("refuses", || async {
            let refusal = ErrorObject::invalid_params("not like this");
            Err::<String, _>(HandlerError::Refused(refusal))
        }),
        Tool::new("panics", panics),
    ]
}

async fn panics() -> String {
    panic!("a secret")
}
