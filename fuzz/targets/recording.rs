//! Session files: what can be read can be shown, exported and compared, and is the same when it is
//! written and read again.

#![no_main]

use bowline::Json;
use bowline_gateway::diff::{self, Surface};
use bowline_gateway::export;
use bowline_gateway::recording::Recording;
use bowline_gateway::session_file::Line;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let recording = match Recording::from_reader(input) {
        Ok(recording) => recording,
        Err(why) => return assert!(!why.is_empty()),
    };
    let exchanges = recording.exchanges();
    assert!(exchanges.len() <= recording.lines.len());
    for exchange in &exchanges {
        assert!(exchange.request.is_object(), "{exchange:?}");
    }
    let again = rewritten(&recording);
    assert!(again.problems.is_empty(), "{:?}", again.problems);
    assert_eq!(again.lines.len(), recording.lines.len());
    for (one, other) in again.lines.iter().zip(&recording.lines) {
        // Times are read to the last bit but one.
        assert_eq!(said(one), said(other));
    }
    assert_eq!(again.revision(), recording.revision());
    let _: [Value; 2] = [export::har(&recording), export::otlp(&recording)];
    assert!(export::html(&recording).contains("</html>"));
    let surface = Surface::of(&recording);
    assert!(surface.compare(&Surface::of(&again), &[]).is_empty());
    let value = surface.to_value();
    assert!(diff::values(&value, &value, &[]).is_empty());
});

/// What a line is about.
fn said(line: &Line) -> impl PartialEq + std::fmt::Debug {
    let message = line.message.as_ref().map(Json::to_value);
    (line.kind, line.direction, line.connection, message, line.text.clone(), line.length)
}

/// Everything that was read, written and read once more.
fn rewritten(recording: &Recording) -> Recording {
    let opening = Line { session: Some(recording.opening.clone()), ..Line::default() };
    let lines = std::iter::once(&opening).chain(&recording.lines);
    let text: Vec<u8> = lines.flat_map(|line| line.encode().expect("it was read")).collect();
    Recording::from_reader(&*text).expect("it begins with a session")
}
