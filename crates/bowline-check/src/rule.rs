//! What a rule is, and the table of all of them. A new check is a function in the file of its group
//! and an entry in the `RULES` there; the rest follows from the table.

use std::fmt;
use std::pin::Pin;

use bowline::Revision;

use crate::probe::{Outcome, Probe};
use crate::rules;

/// How bad it is to break a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The specification demands it.
    Must,
    /// The specification recommends it, or JSON-RPC and the official conformance suite expect it.
    Should,
    /// Some well-known client or model provider fails without it.
    Portability,
    /// Good to know.
    Info,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 4] = [Self::Must, Self::Should, Self::Portability, Self::Info];

    /// The word for it in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Portability => "portability",
            Self::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What counts against a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// What every client needs: musts about messages that clients send, and about who is let in.
    Default,
    /// All other musts, recommendations and portability as well.
    Strict,
}

impl Profile {
    /// The word for it in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Strict => "strict",
        }
    }
}

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A program's standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

impl Transport {
    const ALL: &'static [Self] = &[Self::Stdio, Self::Http, Self::Sse];

    /// The word for it in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// Whose connections a check uses. It matters for programs, which may be slow to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// The one that checks of a revision share: they leave it as good as it was.
    Shared,
    /// Only those of the checks with the same word.
    Apart(&'static str),
    /// Its own, before any revision is agreed on: it sends and finds the same in every revision.
    Once,
}

/// What runs for a rule.
pub(crate) type Run = for<'a> fn(&'a mut Probe) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// One rule that servers are checked for.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Stable: `group.name`.
    pub id: &'static str,
    /// How bad it is to break it.
    pub severity: Severity,
    /// What is true of a server that keeps it.
    pub says: &'static str,
    /// What to do when it is not.
    pub remedy: &'static str,
    /// The page of the specification, in the legacy and in the modern era.
    pub(crate) pages: [&'static str; 2],
    pub(crate) first: Revision,
    pub(crate) last: Revision,
    pub(crate) transports: &'static [Transport],
    pub(crate) isolation: Isolation,
    /// Whether it is a must that no client depends on.
    pub(crate) is_extra: bool,
    pub(crate) run: Run,
}

impl Rule {
    /// What all rules of a group have in common: the page of the specification.
    pub(crate) const fn group(page: &'static str) -> Self {
        Self::eras(page, page)
    }

    /// The same, with a page for the legacy era and one for the modern era.
    pub(crate) const fn eras(legacy: &'static str, modern: &'static str) -> Self {
        Self {
            id: "",
            severity: Severity::Must,
            says: "",
            remedy: "",
            pages: [legacy, modern],
            first: Revision::ALL[0],
            last: Revision::LATEST,
            transports: Transport::ALL,
            isolation: Isolation::Shared,
            is_extra: false,
            run: |_| Box::pin(std::future::ready(Ok(None))),
        }
    }

    pub(crate) const fn page(self, page: &'static str) -> Self {
        self.pages(page, page)
    }

    pub(crate) const fn pages(self, legacy: &'static str, modern: &'static str) -> Self {
        Self { pages: [legacy, modern], ..self }
    }

    pub(crate) const fn since(self, first: Revision) -> Self {
        Self { first, ..self }
    }

    pub(crate) const fn only(self, revision: Revision) -> Self {
        Self { first: revision, last: revision, ..self }
    }

    pub(crate) const fn legacy(self) -> Self {
        Self { last: Revision::LATEST_LEGACY, ..self }
    }

    pub(crate) const fn modern(self) -> Self {
        self.only(Revision::LATEST)
    }

    pub(crate) const fn on(self, transports: &'static [Transport]) -> Self {
        Self { transports, ..self }
    }

    /// Apart from all checks but those with the same word.
    pub(crate) const fn apart(self, word: &'static str) -> Self {
        Self { isolation: Isolation::Apart(word), ..self }
    }

    /// Once for all revisions.
    pub(crate) const fn once(self) -> Self {
        Self { isolation: Isolation::Once, ..self }
    }

    /// Not in the default profile: no client depends on it.
    pub(crate) const fn extra(self) -> Self {
        Self { is_extra: true, ..self }
    }

    /// The first profile in which it counts, if it counts at all.
    pub fn profile(&self) -> Option<Profile> {
        match self.severity {
            Severity::Must if !self.is_extra => Some(Profile::Default),
            Severity::Info => None,
            _ => Some(Profile::Strict),
        }
    }

    /// Whether breaking it counts against a server.
    pub fn counts_in(&self, profile: Profile) -> bool {
        self.profile().is_some_and(|own| own <= profile)
    }

    /// Whether it applies to this revision on this transport.
    pub(crate) fn applies(&self, revision: Revision, transport: Transport) -> bool {
        (self.first..=self.last).contains(&revision) && self.transports.contains(&transport)
    }

    /// The page of the specification that it follows from, as a URL.
    pub fn link(&self, revision: Revision) -> String {
        let page = self.pages[usize::from(revision.is_modern())];
        // Extensions have pages of their own.
        if page.starts_with("https://") {
            return page.to_owned();
        }
        format!("https://modelcontextprotocol.io/specification/{revision}/{page}")
    }

    /// The same in the newest revision that it applies to.
    pub fn main_link(&self) -> String {
        self.link(self.last)
    }

    /// The part of the id before the dot.
    pub fn group_name(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(group, _)| group)
    }

    /// The revisions that it applies to, for people.
    pub fn revisions(&self) -> String {
        let is_first = self.first == Revision::ALL[0];
        match (self.first, self.last) {
            (_, Revision::LATEST) if is_first => "all".to_owned(),
            (_, Revision::LATEST_LEGACY) if is_first => "legacy".to_owned(),
            (first, last) if first == last => first.to_string(),
            (first, Revision::LATEST) => format!("{first} on"),
            (first, last) => format!("{first} to {last}"),
        }
    }

    /// The transports that it applies to, for people.
    pub fn transports(&self) -> String {
        if self.transports.len() == Transport::ALL.len() {
            return "all".to_owned();
        }
        self.transports.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Whether this is its id or its group.
    pub fn is_named(&self, word: &str) -> bool {
        self.id == word || self.group_name() == word
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.id).finish()
    }
}

/// A table of rules that share a base. Each entry is a severity, an id, options of [`Rule`] in
/// brackets, what runs, what is true of a server that passes, and what to do otherwise.
macro_rules! table {
    (|$probe:ident| $base:expr; $(
        $severity:ident $id:literal $([$($option:tt)*])? => $run:expr,
        $says:literal,
        $remedy:literal;
    )*) => {
        pub(crate) const RULES: &[$crate::rule::Rule] = &[$(
            $crate::rule::Rule {
                id: $id,
                severity: $crate::rule::Severity::$severity,
                says: $says,
                remedy: $remedy,
                run: |$probe| Box::pin($run),
                ..$base $($($option)*)?
            },
        )*];
    };
}
pub(crate) use table;

/// All rules, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    acting().chain(watching())
}

/// What to do when a rule is broken.
pub(crate) fn remedy(id: &str) -> &'static str {
    all().find(|rule| rule.id == id).map_or("", |rule| rule.remedy)
}

/// Those whose checks send something.
pub(crate) fn acting() -> impl Iterator<Item = &'static Rule> {
    rules::ACTING.iter().copied().flatten()
}

/// Those whose checks look at what came while the others ran.
pub(crate) fn watching() -> impl Iterator<Item = &'static Rule> {
    rules::watch::RULES.iter()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_rule_has_one_id_a_page_and_a_remedy() {
        let mut ids = BTreeSet::new();
        for rule in all() {
            assert!(ids.insert(rule.id), "{} twice", rule.id);
            assert!(rule.id.contains('.'), "{}", rule.id);
            assert!(!rule.remedy.is_empty(), "{} has no remedy", rule.id);
            let pages = Revision::ALL.iter().filter(|it| (rule.first..=rule.last).contains(it));
            for revision in pages {
                let link = rule.link(*revision);
                assert!(!link.ends_with('/'), "{} has no page for {revision}", rule.id);
            }
        }
    }
}
