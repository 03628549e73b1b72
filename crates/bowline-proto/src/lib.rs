//! The Model Context Protocol as pure code: five revisions, no I/O, no clock, no runtime.
//!
//! Bytes go in and values come out, or the other way round. The owner of the pipe, the socket or
//! the clock calls in; nothing here waits. In reading order:
//!
//! | module | holds |
//! |---|---|
//! | [`wire`] | bytes to one JSON-RPC [`Message`](wire::Message) and back |
//! | [`line`](mod@line), [`sse`] | a byte stream to frames: one per line, or one per server-sent event |
//! | [`model`] | a plain type for every concept of the specification |
//! | [`method`] | the table of methods: parameters, result, who may send it, and in which revisions |
//! | [`revision`] | the revisions, and every difference between them |
//! | [`decode`] | raw JSON to types, with errors that name the member |
//! | [`session`] | state machines: calls, requests, lifecycle, eras, subscriptions, replay |
//! | `http` | the rules for headers, with the feature `http` |
//! | [`raw`], [`params`] | JSON text that is not parsed yet; the parameters of a request, scanned once |
//! | [`json`], [`members`], [`error`], [`base64`] | JSON that is passed on unparsed; ordered objects; error codes |
//! | [`scope`], [`causes`] | the grammar of scopes; an error with its causes in one line |
//!
//! # Reading and answering a request
//!
//! ```
//! use bowline_proto::method::{CallTool, Method};
//! use bowline_proto::model::CallToolResult;
//! use bowline_proto::revision::{Adapt, Revision};
//! use bowline_proto::wire::{Message, encode_response};
//!
//! #[derive(serde::Deserialize)]
//! struct Sum { a: i64, b: i64 }
//!
//! let frame = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":
//!     {"name":"sum","arguments":{"a":1023123,"b":2352345}}}"#;
//! let Message::Request(request) = Message::parse(frame)? else { panic!("a request") };
//! assert_eq!(request.method, CallTool::NAME);
//!
//! let call = request.params.call_tool()?;
//! let Sum { a, b } = serde_json::from_str(call.arguments.unwrap().get())?;
//!
//! let mut result = CallToolResult::success(vec![(a + b).to_string().into()]);
//! result.adapt(Revision::V2024_11_05)?;
//! let mut out = Vec::new();
//! encode_response(&mut out, &request.id, &result)?;
//! assert_eq!(
//!     out,
//!     br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"3375468"}],"isError":false}}"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod base64;
mod buffer;
pub mod causes;
pub mod decode;
pub mod error;
#[cfg(feature = "http")]
pub mod http;
pub mod json;
pub mod line;
pub mod members;
pub mod method;
pub mod model;
pub mod params;
pub mod raw;
pub mod revision;
pub mod scope;
pub mod session;
pub mod sse;
mod tagged;
pub mod wire;
