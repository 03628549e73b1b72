//! Single operations, repeated: parsing, encoding, dispatching, validating.
//!
//! Counted in instructions if callgrind is installed; otherwise in time, as a multiple of the time
//! that `serde_json` takes to parse the same request into a tree.

use std::hint::black_box;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bowline::{Server, Tasks, Tool};
use bowline_proto::json::Json;
use bowline_proto::wire::{Id, Message, encode_response};
use bowline_schema::Schema;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::callgrind;
use crate::document::Section;
use crate::frames::{Calls, INITIALIZE, Revision};
use crate::peers::Peer;
use crate::table::{Table, number, times};
use crate::{Bench, block_on, tasks};

/// The operations: name, description, function.
type Thing = (&'static str, &'static str, fn(u64) -> Result<(), String>);

const THINGS: &[Thing] = &[
    ("tree", "parse a modern call into a `serde_json` tree, for comparison", tree),
    ("parse-legacy", "parse the envelope of a legacy call", |times| parse(Revision::Legacy, times)),
    ("parse-modern", "parse the envelope of a modern call", |times| parse(Revision::Modern, times)),
    ("encode", "encode a response", encode),
    ("dispatch-legacy", "serve a legacy call over a stream in memory", |times| {
        dispatch(Revision::Legacy, times)
    }),
    ("dispatch-modern", "serve a modern call over a stream in memory", |times| {
        dispatch(Revision::Modern, times)
    }),
    ("task-legacy", "create and run a legacy task", |times| task(Revision::Legacy, times)),
    ("task-modern", "create and run a modern task", |times| task(Revision::Modern, times)),
    ("validate", "validate arguments with three members", validate),
];

/// Repeats one operation.
pub(crate) fn repeat(name: &str, times: &str) -> Result<(), String> {
    let thing = THINGS.iter().find(|(known, ..)| *known == name);
    let (.., run) = thing.ok_or_else(|| format!("unknown operation `{name}`"))?;
    run(times.parse().map_err(|error| format!("{times:?}: {error}"))?)
}

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    if !callgrind::is_here() {
        return timed();
    }
    let mut table = Table::new(&["in memory, 64 bytes", "instructions"]);
    for (name, about, _) in THINGS {
        let count = callgrind::of_program(&bench.peers.micro(name), 1_000)?;
        table.row(&[(*about).to_owned(), number(count)]);
    }
    let mut text = table.finish();
    let mut table =
        Table::new(&["whole server, one call of `echo`", "server", "instructions", "rmcp ÷"]);
    for is_http in [false, true] {
        for revision in Revision::BOTH {
            let calls = Calls::new(revision, "echo", 64);
            let mut rows = Vec::new();
            for peer in bench.peers.all().into_iter().filter(|peer| *peer != Peer::RmcpDefault) {
                let count = if is_http {
                    let line = bench.peers.http(peer, revision == Revision::Legacy);
                    block_on(callgrind::of_http_server(&line, &calls))?
                } else {
                    let line = bench.peers.stdio(peer);
                    block_on(callgrind::of_pipe_server(&line, &calls))?
                };
                rows.push((peer, count));
            }
            let base = rows.iter().find(|(peer, _)| *peer == Peer::Rmcp).map(|(_, count)| *count);
            let transport = if is_http { "http" } else { "stdio" };
            for (peer, count) in rows {
                let better = times(base.unwrap_or(f64::NAN) / count);
                let scenario = format!("{transport}, {}", revision.name());
                table.row(&[scenario, peer.name().to_owned(), number(count), better]);
            }
        }
    }
    text += &table.finish();
    Ok(Section::new(text))
}

/// Times, if instructions cannot be counted.
fn timed() -> Result<Section, String> {
    const TIMES: u64 = 200_000;
    let mut table = Table::new(&["in memory, 64 bytes", "time", "as a multiple of the first"]);
    let mut first = None;
    for (_, about, run) in THINGS {
        run(TIMES / 10)?;
        let start = Instant::now();
        run(TIMES)?;
        let nanos = start.elapsed().as_secs_f64() * 1e9 / TIMES as f64;
        let base = *first.get_or_insert(nanos);
        table.row(&[(*about).to_owned(), format!("{} ns", number(nanos)), times(nanos / base)]);
    }
    Ok(Section::new(format!("`valgrind` is not installed.\n\n{}", table.finish())))
}

fn request(revision: Revision) -> Vec<u8> {
    written(&Calls::new(revision, "echo", 64))
}

fn written(calls: &Calls) -> Vec<u8> {
    let mut frame = Vec::new();
    calls.write(&mut frame, 7);
    frame
}

fn tree(times: u64) -> Result<(), String> {
    let frame = request(Revision::Modern);
    for _ in 0..times {
        let value: Value =
            serde_json::from_slice(black_box(&frame)).map_err(|it| it.to_string())?;
        black_box(value);
    }
    Ok(())
}

fn parse(revision: Revision, times: u64) -> Result<(), String> {
    let frame = request(revision);
    for _ in 0..times {
        let message = Message::parse(black_box(&frame)).map_err(|error| error.to_string())?;
        black_box(message);
    }
    Ok(())
}

fn encode(times: u64) -> Result<(), String> {
    let message = "x".repeat(64);
    let result = Json::from(json!({ "content": [{ "type": "text", "text": message }] }));
    let (id, mut out) = (Id::from(7_i64), Vec::new());
    for _ in 0..times {
        out.clear();
        encode_response(&mut out, &id, black_box(&result)).map_err(|error| error.to_string())?;
        black_box(&out);
    }
    Ok(())
}

fn validate(times: u64) -> Result<(), String> {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "minLength": 1 },
            "days": { "type": "integer", "minimum": 1, "maximum": 14 },
            "units": { "enum": ["metric", "imperial"] },
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    let schema = Schema::compile(&schema).map_err(|error| error.to_string())?;
    let arguments = json!({ "city": "Harbin", "days": 3, "units": "metric" });
    for _ in 0..times {
        let checked = schema.validate("arguments", black_box(&arguments));
        checked.map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Echo {
    pub(crate) message: String,
}

fn dispatch(revision: Revision, times: u64) -> Result<(), String> {
    let echo = Tool::new("echo", |echo: Echo| async move { echo.message });
    serve(Server::new("micro", "1.0.0").with(echo), revision, request(revision), times)
}

fn task(revision: Revision, times: u64) -> Result<(), String> {
    let server = tasks::server(Tasks::in_memory_with(tasks::limits()));
    let call = written(&Calls::new(revision, "echo", 64).with_tasks());
    serve(server, revision, call, times)
}

/// Serves a call as often as that.
fn serve(server: Server, revision: Revision, call: Vec<u8>, times: u64) -> Result<(), String> {
    let line = |mut frame: Vec<u8>| {
        frame.push(b'\n');
        frame
    };
    let first = match revision {
        Revision::Legacy => line(INITIALIZE.as_bytes().to_vec()),
        Revision::Modern => Vec::new(),
    };
    let feed = Feed { first, call: line(call), left: times };
    block_on(async { server.serve(feed).await.map_err(|error| error.to_string()) })
}

/// A client whose requests are prepared, and that discards the responses.
struct Feed {
    first: Vec<u8>,
    call: Vec<u8>,
    left: u64,
}

impl AsyncRead for Feed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buffer.put_slice(&std::mem::take(&mut self.first));
        while self.left > 0 && buffer.remaining() >= self.call.len() {
            buffer.put_slice(&self.call);
            self.left -= 1;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Feed {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_can_be_repeated() {
        for (name, ..) in THINGS {
            assert_eq!(repeat(name, "3"), Ok(()), "{name}");
        }
        assert!(repeat("nothing", "3").is_err());
        assert!(repeat("tree", "x").is_err());
    }
}
