//! URI templates (RFC 6570): many resources under one name, as in `memo://{user}/notes{/id}`.
//!
//! A server needs them in reverse: from a URI to the values of the variables. The RFC leaves that
//! open, so these are the rules:
//!
//! - Text outside braces must match exactly. Text that a URI must encode, such as `é`, may be
//!   encoded or not.
//! - `{x}` takes one character or more, but no `/`, `?` or `#`; after a `?` no `&` either. `{+x}`
//!   takes anything. `{/x}`, `{.x}` and `{#x}` take their sign and what follows it up to the next
//!   sign of the same kind, or are absent.
//! - `{?x,y}`, `{&x,y}` and `{;x,y}` take named parameters in any order. Each may be absent. One
//!   that the template does not name, or that is repeated, does not match.
//! - `{/x*}` takes as many as there are, and each is a value of its own: `x` appears once for each.
//! - `{x:3}` takes at most three characters.
//! - Where several readings are possible, each variable takes as little as it can, from left to
//!   right. So `{name}.{kind}` reads `a.tar.gz` as `a` and `tar.gz`.
//!
//! Matching costs at most the length of the URI times the length of the template. There is no
//! backtracking and no regular expression, so no URI is expensive.
//!
//! # Unsafe values
//!
//! A value often becomes a path or a key. [`UriTemplate::matches`] therefore returns no value
//! that has `..` as a segment, a NUL, a backslash, or an encoded slash (`%2F`): see
//! [`Match::Unsafe`]. A value of `{+x}` may still begin with `/`, and `Path::join` drops the folder
//! it joins such a value to.

use std::fmt;

mod expand;
mod matching;
mod parse;

#[cfg(feature = "skills")]
pub(crate) use self::expand::push_segment;

/// A parsed template.
///
/// ```
/// use bowline::uri_template::{Match, UriTemplate};
///
/// let template = UriTemplate::parse("memo://{user}/notes{/id}{?lang}")?;
/// let Match::Values(values) = template.matches("memo://jo%C3%A3o/notes/7?lang=pt") else {
///     panic!("it is one of them");
/// };
/// assert_eq!(values, [("user", "joão".into()), ("id", "7".into()), ("lang", "pt".into())]);
/// assert_eq!(template.expand(&values), "memo://jo%C3%A3o/notes/7?lang=pt");
///
/// let up = template.matches("memo://x/notes/%2e%2e");
/// assert_eq!(up, Match::Unsafe { variable: "id" });
/// # Ok::<(), bowline::uri_template::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    unsafe_values: Screening,
}

/// The result of matching a URI against a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match<'t> {
    /// It matches. The variables are decoded, in the order of the template; absent ones are left
    /// out, and one with `*` occurs once for each of its values.
    Values(Vec<(&'t str, String)>),
    /// It matches, but a value may be an attack.
    Unsafe {
        /// Which variable has the value.
        variable: &'t str,
    },
    /// It does not match.
    Different,
}

/// Why a template is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    at: usize,
    reason: String,
}

impl UriTemplate {
    /// The maximum length of a template, in bytes. Templates may come from a peer, and the cost of
    /// matching grows with their length.
    pub const MAX_LENGTH: usize = 4096;

    /// The maximum number of variables in a template.
    pub const MAX_VARIABLES: usize = 64;

    /// Parses a template.
    ///
    /// # Errors
    /// When it is malformed, too long or ambiguous: two variables with nothing between them, or a
    /// repeated variable.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let parts = parse::parse(text)?;
        Ok(Self { text: text.to_owned(), parts, unsafe_values: Screening::Refuse })
    }

    /// The same template, without the check behind [`Match::Unsafe`].
    ///
    /// Only for values that never become part of a path, or that the handler checks itself.
    #[must_use]
    pub fn allow_unsafe_values(mut self) -> Self {
        self.unsafe_values = Screening::Allow;
        self
    }

    /// Matches a URI and extracts the values of the variables.
    pub fn matches(&self, uri: &str) -> Match<'_> {
        matching::matches(&self.parts, uri, self.unsafe_values)
    }

    /// Expands the template with these values. A repeated name is a list; a variable without a
    /// value is left out, and a value without a variable is ignored.
    pub fn expand<N: AsRef<str>, V: AsRef<str>>(&self, values: &[(N, V)]) -> String {
        let values: Vec<_> = values.iter().map(|(n, v)| (n.as_ref(), v.as_ref())).collect();
        expand::expand(&self.parts, &values)
    }

    /// The names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(Part::variables).map(|variable| variable.name.as_str())
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl TemplateError {
    /// The byte at which the problem was found.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of the template: {}", self.at, self.reason)
    }
}

impl std::error::Error for TemplateError {}

/// Whether values that may be an attack are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Screening {
    Refuse,
    Allow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Literal text, encoded as in a URI.
    Literal(String),
    Expression(Expression),
}

impl Part {
    fn variables(&self) -> &[Variable] {
        match self {
            Self::Literal(_) => &[],
            Self::Expression(expression) => &expression.variables,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Expression {
    operator: Operator,
    variables: Vec<Variable>,
    /// Whether there is a `?` before it in the text of the template.
    behind_question: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    /// The maximum number of characters.
    prefix: Option<usize>,
    /// Whether it is a list with an operator before each value.
    exploded: bool,
}

/// The operator after the brace, with its rules from RFC 6570, appendix A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    PathParameter,
    Query,
    QueryMore,
}

impl Operator {
    /// The text before the first value.
    fn first(self) -> Option<u8> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Fragment => Some(b'#'),
            Self::Label => Some(b'.'),
            Self::Path => Some(b'/'),
            Self::PathParameter => Some(b';'),
            Self::Query => Some(b'?'),
            Self::QueryMore => Some(b'&'),
        }
    }

    /// The text before each further value.
    fn separator(self) -> u8 {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => b',',
            Self::Label => b'.',
            Self::Path => b'/',
            Self::PathParameter => b';',
            Self::Query | Self::QueryMore => b'&',
        }
    }

    /// Whether values are written as `name=value`.
    fn is_named(self) -> bool {
        matches!(self, Self::PathParameter | Self::Query | Self::QueryMore)
    }

    /// Whether reserved characters are not encoded.
    fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

#[cfg(test)]
mod tests;
