//! `bowline tap --view`: all running taps of this user, live, in a terminal of its own.

mod draw;
mod feed;
mod keys;

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use bowline_gateway::session_file::{Line, LineKind};
use bowline_gateway::view::{Filter, Model, Row};
use crossterm::event::{self, Event};
use jiff::Timestamp;

use self::feed::{Feed, Heard};
use crate::failure::Failure;
use crate::render::wire::render;
use crate::screen::{OutputArgs, Screen};
use crate::text::line as one_line;

/// The most rows that are kept.
const ROWS: usize = 20_000;
/// The most bytes in them.
const BYTES: usize = 64 << 20;
/// How long to wait for a key before the screen is brought up to date.
const TICK: Duration = Duration::from_millis(100);
/// The most lines that are read between two keys.
const BATCH: usize = 2_000;

/// Runs until the user has seen enough.
pub(super) fn run(folder: PathBuf, root: &OutputArgs) -> Result<(), Failure> {
    let screen = Screen::new(root);
    let feed = Feed::start(folder)
        .map_err(|error| Failure::usage(format!("cannot look for taps: {error}")))?;
    if !std::io::stdout().is_terminal() || screen.is_json() {
        return pipe(&feed, &screen);
    }
    let mut view = View::new(screen.out.0);
    let failed = |error: std::io::Error| Failure::usage(format!("cannot draw: {error}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let outcome = loop {
        for _ in 0..BATCH {
            let Some(heard) = feed.next(Duration::ZERO) else { break };
            view.handle(heard);
        }
        view.refresh();
        if let Err(error) = terminal.draw(|frame| draw::draw(&mut view, frame)) {
            break Err(error);
        }
        match event::poll(TICK).and_then(|is_there| is_there.then(event::read).transpose()) {
            Ok(Some(Event::Key(key))) => view.press(key),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
        if view.is_over {
            break Ok(());
        }
    };
    ratatui::restore();
    outcome.map_err(failed)
}

/// For pipes and programs: lines as they come, until the reader has gone.
fn pipe(feed: &Feed, screen: &Screen) -> Result<(), Failure> {
    let mut names: HashMap<u64, String> = HashMap::new();
    while !screen.is_lost() {
        let Some(Heard::Line(tap, line)) = feed.next(TICK) else { continue };
        if screen.is_json() {
            let text = line.encode().unwrap_or_default();
            screen.print(&String::from_utf8_lossy(&text));
            continue;
        }
        if let Some(opening) = &line.session {
            let name =
                opening.tap.as_ref().map_or_else(|| opening.server(), |tap| tap.name.clone());
            names.insert(tap, one_line(&name));
            continue;
        }
        let name = names.get(&tap).map(String::as_str).unwrap_or_default();
        screen.print(&format!("{name} {}", render(&line, screen.out)));
    }
    screen.finish()
}

/// What the screen shows.
struct View {
    model: Model,
    /// The sessions of taps, and when they began.
    taps: HashMap<u64, usize>,
    begun: Vec<Timestamp>,
    tab: Tab,
    filter: Filter,
    filter_text: String,
    search: String,
    /// What is being typed, if anything is.
    typing: Option<Typing>,
    /// The numbers of the rows that pass the filter.
    shown: Vec<u64>,
    selected: Option<u64>,
    /// Whether the latest row is selected as it comes.
    follows: bool,
    is_grouped: bool,
    has_detail: bool,
    detail_offset: u16,
    /// How many rows fit, for paging.
    page: usize,
    /// Said at the bottom until the next key.
    notice: String,
    is_coloured: bool,
    is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Messages,
    Methods,
    Waiting,
    Taps,
}

impl Tab {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Messages, "messages"),
        (Self::Methods, "methods"),
        (Self::Waiting, "waiting"),
        (Self::Taps, "taps"),
    ];
}

/// A line that is being typed at the bottom.
struct Typing {
    is_search: bool,
    text: String,
}

impl View {
    fn new(is_coloured: bool) -> Self {
        Self {
            model: Model::new(ROWS, BYTES),
            taps: HashMap::new(),
            begun: Vec::new(),
            tab: Tab::Messages,
            filter: Filter::default(),
            filter_text: String::new(),
            search: String::new(),
            typing: None,
            shown: Vec::new(),
            selected: None,
            follows: true,
            is_grouped: true,
            has_detail: false,
            detail_offset: 0,
            page: 10,
            notice: String::new(),
            is_coloured,
            is_over: false,
        }
    }

    fn handle(&mut self, heard: Heard) {
        match heard {
            Heard::Line(tap, line) => match (line.kind, line.session.clone()) {
                (LineKind::Session, Some(opening)) => {
                    let started = opening.started.parse();
                    self.begun.push(started.unwrap_or_else(|_| Timestamp::now()));
                    let session = self.model.open(opening);
                    self.taps.insert(tap, session);
                }
                _ => {
                    if let Some(session) = self.taps.get(&tap) {
                        self.model.handle_line(*session, *line);
                    }
                }
            },
            Heard::Gone(tap) => {
                if let Some(session) = self.taps.remove(&tap) {
                    self.model.close(session, self.now(session));
                }
            }
        }
    }

    /// Seconds since a session began.
    fn now(&self, session: usize) -> f64 {
        let begun = self.begun.get(session).copied().unwrap_or_default();
        Timestamp::now().duration_since(begun).as_secs_f64()
    }

    /// Seconds that a request has been waiting; those of sessions that are over wait no longer.
    fn waits(&self, row: &Row) -> Option<f64> {
        let is_over = self.model.sessions()[row.session].ended.is_some();
        (row.is_pending() && !is_over).then(|| (self.now(row.session) - row.line.at).max(0.0))
    }

    /// Brings the list of shown rows up to date.
    fn refresh(&mut self) {
        let nows: Vec<f64> = (0..self.begun.len()).map(|session| self.now(session)).collect();
        let is_shown = |row: &Row| {
            let is_hidden = self.is_grouped && row.parent.is_some();
            let is_waiting = self.tab != Tab::Waiting || self.waits(row).is_some();
            !is_hidden && is_waiting && self.filter.matches(&self.model, row, nows[row.session])
        };
        let rows = self.model.rows().filter(|(_, row)| is_shown(row));
        let shown = rows.map(|(number, _)| number).collect();
        self.shown = shown;
        let is_gone = self.selected.is_none_or(|it| self.shown.binary_search(&it).is_err());
        if self.follows || is_gone {
            self.selected = self.shown.last().copied();
        }
    }

    /// The place of the selected row among those shown.
    fn place(&self) -> usize {
        let selected = self.selected.unwrap_or_default();
        self.shown.partition_point(|number| *number < selected)
    }

    /// Writes the shown rows of the selected row's session to a session file.
    fn export(&mut self) {
        let Some(row) = self.selected.and_then(|number| self.model.row(number)) else {
            "nothing to export".clone_into(&mut self.notice);
            return;
        };
        let session = row.session;
        let rows = self.shown.iter().filter_map(|number| self.model.row(*number));
        let rows = rows.filter(|row| row.session == session);
        let mut lines: Vec<&Line> = rows
            .flat_map(|row| {
                std::iter::once(&row.line).chain(row.answer.as_ref().map(|it| &it.line))
            })
            .collect();
        lines.sort_by(|one, other| one.at.total_cmp(&other.at));
        let name = format!("tap-{}.jsonl", Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ"));
        let opening = Line {
            kind: LineKind::Session,
            session: Some(self.model.sessions()[session].opening.clone()),
            ..Line::default()
        };
        let written = bowline_gateway::session_file::Recorder::create(name.as_ref(), false)
            .and_then(|file| {
                let all = std::iter::once(&opening).chain(lines);
                all.into_iter().try_for_each(|line| file.write(line))
            });
        self.notice = match written {
            Ok(()) => format!("written: {name}"),
            Err(error) => format!("cannot write {name}: {error}"),
        };
    }
}
