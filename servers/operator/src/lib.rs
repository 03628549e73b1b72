//! Operators: voices that a model uses to speak aloud.
//!
//! A client lists the available operators and assigns one; only then do the tools for speaking
//! exist, so the list of tools changes with the operator. Texts are spoken one after another,
//! sentence by sentence, by COEIROINK or a compatible service, or by `espeak-ng`.

mod desk;
mod outcome;
mod queue;
mod sentences;
mod voice;

use std::sync::Arc;

use bowline::{Server, Tool};

use self::desk::Desk;
pub use self::voice::{Engine, Settings};

/// The resource with the operator's status.
pub const STATUS_URI: &str = "operator://status";

/// Builds the server, with no operator assigned.
pub fn server(settings: Settings) -> Server {
    let desk = Arc::new(Desk::new(settings));
    Server::new("operator", env!("CARGO_PKG_VERSION"))
        .title("Operator")
        .description("Speaks aloud: operators with voices, styles and a queue")
        .instructions(
            "Speaks aloud on the user's computer. List operators with operator_available, assign \
             one with operator_assign, then speak with say. The tools say, operator_styles, \
             queue_status, queue_clear and operator_release exist only while an operator is \
             assigned. Speak short sentences in the language of the operator's voice. Release the \
             operator with operator_release when you are done.",
        )
        .with(status(Arc::clone(&desk)))
        .with(available(Arc::clone(&desk)))
        .with(desk)
}

fn status(desk: Arc<Desk>) -> Tool {
    Tool::new("operator_status", move || {
        let desk = Arc::clone(&desk);
        async move { desk.described_status() }
    })
    .title("Operator status")
    .description("現在のオペレータ状態を取得")
    .read_only()
    .open_world(false)
}

fn available(desk: Arc<Desk>) -> Tool {
    Tool::new("operator_available", move || {
        let desk = Arc::clone(&desk);
        async move { desk.available().await }
    })
    .title("Available operators")
    .description("利用可能なオペレータ一覧を取得")
    .read_only()
    .open_world(false)
}
