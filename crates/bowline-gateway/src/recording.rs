//! Reads session files.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use bowline_proto::model::meta_key;
use bowline_proto::revision::Revision;
use serde_json::Value;

use crate::session_file::{Line, LineKind, Opening, Way};
use crate::view::{Model, Row};

/// A session that was recorded.
#[derive(Debug)]
pub struct Recording {
    /// How it began.
    pub opening: Opening,
    /// Everything after that.
    pub lines: Vec<Line>,
    /// Lines that could not be read, and why.
    pub problems: Vec<String>,
}

/// A request of a recording, with its answer.
#[derive(Debug)]
pub struct Exchange {
    /// Seconds since the session began.
    pub at: f64,
    /// Which way the request went.
    pub way: Way,
    /// The HTTP exchange or connection, 0 on stdio.
    pub connection: u64,
    /// The whole request.
    pub request: Value,
    /// The whole answer, if there was one, and the seconds it took.
    pub answer: Option<(Value, f64)>,
}

impl Exchange {
    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.request["method"].as_str().unwrap_or_default()
    }
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not a session file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        Self::from_reader(BufReader::new(file))
    }

    /// Reads a session file from anywhere.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn from_reader(reader: impl BufRead) -> Result<Self, String> {
        let mut opening = None;
        let (mut lines, mut problems) = (Vec::new(), Vec::new());
        for (number, text) in reader.lines().enumerate() {
            let text = text.map_err(|error| error.to_string())?;
            match serde_json::from_str::<Line>(&text) {
                Ok(line) if number == 0 => opening = line.session,
                Ok(line) => lines.push(line),
                Err(_) if number == 0 => {}
                Err(error) => problems.push(format!("cannot read line {}: {error}", number + 1)),
            }
            if opening.is_none() {
                return Err("not a session file".to_owned());
            }
        }
        let opening = opening.ok_or("not a session file")?;
        Ok(Self { opening, lines, problems })
    }

    /// The requests, with their answers.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.model().rows().filter_map(|(_, row)| exchange(row)).collect()
    }

    /// The view of the whole recording.
    #[must_use]
    pub fn model(&self) -> Model {
        let mut model = Model::new(usize::MAX, usize::MAX);
        let session = model.open(self.opening.clone());
        for line in &self.lines {
            model.handle_line(session, line.clone());
        }
        model
    }

    /// The revision that was spoken: that of the first request or handshake that names one.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.exchanges().iter().find_map(|exchange| {
            let named = exchange.request["params"]["_meta"][meta_key::PROTOCOL_VERSION].as_str();
            let answer = exchange.answer.as_ref().filter(|_| exchange.method() == "initialize");
            let agreed =
                answer.and_then(|(answer, _)| answer["result"]["protocolVersion"].as_str());
            named.or(agreed)?.parse().ok()
        })
    }

    /// The messages that went one way, in order.
    pub fn messages(&self, way: Way) -> impl Iterator<Item = &Line> {
        let is_wanted =
            move |line: &&Line| line.kind == LineKind::Message && line.direction == Some(way);
        self.lines.iter().filter(is_wanted)
    }
}

fn exchange(row: &Row) -> Option<Exchange> {
    let crate::view::What::Request { .. } = row.what else { return None };
    let answer = row
        .answer
        .as_ref()
        .and_then(|answer| Some((answer.line.message.as_ref()?.to_value(), answer.took)));
    Some(Exchange {
        at: row.line.at,
        way: row.line.direction?,
        connection: row.line.connection.unwrap_or_default(),
        request: row.line.message.as_ref()?.to_value(),
        answer,
    })
}
