//! Media types: what a body is, and what a client accepts as an answer.

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderMap, Method};

use super::fields::{Field, Fields};
use super::status::Refusal;
use super::{EVENT_STREAM, JSON};

/// The type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Media {
    /// One message, or a batch.
    Json,
    /// A stream of messages.
    EventStream,
}

impl Media {
    /// Reads `Content-Type`, ignoring parameters. `None` if it is absent, repeated, or not a type
    /// for messages.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::read(Field::of(headers.get_all(CONTENT_TYPE)))
    }

    fn read(field: Field<'_>) -> Option<Self> {
        let Field::Once(value) = field else { return None };
        if value.as_bytes() == JSON.as_bytes() {
            return Some(Self::Json);
        }
        let essence = value.to_str().ok()?.split(';').next()?.trim();
        [Self::Json, Self::EventStream]
            .into_iter()
            .find(|media| essence.eq_ignore_ascii_case(media.as_str()))
    }

    /// Its name, without parameters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::EventStream => EVENT_STREAM,
        }
    }
}

/// Checks that the body of a POST is declared as JSON.
///
/// More than a formality: a page of another site can send `text/plain` to any server without a
/// preflight, but not `application/json`.
///
/// # Errors
/// When it is not: 415.
pub fn check_content_type(fields: &Fields<'_>) -> Result<(), Refusal> {
    if Media::read(fields.content_type) == Some(Media::Json) {
        return Ok(());
    }
    let seen = fields.content_type.first();
    Err(Refusal::ContentType(
        seen.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
    ))
}

/// Checks that the client accepts the possible answers to a request of this method.
///
/// A POST may be answered with JSON or a stream, so its client must accept both, in every revision;
/// a GET only opens a stream. Without `Accept`, everything is accepted.
///
/// # Errors
/// When it does not: 406.
pub fn check_accept(method: &Method, fields: &Fields<'_>) -> Result<(), Refusal> {
    if is_usual(fields.accept) {
        return Ok(());
    }
    let needed: &[Media] = match *method {
        Method::POST => &[Media::Json, Media::EventStream],
        Method::GET => &[Media::EventStream],
        _ => &[],
    };
    match needed.iter().find(|media| !is_accepted(**media, fields.all)) {
        Some(media) => Err(Refusal::Accept(*media)),
        None => Ok(()),
    }
}

/// Whether it is the usual value that accepts both.
fn is_usual(accept: Field<'_>) -> bool {
    let usual: [&[u8]; 2] =
        [b"application/json, text/event-stream", b"text/event-stream, application/json"];
    matches!(accept, Field::Once(value) if usual.contains(&value.as_bytes()))
}

/// White space around the parts of a header. Any other belongs to them.
const BLANKS: [char; 2] = [' ', '\t'];

/// The most specific matching range decides, as in RFC 9110: `*/*, text/event-stream;q=0` does not
/// accept streams.
fn is_accepted(media: Media, headers: &HeaderMap) -> bool {
    let mut is_empty = true;
    let mut best: Option<(u8, bool)> = None;
    for value in headers.get_all(ACCEPT) {
        for range in String::from_utf8_lossy(value.as_bytes()).split(',') {
            let range = range.trim_matches(BLANKS);
            if range.is_empty() {
                continue;
            }
            is_empty = false;
            let mut parts = range.split(';').map(|part| part.trim_matches(BLANKS));
            let fit = parts.next().and_then(|name| fit(name, media.as_str()));
            let welcome = !parts.any(is_zero_quality);
            best = best.max(fit.map(|fit| (fit, welcome)));
        }
    }
    is_empty || best.is_some_and(|(_, welcome)| welcome)
}

/// How specific a matching range is: `*/*`, `type/*`, or the full name.
fn fit(range: &str, essence: &str) -> Option<u8> {
    if range.eq_ignore_ascii_case(essence) {
        return Some(2);
    }
    let (kind, _) = essence.split_once('/')?;
    match range.split_once('/')? {
        ("*", "*") => Some(0),
        (range, "*") if range.eq_ignore_ascii_case(kind) => Some(1),
        _ => None,
    }
}

fn is_zero_quality(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, value)| {
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|q| q == 0.0)
    })
}

#[cfg(test)]
mod tests {
    use ::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn content_types() {
        fn check(values: &[&str], accepted: bool) {
            let outcome = check_content_type(&Fields::read(&headers(&CONTENT_TYPE, values)));
            assert_eq!(outcome.is_ok(), accepted, "{values:?}");
        }
        check(&["application/json"], true);
        check(&["application/json; charset=utf-8"], true);
        check(&["Application/JSON;charset=UTF-8"], true);
        check(&["application/json ;x"], true);
        check(&[], false);
        check(&[""], false);
        check(&["text/plain"], false);
        check(&["text/plain; application/json"], false);
        check(&["application/json-patch+json"], false);
        check(&["application/jsonp"], false);
        check(&["application/json, text/plain"], false);
        check(&["application/json", "text/plain"], false);
        check(&["application/json", "application/json"], false);
        check(&["text/event-stream"], false);
        check(&["application/x-www-form-urlencoded"], false);
        check(&["\u{fffd}"], false);
    }

    #[test]
    fn what_a_client_takes() {
        fn check(values: &[&str], post: bool, get: bool) {
            let headers = headers(&ACCEPT, values);
            let headers = Fields::read(&headers);
            assert_eq!(check_accept(&Method::POST, &headers).is_ok(), post, "POST {values:?}");
            assert_eq!(check_accept(&Method::GET, &headers).is_ok(), get, "GET {values:?}");
            assert!(check_accept(&Method::DELETE, &headers).is_ok());
        }
        check(&["application/json, text/event-stream"], true, true);
        check(&["application/json", "text/event-stream"], true, true);
        check(&["TEXT/Event-Stream,Application/Json"], true, true);
        check(&[], true, true);
        check(&[""], true, true);
        check(&["*/*"], true, true);
        check(&["application/*, text/*"], true, true);
        check(&["application/json;q=0.5, text/*;q=0.1"], true, true);
        check(&["application/json;v=1, text/event-stream;v=2"], true, true);
        check(&["application/json"], false, false);
        check(&["text/event-stream"], false, true);
        check(&["text/html"], false, false);
        check(&["application/*"], false, false);
        check(&["application/json, text/event-stream;q=0"], false, false);
        check(&["*/*, text/event-stream;q=0"], false, false);
        check(&["text/event-stream; Q = 0.000, */*"], false, false);
        check(&["*/*;q=0, application/json, text/event-stream"], true, true);
        check(&["*/*;q=0"], false, false);
        check(&["text/*;q=0, */*"], false, false);
        check(&["application/json-seq, text/event-streams"], false, false);
        check(&["*"], false, false);
    }

    #[test]
    fn blanks_beyond_ascii_are_not_an_empty_accept() {
        for odd in ["\u{a0}", "\u{3000}, \u{a0}"] {
            assert!(
                check_accept(&Method::GET, &Fields::read(&headers(&ACCEPT, &[odd]))).is_err(),
                "{odd:?}"
            );
        }
        assert!(check_accept(&Method::GET, &Fields::read(&headers(&ACCEPT, &[" ,\t"]))).is_ok());
    }

    #[test]
    fn what_an_answer_holds() {
        fn check(value: &str, media: Option<Media>) {
            assert_eq!(Media::of(&headers(&CONTENT_TYPE, &[value])), media);
        }
        check("text/event-stream;charset=utf-8", Some(Media::EventStream));
        check("application/json", Some(Media::Json));
        check("text/html", None);
    }
}
