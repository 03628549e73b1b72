//! A line of a session for people: which way, when, what.

use crate::record::{Kind, Line, Way};
use crate::screen::{Paint, Style};
use crate::text::{json_line, line as one_line, plain};

/// One line of a session; of an HTTP message, its headers below it.
pub(crate) fn render(line: &Line, paint: Paint) -> String {
    let at = paint.paint(Style::Dim, &format!("{:>9}", time(line.at)));
    let took = line.took.map(|took| format!(" {}", paint.paint(Style::Dim, &time(took))));
    let took = took.unwrap_or_default();
    let (arrow, style) = match line.direction {
        Some(Way::Sent) => ("→", Style::Cyan),
        Some(Way::Received) => ("←", Style::Green),
        None => ("·", Style::Dim),
    };
    let arrow = paint.paint(style, arrow);
    let connection = line.connection.map(|it| paint.paint(Style::Dim, &format!("#{it:<3} ")));
    let connection = connection.unwrap_or_default();
    let text = match (line.kind, &line.http, &line.message, &line.text) {
        (Kind::Http, Some(head), _, _) => {
            let first = match head.status {
                Some(status) => format!("HTTP {status} ({} #{})", head.method, head.exchange),
                None => format!("{} {} (#{})", head.method, head.url, head.exchange),
            };
            let mut text = paint.paint(Style::Bold, &one_line(&first));
            for (name, value) in &head.headers {
                let header = one_line(&format!("{name}: {value}"));
                text += &format!("\n{:>12} {}", "", paint.paint(Style::Dim, &header));
            }
            text
        }
        (_, _, Some(message), _) => paint.paint(style, &json_line(message.as_str(), true)),
        (Kind::Stderr, _, _, Some(text)) => format!("stderr │ {}", one_line(text)),
        (Kind::Fault, _, _, Some(text)) => paint.paint(Style::Yellow, &plain(text)),
        (Kind::End, _, _, None) => "the end".to_owned(),
        (Kind::End, _, _, Some(text)) => format!("the end: {}", one_line(text)),
        (_, _, _, Some(text)) => paint.paint(Style::Red, &one_line(text)),
        _ => String::new(),
    };
    format!("{at} {connection}{arrow} {text}{took}\n")
}

/// A time for people, in the unit that fits.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 120.0 => format!("{seconds:.2} s"),
        _ => format!("{:.1} min", seconds / 60.0),
    }
}
