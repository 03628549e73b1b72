//! One page that needs nothing else: no script, no style, no image from elsewhere. Everything that
//! a peer said is escaped, and the page forbids itself to load or run anything.

use bowline_proto::json::Json;

use crate::recording::Recording;
use crate::session_file::{Line, Way};
use crate::view::{Row, What, percentile};

const STYLE: &str = "body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222;background:#fff}\
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}\
td.n,th.n{text-align:right}details{border-bottom:1px solid #eee;padding:.2em 0}summary{cursor:pointer;\
font-family:ui-monospace,monospace;white-space:pre-wrap}pre{white-space:pre-wrap;overflow-wrap:anywhere;\
background:#f6f6f6;padding:.6em;margin:.3em 0}.error{color:#b00020}.dim{color:#777}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}\
td,th,details{border-color:#333}.error{color:#ff6b81}}";

/// The recording as a page.
#[must_use]
pub fn html(recording: &Recording) -> String {
    let model = recording.model();
    let title = escape(&recording.opening.server());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n\
         <p class=\"dim\">{}, {}</p>\n",
        escape(&recording.opening.started),
        escape(&recording.opening.program)
    );
    page += "<table><tr><th>method<th class=\"n\">calls<th class=\"n\">errors<th class=\"n\">p50<th class=\"n\">p95<th class=\"n\">p99</tr>\n";
    for (method, times) in model.times().iter() {
        let [half, most, all] = times.percentiles().map(millis);
        page += &format!(
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{half}<td class=\"n\">{most}<td class=\"n\">{all}</tr>\n",
            escape(method),
            times.count,
            times.errors
        );
    }
    page += "</table>\n";
    for (_, row) in model.rows() {
        page += &details(row);
    }
    let waits: Vec<f64> =
        model.rows().filter_map(|(_, row)| Some(row.answer.as_ref()?.took)).collect();
    let mut sorted = waits;
    sorted.sort_by(f64::total_cmp);
    page += &format!(
        "<p class=\"dim\">{} answers, median {}</p>\n</body></html>\n",
        sorted.len(),
        millis(percentile(&sorted, 0.5))
    );
    page
}

fn details(row: &Row) -> String {
    let arrow = match row.line.direction {
        Some(Way::Sent) => "→",
        Some(Way::Received) => "←",
        None => "·",
    };
    let what = match &row.what {
        What::Request { method, subject, id } => {
            format!("{method} {} #{id}", subject.as_deref().unwrap_or_default())
        }
        What::Notification { method } => method.clone(),
        _ => beginning(&row.line),
    };
    let took = row.answer.as_ref().map(|answer| millis(answer.took)).unwrap_or_default();
    let class = if row.is_error() { " class=\"error\"" } else { "" };
    let mut text = format!(
        "<details><summary{class}>{:>10.3} {arrow} {} <span class=\"dim\">{took}</span></summary><pre>{}</pre>",
        row.line.at,
        escape(&what),
        escape(&whole(&row.line))
    );
    if let Some(answer) = &row.answer {
        text += &format!("<pre>{}</pre>", escape(&whole(&answer.line)));
    }
    text += "</details>\n";
    text
}

/// What a line says, in one line.
fn beginning(line: &Line) -> String {
    let text = match &line.http {
        Some(http) => match http.status {
            Some(status) => format!("HTTP {status} (#{})", http.exchange),
            None => format!("{} {}", http.method, http.url),
        },
        None => {
            let message = line.message.as_ref().map(Json::as_str);
            message.or(line.text.as_deref()).unwrap_or_default().to_owned()
        }
    };
    text.chars().take(200).collect()
}

fn whole(line: &Line) -> String {
    if let Some(http) = &line.http {
        let headers = http.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        return headers.collect();
    }
    match &line.message {
        Some(message) => {
            let value = message.to_value();
            serde_json::to_string_pretty(&value).unwrap_or_default()
        }
        None => line.text.clone().unwrap_or_default(),
    }
}

fn millis(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1000.0)
}

/// Text as text: nothing in it is markup, and what nobody sees is shown.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(letter),
            // What turns text around, or hides it.
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
                safe.extend(letter.escape_unicode());
            }
            _ if letter.is_control() => safe.extend(letter.escape_unicode()),
            _ => safe.push(letter),
        }
    }
    safe
}
