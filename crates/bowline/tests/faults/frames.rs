//! Hostile frames, the same in every run, each with the expected reaction.

/// A random number generator: xorshift64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The expected reaction to a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Expect {
    /// It is executed and answered under its id.
    Served,
    /// It is rejected under its id.
    Refused,
    /// It has no readable id: no answer, or a fault.
    Unanswered,
}

use Expect::{Refused, Served, Unanswered};

/// The frames, and what is wrong with each. `ID` stands for the id.
const KINDS: &[(Expect, &str)] = &[
    // Odd, but messages.
    (Served, r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count"}}"#),
    (
        Served,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"tools/call\",\"params\":{\"name\":\"count\"}}",
    ),
    (
        Served,
        "{\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"tools/call\",\"params\":{\"name\":\"count\"}}\r",
    ),
    (
        Served,
        " \t{\"params\":{\"name\":\"count\"},\"method\":\"tools/call\",\"id\":ID,\"jsonrpc\":\"2.0\"} ",
    ),
    (
        Served,
        r#"{"jsonrpc":"2.0","i\u0064":ID,"m\u0065thod":"tools\/call","params":{"name":"co\u0075nt"}}"#,
    ),
    (
        Served,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count"},"Method":"x","ID":7,"x":[{}]}"#,
    ),
    (Served, r#"{"jsonrpc":"2.0","id":ID.0,"method":"tools/call","params":{"name":"count"}}"#),
    // Members that are repeated, of the wrong type, or missing.
    (
        Refused,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/list","method":"tools/call","params":{"name":"count"}}"#,
    ),
    (
        Refused,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{},"params":{"name":"count"}}"#,
    ),
    (
        Refused,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","name":"count"}}"#,
    ),
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":["count"]}"#),
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":"count"}"#),
    (
        Refused,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count","arguments":[]}}"#,
    ),
    (Refused, r#"{"jsonrpc":"1.0","id":ID,"method":"tools/call","params":{"name":"count"}}"#),
    (Refused, r#"{"id":ID,"method":"tools/call","params":{"name":"count"}}"#),
    (
        Refused,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count"},"result":{}}"#,
    ),
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"Name":"count"}}"#),
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":"Tools/Call","params":{"name":"count"}}"#),
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":{},"params":{"name":"count"}}"#),
    // Not JSON.
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count"},}"#),
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count"}}x"#),
    (Refused, r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count"}"#),
    (
        Refused,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count","x":NaN}}"#,
    ),
    (
        Refused,
        r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count" /* x */}}"#,
    ),
    (
        Refused,
        "{\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"tools/call\",\"params\":{\"name\":\"count\",\"x\":\"\0\"}}",
    ),
    (
        Refused,
        "{\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"tools/call\",\"params\":{\"name\":\"count\"}}\0",
    ),
    // Invalid ids.
    (Unanswered, r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"count"}}"#),
    (Unanswered, r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"count"}}"#),
    (Unanswered, r#"{"jsonrpc":"2.0","id":true,"method":"tools/call","params":{"name":"count"}}"#),
    (
        Unanswered,
        r#"{"jsonrpc":"2.0","id":1000000000000000000000000000000,"method":"tools/call","params":{"name":"count"}}"#,
    ),
    (Unanswered, r#"{"jsonrpc":"2.0","id":1e30,"method":"tools/call","params":{"name":"count"}}"#),
    (Unanswered, r#"{"jsonrpc":"2.0","id":[ID],"method":"tools/call","params":{"name":"count"}}"#),
    (
        Unanswered,
        r#"{"jsonrpc":"2.0","id":{"id":ID},"method":"tools/call","params":{"name":"count"}}"#,
    ),
    (
        Unanswered,
        r#"{"jsonrpc":"2.0","id":ID,"id":7,"method":"tools/call","params":{"name":"count"}}"#,
    ),
    (Unanswered, r#"{"jsonrpc":"2.0","ID":ID,"method":"tools/call","params":{"name":"count"}}"#),
    (Unanswered, r#"{"jsonrpc":"2.0","Id":ID,"METHOD":"tools/call","params":{"name":"count"}}"#),
    // Not requests.
    (Unanswered, r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#),
    (Unanswered, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"x"}}"#),
    (
        Unanswered,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
    ),
    (Unanswered, r#"[{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"count"}}]"#),
    (Unanswered, r#"["jsonrpc","2.0","id",ID,"method","tools/call"]"#),
    (Unanswered, "[]"),
    (Unanswered, "null"),
    (Unanswered, "7"),
    (Unanswered, "\"tools/call\""),
    (Unanswered, "{}"),
    (Unanswered, "{"),
    (Unanswered, "}"),
    (Unanswered, ""),
    (Unanswered, "\u{feff}"),
];

/// The frame number `id`, and the expected reaction.
pub(crate) fn frame(random: &mut Random, id: u64) -> (Expect, Vec<u8>) {
    let pick = usize::try_from(random.below(KINDS.len() as u64 + 8)).unwrap();
    match KINDS.get(pick) {
        Some((expect, text)) => (*expect, text.replace("ID", &id.to_string()).into_bytes()),
        None => broken(random, id),
    }
}

/// Frames that are not text.
fn broken(random: &mut Random, id: u64) -> (Expect, Vec<u8>) {
    let call = |extra: &[u8]| {
        let start = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"count","x":"#
        );
        [start.as_bytes(), extra, b"}}"].concat()
    };
    let few = |random: &mut Random| usize::try_from(random.below(900)).unwrap();
    match random.below(6) {
        0 => (Refused, call(b"\"\xff\"")),
        1 => (Refused, call(b"\"\xed\xa0\x80\xc0\x80\"")),
        2 => {
            let depth = if random.below(20) == 0 { 100_000 } else { 127 + few(random) };
            (Refused, call(&["[".repeat(depth), "]".repeat(depth)].concat().into_bytes()))
        }
        3 => (Refused, call("{\"x\":".repeat(127 + few(random)).as_bytes())),
        4 => {
            // Cut within or before the id, so that another number could be read in its place.
            let frame = call(b"1");
            let length = usize::try_from(random.below(20 + id.to_string().len() as u64)).unwrap();
            (Unanswered, frame[..length].to_vec())
        }
        _ => {
            let bytes = (0..few(random)).map(|_| u8::try_from(random.below(256)).unwrap());
            (Unanswered, bytes.filter(|byte| *byte != b'\n').collect())
        }
    }
}
