//! The screen: a summary, the rows or a table, details of one row, and the keys.

use bowline_gateway::session_file::{Line as Recorded, LineKind, Way};
use bowline_gateway::view::{Row, What};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::{Tab, View};
use crate::render::json::indented;
use crate::render::wire::time;
use crate::screen::Paint;
use crate::text::{cut, line as one_line, plain, width};

const KEYS: &str =
    "q quit  ↑↓ move  ⏎ detail  f filter  / search  F follow  g group  e export  1-4";

pub(super) fn draw(view: &mut View, frame: &mut Frame<'_>) {
    let detail = if view.has_detail { Constraint::Percentage(50) } else { Constraint::Length(0) };
    let parts = [Constraint::Length(2), Constraint::Min(3), detail, Constraint::Length(1)];
    let [head, body, below, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(summary(view)), head);
    view.page = usize::from(body.height.saturating_sub(1)).max(1);
    let lines = match view.tab {
        Tab::Messages | Tab::Waiting => rows(view, body),
        Tab::Methods => methods(view, body),
        Tab::Taps => taps(view),
    };
    frame.render_widget(Paragraph::new(Text::from(lines)), body);
    if view.has_detail {
        let text = Paragraph::new(detail_text(view)).wrap(Wrap { trim: false });
        let text = text.scroll((view.detail_offset, 0));
        frame.render_widget(text.block(Block::new().borders(Borders::TOP)), below);
    }
    frame.render_widget(Paragraph::new(bottom(view, foot)), foot);
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn coloured(view: &View, colour: Color) -> Style {
    if view.is_coloured { Style::new().fg(colour) } else { Style::new() }
}

/// How many taps and messages there are, what waits, what is missing.
fn summary(view: &View) -> Vec<Line<'static>> {
    let sessions = view.model.sessions();
    let running = sessions.iter().filter(|it| it.ended.is_none()).count();
    let rows = view.model.rows().count();
    let waiting: Vec<f64> = view.model.rows().filter_map(|(_, row)| view.waits(row)).collect();
    let lost: u64 = sessions.iter().map(|it| it.lost).sum();
    let mut spans = vec![
        Span::styled("bowline tap", bold()),
        Span::raw(format!("  {running} of {} taps running  {rows} rows", sessions.len())),
    ];
    if let Some(longest) = waiting.iter().copied().reduce(f64::max) {
        let text = format!("  {} waiting, {}", waiting.len(), time(longest));
        spans.push(Span::styled(text, coloured(view, Color::Yellow)));
    }
    if lost > 0 {
        spans.push(Span::styled(format!("  {lost} lost"), coloured(view, Color::Red)));
    }
    let tabs = Tab::ALL.iter().enumerate().map(|(at, (tab, name))| {
        let style = if *tab == view.tab { bold().add_modifier(Modifier::REVERSED) } else { dim() };
        Span::styled(format!(" {} {name} ", at + 1), style)
    });
    let mut tabs: Vec<Span<'static>> = tabs.collect();
    if !view.filter_text.is_empty() {
        tabs.push(Span::raw(format!("  filter: {}", one_line(&view.filter_text))));
    }
    vec![Line::from(spans), Line::from(tabs)]
}

/// The rows around the selected one.
fn rows(view: &View, area: Rect) -> Vec<Line<'static>> {
    let height = usize::from(area.height.saturating_sub(1));
    let place = view.place();
    let last = view.shown.len().saturating_sub(height);
    let start = place.saturating_sub(height / 2).min(last);
    let has_names = view.model.sessions().len() > 1 && area.width >= 80;
    let mut lines = vec![Line::styled(
        if has_names { "     TIME SERVER       " } else { "     TIME " }.to_owned() + "  WHAT",
        dim(),
    )];
    for (at, number) in view.shown.iter().enumerate().skip(start).take(height) {
        let Some(row) = view.model.row(*number) else { continue };
        let style = if at == place {
            Style::new().add_modifier(Modifier::REVERSED)
        } else if row.is_error() {
            coloured(view, Color::Red)
        } else {
            Style::new()
        };
        let text = row_text(view, row, has_names, usize::from(area.width));
        lines.push(Line::styled(text, style));
    }
    if view.shown.is_empty() {
        let hint = match view.tab {
            _ if view.model.sessions().is_empty() => {
                "no taps yet: put `bowline tap --` before a server's command, or run `bowline config wrap NAME`"
            }
            Tab::Waiting => "nothing waits",
            _ => "nothing to show; Esc clears the filter",
        };
        lines.push(Line::styled(hint, dim()));
    }
    lines
}

fn row_text(view: &View, row: &Row, has_names: bool, columns: usize) -> String {
    let name = if has_names {
        let name = one_line(&view.model.sessions()[row.session].name());
        let name = cut(&name, 13);
        format!("{name}{} ", " ".repeat(13_usize.saturating_sub(width(&name))))
    } else {
        String::new()
    };
    let arrow = match row.line.direction {
        Some(Way::Sent) => "→",
        Some(Way::Received) => "←",
        None => "·",
    };
    let left = format!("{:>9} {name}{arrow} {}", time(row.line.at), what(row));
    let right = outcome(view, row);
    let room = columns.saturating_sub(width(&right) + 1);
    let left = cut(&left, room);
    format!("{left}{} {right}", " ".repeat(room.saturating_sub(width(&left))))
}

fn what(row: &Row) -> String {
    match &row.what {
        What::Request { method, subject, id } => {
            let subject = subject.as_ref().map(|it| format!(" {}", one_line(it)));
            format!("{}{} #{}", one_line(method), subject.unwrap_or_default(), one_line(id))
        }
        What::Notification { method } => one_line(method),
        What::Stray => format!("answer to nothing: {}", said(&row.line)),
        What::Noise => format!("not a message: {}", said(&row.line)),
        What::Other => match (row.line.kind, &row.line.http) {
            (LineKind::Http, Some(http)) => match http.status {
                Some(status) => {
                    format!("HTTP {status} ({} #{})", one_line(&http.method), http.exchange)
                }
                None => format!("{} {}", one_line(&http.method), one_line(&http.url)),
            },
            (LineKind::Lost, _) => format!("{} lost", row.line.length.unwrap_or_default()),
            (LineKind::End, _) => format!("end of session {}", said(&row.line)),
            (LineKind::Stderr, _) => format!("stderr │ {}", said(&row.line)),
            _ => said(&row.line),
        },
    }
}

fn said(line: &Recorded) -> String {
    let message = line.message.as_ref().map(bowline::Json::as_str);
    let text = message.or(line.text.as_deref()).unwrap_or_default();
    let end = text.char_indices().nth(400).map_or(text.len(), |(at, _)| at);
    one_line(&text[..end])
}

/// What became of a row, on the right.
fn outcome(view: &View, row: &Row) -> String {
    let mut words = Vec::new();
    if view.is_grouped {
        for (count, name) in [(row.rounds, "rounds"), (row.polls, "polls")] {
            if count > 0 {
                words.push(format!("+{count} {name}"));
            }
        }
    }
    match (&row.answer, view.waits(row)) {
        (Some(answer), _) => {
            let mark = if answer.is_error { "error " } else { "" };
            words.push(format!("{mark}{}", time(answer.took)));
        }
        (None, Some(waits)) => words.push(format!("waits {}", time(waits))),
        (None, None) if row.is_pending() => words.push("unanswered".to_owned()),
        (None, None) => {}
    }
    words.join(" ")
}

/// p50, p95 and p99 by method.
fn methods(view: &View, area: Rect) -> Vec<Line<'static>> {
    let room = usize::from(area.width).saturating_sub(47).clamp(10, 40);
    let head = ["CALLS", "ERRORS", "P50", "P95", "P99"].map(str::to_owned);
    let row = |method: &str, cells: &[String; 5]| {
        let method = one_line(method);
        let [calls, errors, half, most, all] = cells;
        let method = cut(&method, room);
        format!("{method:<room$} {calls:>7} {errors:>7} {half:>9} {most:>9} {all:>9}")
    };
    let mut lines = vec![Line::styled(row("METHOD", &head), dim())];
    for (method, times) in view.model.times().iter() {
        let [half, most, all] = times.percentiles().map(time);
        let cells = [times.count.to_string(), times.errors.to_string(), half, most, all];
        lines.push(Line::raw(row(method, &cells)));
    }
    lines
}

fn taps(view: &View) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(
        format!("{:<10} {:<8} {:<20} SERVER", "STATE", "PROCESS", "NAME"),
        dim(),
    )];
    for session in view.model.sessions() {
        let tap = session.opening.tap.clone().unwrap_or_default();
        let state = if session.ended.is_some() { "ended" } else { "running" };
        let client = tap.client.as_ref().map(|it| format!(" (started by {})", one_line(it)));
        let name = one_line(&session.name());
        let text = format!(
            "{state:<10} {:<8} {:<20} {}{}",
            tap.pid,
            cut(&name, 20),
            one_line(&session.opening.server()),
            client.unwrap_or_default()
        );
        lines.push(Line::raw(text));
    }
    lines
}

/// The selected row in full.
fn detail_text(view: &View) -> Text<'static> {
    let Some(row) = view.selected.and_then(|number| view.model.row(number)) else {
        return Text::default();
    };
    let mut text = full(&row.line);
    if let Some(answer) = &row.answer {
        text += &format!("\n{}\n{}", time(answer.took), full(&answer.line));
    }
    Text::raw(text)
}

fn full(line: &Recorded) -> String {
    /// More than any screen shows.
    const MOST: usize = 100_000;
    if let Some(http) = &line.http {
        let headers =
            http.headers.iter().map(|(name, value)| one_line(&format!("{name}: {value}")));
        let first = one_line(&format!("{} {}", http.method, http.url));
        return std::iter::once(first).chain(headers).collect::<Vec<_>>().join("\n");
    }
    match (&line.message, &line.text) {
        (Some(message), _) if message.as_str().len() <= MOST => {
            indented(message.as_str(), Paint(false), 0)
        }
        (Some(message), _) => format!("{} bytes of JSON", message.as_str().len()),
        (None, text) => plain(text.as_deref().unwrap_or_default()).into_owned(),
    }
}

fn bottom(view: &View, area: Rect) -> Line<'static> {
    let columns = usize::from(area.width);
    if !view.notice.is_empty() {
        return Line::styled(cut(&one_line(&view.notice), columns).into_owned(), bold());
    }
    match &view.typing {
        Some(typing) => {
            let name = if typing.is_search { "search" } else { "filter" };
            let hint = if typing.text.is_empty() && !typing.is_search {
                "  method:… tool:… id:… server:… dir:sent is:error is:slow is:pending slow:500ms text"
            } else {
                ""
            };
            let text = format!("{name}: {}▏{hint}", one_line(&typing.text));
            Line::raw(cut(&text, columns).into_owned())
        }
        None => {
            let follows = if view.follows { "following  " } else { "" };
            Line::styled(cut(&format!("{follows}{KEYS}"), columns).into_owned(), dim())
        }
    }
}
