//! The formats that questions of a server may have: `email`, `uri`, `date`, `date-time`.

use bowline_check::is_uri;

/// What a format wants, if a text is something else. Other formats take any text.
pub(super) fn problem(format: &str, text: &str) -> Option<&'static str> {
    let (is_good, wanted) = match format {
        "email" => (is_email(text), "an address such as ada@example.org"),
        "uri" => (is_uri(text), "a URI such as https://example.org/x"),
        "date" => (is_date(text), "a date such as 2026-07-28"),
        "date-time" => {
            (is_time(text), "a date, a time and its offset, such as 2026-07-28T12:30:00Z")
        }
        _ => return None,
    };
    (!is_good).then_some(wanted)
}

fn is_email(text: &str) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else { return false };
    let is_plain = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    let labels = host.split('.');
    is_plain(user) && is_plain(host) && !user.contains('@') && !labels.clone().any(str::is_empty)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_time(text: &str) -> bool {
    text.contains(['T', 't']) && text.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_takes_its_own() {
        for (format, good, bad) in [
            (
                "email",
                &["ada@example.org", "a.b+c@localhost", "ü@example.org"][..],
                &["ada", "@x.org", "ada@", "a b@x.org", "a@b@c.org", "a@x..org"][..],
            ),
            (
                "uri",
                &["https://example.org/x?y#z", "urn:a:b", "mailto:a@b.c"],
                &["example.org", "1a:b", "http://a b", "http://ü.org"],
            ),
            (
                "date",
                &["2026-07-28", "2024-02-29"],
                &["28.7.2026", "2026-02-29", "2026-7-28", "2026-07-28T00:00:00"],
            ),
            (
                "date-time",
                &["2026-07-28T12:30:00Z", "2026-07-28T12:30:00.5+02:00"],
                &["2026-07-28", "12:30", "2026-07-28T12:30:00", "2026-07-28T25:00:00Z"],
            ),
            ("phone", &["anything"], &[]),
        ] {
            for text in good {
                assert_eq!(problem(format, text), None, "{format} {text}");
            }
            for text in bad {
                assert!(problem(format, text).is_some(), "{format} {text}");
            }
        }
    }
}
