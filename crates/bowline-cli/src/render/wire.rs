//! A line of a session for people: when, in which direction, what.

use crate::record::{Line, LineKind, Way};
use crate::screen::{Paint, Style};
use crate::text::{json_line, line as one_line, plain};

/// One line of a session; below the head of an HTTP message, its headers.
pub(crate) fn render(line: &Line, paint: Paint) -> String {
    let dim = |text: &str| paint.paint(Style::Dim, text);
    let at = dim(&format!("{:>9}", time(line.at)));
    let took = line.took.map(|took| format!(" {}", dim(&time(took)))).unwrap_or_default();
    let connection = line.connection.map(|it| dim(&format!("#{it:<3} "))).unwrap_or_default();
    let (arrow, style) = match line.direction {
        Some(Way::Sent) => ("→", Style::Cyan),
        Some(Way::Received) => ("←", Style::Green),
        None => ("·", Style::Dim),
    };
    let arrow = paint.paint(style, arrow);
    let text = match (line.kind, &line.http, &line.message, &line.text) {
        (LineKind::Http, Some(head), _, _) => {
            let first = match head.status {
                Some(status) => format!("HTTP {status} ({} #{})", head.method, head.exchange),
                None => format!("{} {} (#{})", head.method, head.url, head.exchange),
            };
            let mut text = paint.paint(Style::Bold, &one_line(&first));
            for (name, value) in &head.headers {
                let header = one_line(&format!("{name}: {value}"));
                text += &format!("\n{:>12} {}", "", dim(&header));
            }
            text
        }
        (_, _, Some(message), _) => paint.paint(style, &json_line(message.as_str(), true)),
        (LineKind::Stderr, _, _, Some(text)) => format!("stderr │ {}", one_line(text)),
        (LineKind::Fault, _, _, Some(text)) => paint.paint(Style::Yellow, &plain(text)),
        (LineKind::End, _, _, None) => "end of session".to_owned(),
        (LineKind::End, _, _, Some(text)) => format!("end of session: {}", one_line(text)),
        (_, _, _, Some(text)) => paint.paint(Style::Red, &one_line(text)),
        _ => String::new(),
    };
    format!("{at} {connection}{arrow} {text}{took}\n")
}

/// A duration for people, in a suitable unit.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 120.0 => format!("{seconds:.2} s"),
        _ => format!("{:.1} min", seconds / 60.0),
    }
}
