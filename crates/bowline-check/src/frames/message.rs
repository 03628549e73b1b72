//! The messages that every frame-level client sends: requests as each revision wants them, and
//! replies to what a server asks.

use bowline::Revision;
use bowline::model::meta_key::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION};
use serde_json::{Value, json};

/// The request that opens a legacy session.
pub fn initialize(id: &Value, version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": info(),
    }})
}

/// A request as the revision wants it: modern ones name the client in `_meta`. Members of
/// `_meta` that `params` already has stay.
pub fn request(revision: Revision, id: &Value, method: &str, mut params: Value) -> Value {
    if revision.is_modern() {
        let meta = &mut params["_meta"];
        for (key, value) in [
            (PROTOCOL_VERSION, json!(revision.as_str())),
            (CLIENT_INFO, info()),
            (CLIENT_CAPABILITIES, json!({})),
        ] {
            if meta.get(key).is_none() {
                meta[key] = value;
            }
        }
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn info() -> Value {
    json!({"name": "bowline", "version": env!("CARGO_PKG_VERSION")})
}

/// A method without parameters that every server of the era knows.
pub fn plain_method(revision: Revision) -> &'static str {
    if revision.is_modern() { "server/discover" } else { "ping" }
}

/// A notification without parameters.
pub fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

/// Whether a message answers the request with this id.
pub fn is_answer(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message.get("id") == Some(id)
}

/// How a client without capabilities answers a request: `ping` with a result, anything else with
/// an error. `None` if the message is not a request.
pub fn answer_to(message: &Value) -> Option<Value> {
    let method = message.get("method")?.as_str()?;
    let id = message.get("id")?;
    Some(if method == "ping" {
        json!({"jsonrpc": "2.0", "id": id, "result": {}})
    } else {
        json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": -32601, "message": "this client does not declare that capability"}})
    })
}
