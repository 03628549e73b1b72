//! Resources: text, bytes, a template, and one to subscribe to.

use bowline::{Part, Resource, resource};

use crate::content::PNG;

pub(crate) fn parts() -> impl Part {
    let bytes = Resource::bytes("test://static-binary", "static-binary", PNG)
        .description("Always the same bytes")
        .mime_type("image/png");
    (static_text, bytes, watched, data)
}

/// Always the same text.
#[resource("test://static-text", name = "static-text", mime_type = "text/plain")]
async fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A resource to subscribe to.
#[resource("test://watched-resource", name = "watched-resource", mime_type = "text/plain")]
async fn watched() -> &'static str {
    "Watched resource content"
}

/// One resource per id.
#[resource("test://template/{id}/data", name = "template", mime_type = "application/json")]
async fn data(id: String) -> String {
    format!(r#"{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}"#)
}
