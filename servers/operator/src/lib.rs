//! Operators: voices that a model takes on to speak aloud.
//!
//! Who is free is listed, one is assigned, and only then are there tools to speak with: the list of
//! tools changes with the operator. What is said is spoken one after the other, sentence by
//! sentence, by COEIROINK or whatever answers like it, or by `espeak-ng`.

mod desk;
mod queue;
mod sentences;
mod voice;

use std::sync::Arc;

use bowline::{Server, Tool, schema_for};
use serde_json::json;

use self::desk::{Available, Desk, Status};
pub use self::voice::{Engine, Settings};

/// Where the operator's status can be read and subscribed to.
pub const STATUS_URI: &str = "operator://status";

/// The server, with nobody assigned.
pub fn server(settings: Settings) -> Server {
    let desk = Arc::new(Desk::new(settings));
    Server::new("operator", env!("CARGO_PKG_VERSION"))
        .title("Operator")
        .description("Speaks aloud: operators with voices, styles and a queue")
        .instructions(
            "Speaks aloud on the user's computer. Look who is free with operator_available, take \
             one on with operator_assign, and then speak with say; operator_styles, queue_status, \
             queue_clear and operator_release come with the operator, and go with it. Speak short \
             sentences in the language of the operator's voice. Give the operator back with \
             operator_release.",
        )
        .with(status(Arc::clone(&desk)))
        .with(available(Arc::clone(&desk)))
        .with(desk)
}

/// A tool without arguments, written as clients expect it who look for `properties`.
fn no_arguments() -> serde_json::Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

fn status(desk: Arc<Desk>) -> Tool {
    Tool::new("operator_status", move || {
        let desk = Arc::clone(&desk);
        async move { desk.status_answer() }
    })
    .title("Operator status")
    .description("現在のオペレータ状態を取得")
    .input_schema(no_arguments())
    .output_schema(schema_for::<Status>())
    .read_only()
    .open_world(false)
}

fn available(desk: Arc<Desk>) -> Tool {
    Tool::new("operator_available", move || {
        let desk = Arc::clone(&desk);
        async move { desk.available_answer().await }
    })
    .title("Available operators")
    .description("利用可能なオペレータ一覧を取得")
    .input_schema(no_arguments())
    .output_schema(schema_for::<Available>())
    .read_only()
    .open_world(false)
}
