//! Media types: what a body is, and what a client takes for an answer.

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderMap, Method};

use super::fields::{Field, Fields};
use super::status::Refusal;
use super::{EVENT_STREAM, JSON};

/// What a body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Media {
    /// One message, or a batch.
    Json,
    /// A stream of messages.
    EventStream,
}

impl Media {
    /// Reads `Content-Type`, whatever its parameters. `None` when it is absent, given twice, or
    /// something that no message travels in.
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

/// Whether the body of a POST says that it is JSON.
///
/// More than a formality: a page of a foreign site can send `text/plain` to any server without
/// asking, but not `application/json`.
///
/// # Errors
/// When it does not: 415.
pub fn check_content_type(fields: &Fields<'_>) -> Result<(), Refusal> {
    if Media::read(fields.content_type) == Some(Media::Json) {
        return Ok(());
    }
    let seen = fields.content_type.first();
    Err(Refusal::ContentType(
        seen.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
    ))
}

/// Whether the client takes what a request of this method may be answered with.
///
/// A POST may be answered with JSON or a stream, so its client must take both, in every revision; a
/// GET only opens a stream. No `Accept` at all means that everything is welcome.
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

/// Whether it is what clients write who take both.
fn is_usual(accept: Field<'_>) -> bool {
    let usual: [&[u8]; 2] =
        [b"application/json, text/event-stream", b"text/event-stream, application/json"];
    matches!(accept, Field::Once(value) if usual.contains(&value.as_bytes()))
}

/// What may stand around the parts of a header. Other white space belongs to them.
const BLANKS: [char; 2] = [' ', '\t'];

/// The most specific range that fits decides, as RFC 9110 has it: `*/*, text/event-stream;q=0`
/// takes no streams.
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

/// How closely a range names a type: not at all, by `*/*`, by `type/*`, by name.
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
