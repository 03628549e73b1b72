//! The cost of a message in allocations: exact counts, which change only when the code does.
//!
//! A separate binary, because the counting allocator applies to the whole process.

#![expect(clippy::unwrap_used, reason = "everything here is a test")]

use allocation_counter::measure;
use bowline_proto::model::{
    CallToolResult, ContentBlock, ReadResourceResult, RequestMeta, ResourceContents,
};
use bowline_proto::revision::{Adapt, Revision};
use bowline_proto::wire::{Id, Message, Request, encode_response};
use serde::Deserialize;

/// A `tools/call` of 2026-07-28 as clients send it: 289 bytes.
const FRAME: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sum","#,
    r#""arguments":{"a":1023123,"b":2352345},"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"ink","version":"1.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
)
.as_bytes();

#[derive(Deserialize)]
struct Sum {
    a: i64,
    b: i64,
}

/// The number of allocations that `work` makes.
fn count(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

fn request() -> Request<'static> {
    match Message::parse(FRAME).unwrap() {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_frame_has_the_documented_length() {
    assert_eq!(FRAME.len(), 289);
}

#[test]
fn a_request_is_parsed() {
    let n = count(|| assert_eq!(request().method, "tools/call"));
    assert_eq!(n, 0);
}

#[test]
fn a_request_is_parsed_and_typed() {
    let n = count(|| {
        let request = request();
        let call = request.params.call_tool().unwrap();
        let sum: Sum = serde_json::from_str(call.arguments.unwrap().get()).unwrap();
        assert_eq!((sum.a + sum.b, &*call.name), (3_375_468, "sum"));
        assert_eq!(call.meta.protocol_version.as_deref(), Some("2026-07-28"));
    });
    // Name, arguments and `_meta` are borrowed.
    assert_eq!(n, 0);
}

#[test]
fn meta_of_a_request_is_read() {
    let text = std::str::from_utf8(FRAME).unwrap();
    let start = text.find(r#"{"io."#).unwrap();
    let text = &text[start..text.len() - 2];
    let n = count(|| {
        let meta: RequestMeta<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(meta.client_capabilities.unwrap().get(), "{}");
    });
    assert_eq!(n, 0);
}

/// A key that the protocol does not reserve is kept in a list.
#[test]
fn meta_of_a_request_is_read_with_a_trace() {
    let text = r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#;
    let n = count(|| {
        let meta: RequestMeta<'_> = serde_json::from_str(text).unwrap();
        assert!(!meta.is_empty());
    });
    assert_eq!(n, 1);
}

/// The number of allocations needed to encode a response into a sufficiently large buffer.
fn encode(result: &impl serde::Serialize) -> (u64, String) {
    let id = Id::from(7_i64);
    let mut out = Vec::with_capacity(1024);
    let n = count(|| encode_response(&mut out, &id, result).unwrap());
    (n, String::from_utf8(out).unwrap())
}

#[test]
fn a_response_is_encoded() {
    for revision in Revision::ALL {
        let mut result = CallToolResult::success(vec![ContentBlock::text("3375468")]);
        result.adapt(revision).unwrap();
        let (n, text) = encode(&result);
        assert_eq!(n, 0, "{text}");
    }
}

#[test]
fn contents_are_encoded() {
    let contents = vec![ResourceContents::text("mem:1", "x"), ResourceContents::blob("mem:2", "")];
    let (n, text) = encode(&ReadResourceResult { contents, ..ReadResourceResult::default() });
    assert_eq!(n, 0, "{text}");
}

#[test]
fn a_result_is_read() {
    let text = r#"{"resultType":"complete","content":[{"type":"text","text":"3375468"}]}"#;
    let n = count(|| {
        let result: CallToolResult = serde_json::from_str(text).unwrap();
        assert_eq!(result.content.len(), 1);
    });
    // The list and the text.
    assert_eq!(n, 2);
}
