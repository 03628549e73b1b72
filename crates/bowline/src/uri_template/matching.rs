//! Matches a URI against a template, in time proportional to the product of their lengths.
//!
//! The template becomes a sequence of steps. From the last step to the first, each computes the set
//! of positions at which it can start so that it and all later steps succeed. Then one pass from
//! the front picks, for each step, the first end that lies in the set of the next one, so there is
//! no backtracking.

use std::borrow::Cow;

use super::expand::{is_reserved, is_triplet, is_unreserved, push_encoded};
use super::{Expression, Match, Operator, Part, Screening, Variable};

pub(super) fn matches<'t>(parts: &'t [Part], uri: &str, screening: Screening) -> Match<'t> {
    let uri = encoded(uri);
    let uri = uri.as_bytes();
    if !ends_agree(parts, uri) {
        return Match::Different;
    }
    let steps = steps(parts);
    let Some(found) = walk(&steps, uri) else {
        return Match::Different;
    };
    let mut values = Values { list: Vec::new(), screening, suspect: None };
    for (taker, raw) in found {
        if values.take(taker, raw).is_none() {
            return Match::Different;
        }
    }
    match values.suspect {
        Some(variable) => Match::Unsafe { variable },
        None => Match::Values(values.list),
    }
}

/// The URI with everything encoded that must be, so that both spellings of a text are equal.
fn encoded(uri: &str) -> Cow<'_, str> {
    // A stray `%` is kept: such a URI is invalid, and must remain so.
    let is_plain = |byte| byte == b'%' || is_unreserved(byte) || is_reserved(byte);
    if uri.bytes().all(is_plain) {
        return Cow::Borrowed(uri);
    }
    let mut text = String::with_capacity(uri.len() + 16);
    for byte in uri.bytes() {
        push_encoded(&mut text, byte, is_plain(byte));
    }
    Cow::Owned(text)
}

/// Quickly rules out most URIs of other templates.
fn ends_agree(parts: &[Part], uri: &[u8]) -> bool {
    let agrees = |part: Option<&Part>, agrees: fn(&[u8], &[u8]) -> bool| match part {
        Some(Part::Literal(text)) => agrees(uri, text.as_bytes()),
        Some(Part::Expression(_)) | None => true,
    };
    agrees(parts.first(), <[u8]>::starts_with) && agrees(parts.last(), <[u8]>::ends_with)
}

enum Step<'t> {
    Literal(&'t [u8]),
    Value(Value<'t>),
}

/// One run of characters, after an operator.
struct Value<'t> {
    taker: Taker<'t>,
    sign: Option<u8>,
    /// The characters that the run cannot contain.
    stops: &'static [u8],
    /// The next step if the value is absent, which it can only be with an operator.
    end: usize,
}

/// The variable that takes a run of characters.
#[derive(Clone, Copy)]
enum Taker<'t> {
    One(&'t Variable),
    List(&'t Variable, u8),
    Parameters(&'t Expression),
}

fn steps(parts: &[Part]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => steps.push(Step::Literal(text.as_bytes())),
            Part::Expression(expression) => append_steps(&mut steps, expression),
        }
    }
    steps
}

fn append_steps<'t>(steps: &mut Vec<Step<'t>>, expression: &'t Expression) {
    let operator = expression.operator;
    let separator = operator.separator();
    let mut sign = operator.first();
    if operator.is_named() {
        let stops: &[u8] = if separator == b'&' { b"#" } else { b"/?#" };
        let taker = Taker::Parameters(expression);
        let end = steps.len() + 1;
        steps.push(Step::Value(Value { taker, sign, stops, end }));
        return;
    }
    let end = steps.len() + expression.variables.len();
    for variable in &expression.variables {
        let taker =
            if variable.exploded { Taker::List(variable, separator) } else { Taker::One(variable) };
        let stops = stops(expression, variable.exploded);
        steps.push(Step::Value(Value { taker, sign, stops, end }));
        sign = Some(separator);
    }
}

/// The characters that a value cannot contain: the delimiters of its part of a URI, and its own
/// separator unless it is a list.
fn stops(expression: &Expression, is_list: bool) -> &'static [u8] {
    let is_alone = is_list || expression.variables.len() == 1;
    match expression.operator {
        Operator::Reserved | Operator::Fragment if is_alone => b"",
        Operator::Reserved | Operator::Fragment => b",",
        Operator::Label if is_list => b"/?#",
        Operator::Label => b"./?#",
        Operator::Path if is_list => b"?#",
        Operator::Simple if !is_alone && expression.behind_question => b"/?#&,",
        Operator::Simple if !is_alone => b"/?#,",
        _ if expression.behind_question => b"/?#&",
        _ => b"/?#",
    }
}

/// Assigns runs to variables; `None` if the URI does not match.
fn walk<'t, 'u>(steps: &[Step<'t>], uri: &'u [u8]) -> Option<Vec<(Taker<'t>, &'u [u8])>> {
    let starts = starts(steps, uri);
    if !starts[0].has(0) {
        return None;
    }
    let (mut at, mut index) = (0, 0);
    let mut found = Vec::new();
    while let Some(step) = steps.get(index) {
        index += 1;
        match step {
            Step::Literal(text) => at += text.len(),
            Step::Value(value) => match value.run(uri, at, &starts[index]) {
                Some((start, end)) => {
                    found.push((value.taker, &uri[start..end]));
                    at = end;
                }
                None => index = value.end,
            },
        }
    }
    Some(found)
}

/// For each step, and for the end, the positions at which it can start.
fn starts(steps: &[Step<'_>], uri: &[u8]) -> Vec<Places> {
    let mut starts: Vec<Places> = steps.iter().map(|_| Places::none()).collect();
    let mut end = Places::new(uri.len());
    end.insert(uri.len());
    starts.push(end);
    for (index, step) in steps.iter().enumerate().rev() {
        starts[index] = match step {
            Step::Literal(text) => literal_starts(text, uri, &starts[index + 1]),
            Step::Value(value) => value.starts(uri, &starts[index + 1], &starts[value.end]),
        };
    }
    starts
}

fn literal_starts(text: &[u8], uri: &[u8], next: &Places) -> Places {
    let mut places = Places::new(uri.len());
    for end in text.len()..=uri.len() {
        if next.has(end) && uri[..end].ends_with(text) {
            places.insert(end - text.len());
        }
    }
    places
}

impl Value<'_> {
    fn holds(&self, byte: u8) -> bool {
        !self.stops.contains(&byte)
    }

    fn starts(&self, uri: &[u8], next: &Places, skipped: &Places) -> Places {
        let mut places = Places::new(uri.len());
        // Whether a run that starts at the last position can reach an end.
        let mut behind = false;
        for at in (0..=uri.len()).rev() {
            let byte = uri.get(at).copied();
            let onward = behind && byte.is_some_and(|byte| self.holds(byte));
            let can_begin = match self.sign {
                None => onward,
                Some(sign) => byte == Some(sign) && behind || skipped.has(at),
            };
            if can_begin {
                places.insert(at);
            }
            behind = onward || next.has(at) && is_between(uri, at);
        }
        places
    }

    /// The shortest run after `at`.
    fn run(&self, uri: &[u8], at: usize, next: &Places) -> Option<(usize, usize)> {
        let start = match self.sign {
            None => at,
            Some(sign) if uri.get(at) == Some(&sign) => at + 1,
            Some(_) => return None,
        };
        let least = start + usize::from(self.sign.is_none());
        let longest = uri[start..].iter().take_while(|byte| self.holds(**byte)).count();
        let mut ends = least..=start + longest;
        let end = ends.find(|end| next.has(*end) && is_between(uri, *end))?;
        Some((start, end))
    }
}

/// Whether `at` is not inside an encoded byte.
fn is_between(uri: &[u8], at: usize) -> bool {
    let begins = |back: usize| at >= back && is_triplet(&uri[at - back..]);
    !begins(1) && !begins(2)
}

/// A set of positions in a URI, including its end.
struct Places(Vec<u64>);

impl Places {
    fn none() -> Self {
        Self(Vec::new())
    }

    fn new(length: usize) -> Self {
        Self(vec![0; length / 64 + 1])
    }

    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

struct Values<'t> {
    list: Vec<(&'t str, String)>,
    screening: Screening,
    /// The first variable with a value that may be an attack.
    suspect: Option<&'t str>,
}

impl<'t> Values<'t> {
    /// Adds a run; `None` if the URI does not match after all.
    fn take(&mut self, taker: Taker<'t>, raw: &[u8]) -> Option<()> {
        match taker {
            Taker::One(variable) => self.push(variable, raw),
            Taker::List(variable, separator) => raw
                .split(|byte| *byte == separator)
                .try_for_each(|value| self.push(variable, value)),
            Taker::Parameters(expression) => self.take_parameters(expression, raw),
        }
    }

    fn take_parameters(&mut self, expression: &'t Expression, raw: &[u8]) -> Option<()> {
        let variables = &expression.variables;
        let mut given = vec![Vec::new(); variables.len()];
        for parameter in raw.split(|byte| *byte == expression.operator.separator()) {
            let equals = memchr::memchr(b'=', parameter);
            let (name, value) = match equals {
                Some(at) => (&parameter[..at], &parameter[at + 1..]),
                None => (parameter, &[][..]),
            };
            let index = variables.iter().position(|known| known.name.as_bytes() == name)?;
            if !given[index].is_empty() && !variables[index].exploded {
                return None;
            }
            given[index].push(value);
        }
        let mut given = variables.iter().zip(given);
        given.try_for_each(|(variable, raws)| {
            raws.into_iter().try_for_each(|raw| self.push(variable, raw))
        })
    }

    fn push(&mut self, variable: &'t Variable, raw: &[u8]) -> Option<()> {
        let (value, slashes) = decode(raw)?;
        if variable.prefix.is_some_and(|most| value.chars().nth(most).is_some()) {
            return None;
        }
        let is_suspect = slashes == Slashes::Hidden || is_unsafe(&value);
        if is_suspect && self.screening == Screening::Refuse {
            self.suspect = self.suspect.or(Some(&variable.name));
        }
        self.list.push((&variable.name, value));
        Some(())
    }
}

/// Whether a value contains an encoded slash, which would bypass code that splits at slashes.
#[derive(PartialEq, Eq)]
enum Slashes {
    Plain,
    Hidden,
}

fn decode(raw: &[u8]) -> Option<(String, Slashes)> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut slashes = Slashes::Plain;
    let mut rest = raw;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let decoded = u8::try_from(digit(digits[0])? << 4 | digit(digits[1])?).ok()?;
        if decoded == b'/' {
            slashes = Slashes::Hidden;
        }
        bytes.push(decoded);
        rest = behind;
    }
    Some((String::from_utf8(bytes).ok()?, slashes))
}

fn is_unsafe(value: &str) -> bool {
    value.contains(['\0', '\\']) || value.split('/').any(|segment| segment == "..")
}
