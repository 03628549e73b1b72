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
        Tool::new("image", || async { ContentBlock::image("iVBORw0KGgo=", "image/png") })
            .description("Return an image."),
        Tool::new("audio", || async { ContentBlock::audio("UklGRgAAAABXQVZF", "audio/wav") })
            .description("Return a sound."),
        Tool::new("embedded", || async {
            let contents = ResourceContents::text("test://embedded", "inside");
            ContentBlock::resource(contents.with_mime_type("text/plain"))
        })
        .description("Return a resource."),
        Tool::new("link", || async { link() }).description("Return a link to a resource."),
        Tool::new("annotated", || async { annotated() })
            .description("Return a text with annotations."),
        Tool::new("nothing", || async {}).description("Return nothing."),
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
        Tool::new("point", || async { Structured(Point { x: 1, y: 2 }) })
            .description("Return a point."),
        Tool::new("list", || async { Structured(vec![1, 2, 3]) })
            .description("Return three numbers."),
        Tool::new("null", || async { Structured(None::<i64>) }).description("Return no number."),
    ]
}

fn failures() -> Vec<Tool> {
    vec![
        Tool::new("fails", || async { Err::<String, _>("no luck") }).description("Fail."),
        Tool::new("refuses", || async {
            let refusal = ErrorObject::invalid_params("not like this");
            Err::<String, _>(HandlerError::Refused(refusal))
        })
        .description("Reject every call."),
        Tool::new("panics", panics).description("Panic."),
    ]
}

async fn panics() -> String {
    panic!("a secret")
}
