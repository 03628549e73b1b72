//! What a check is, and the table of all of them. A new check is a function in the file of its
//! group and an entry in the `CHECKS` there; the rest follows from the table.

use std::fmt;
use std::pin::Pin;

use bowline::Revision;

use super::group;
use super::probe::{Outcome, Probe};

/// How bad it is when a check does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// The specification demands it.
    Must,
    /// The specification recommends it, or JSON-RPC and the official conformance suite expect it.
    Should,
    /// Some well-known client or model provider does not cope without.
    Portability,
    /// Good to know.
    Info,
}

impl Severity {
    pub(super) const ALL: [Self; 4] = [Self::Must, Self::Should, Self::Portability, Self::Info];

    pub(super) const fn as_str(self) -> &'static str {
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

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

impl Transport {
    const ALL: &'static [Self] = &[Self::Stdio, Self::Http, Self::Sse];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// Whose connections a check uses. Only the start of a program costs enough to make a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// The one that checks of a revision share, if any: they leave it as good as it was.
    Shared,
    /// Those of all checks with this word, and no others.
    Own(&'static str),
    /// Its own, before any revision is agreed to: what is sent is the same in every revision, and
    /// so is what is found.
    Once,
}

/// What runs for a check.
pub(super) type Run = for<'a> fn(&'a mut Probe) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// One check.
#[derive(Clone, Copy)]
pub(super) struct Check {
    /// Stable: `group.name`.
    pub(super) id: &'static str,
    pub(super) severity: Severity,
    /// What is true of a server that passes.
    pub(super) says: &'static str,
    /// What to do when it is not.
    pub(super) remedy: &'static str,
    /// The page of the specification, in the legacy and in the modern era.
    pages: [&'static str; 2],
    first: Revision,
    last: Revision,
    transports: &'static [Transport],
    pub(super) ground: Ground,
    pub(super) run: Run,
}

impl Check {
    const fn new(severity: Severity, id: &'static str, says: &'static str, run: Run) -> Self {
        Self {
            id,
            severity,
            says,
            remedy: "",
            pages: [""; 2],
            first: Revision::V2024_11_05,
            last: Revision::LATEST,
            transports: Transport::ALL,
            ground: Ground::Shared,
            run,
        }
    }

    pub(super) const fn must(id: &'static str, says: &'static str, run: Run) -> Self {
        Self::new(Severity::Must, id, says, run)
    }

    pub(super) const fn should(id: &'static str, says: &'static str, run: Run) -> Self {
        Self::new(Severity::Should, id, says, run)
    }

    pub(super) const fn portability(id: &'static str, says: &'static str, run: Run) -> Self {
        Self::new(Severity::Portability, id, says, run)
    }

    pub(super) const fn info(id: &'static str, says: &'static str, run: Run) -> Self {
        Self::new(Severity::Info, id, says, run)
    }

    /// What to do when it does not pass.
    pub(super) const fn fix(mut self, remedy: &'static str) -> Self {
        self.remedy = remedy;
        self
    }

    /// The page of the specification, the same in both eras.
    pub(super) const fn page(self, page: &'static str) -> Self {
        self.pages(page, page)
    }

    /// The page in the legacy era and in the modern one.
    pub(super) const fn pages(mut self, legacy: &'static str, modern: &'static str) -> Self {
        self.pages = [legacy, modern];
        self
    }

    pub(super) const fn since(mut self, first: Revision) -> Self {
        self.first = first;
        self
    }

    pub(super) const fn only(mut self, revision: Revision) -> Self {
        self.first = revision;
        self.last = revision;
        self
    }

    pub(super) const fn legacy(mut self) -> Self {
        self.last = Revision::LATEST_LEGACY;
        self
    }

    pub(super) const fn modern(mut self) -> Self {
        self.first = Revision::V2026_07_28;
        self
    }

    pub(super) const fn stdio(mut self) -> Self {
        self.transports = &[Transport::Stdio];
        self
    }

    pub(super) const fn http(mut self) -> Self {
        self.transports = &[Transport::Http];
        self
    }

    pub(super) const fn sse(mut self) -> Self {
        self.transports = &[Transport::Sse];
        self
    }

    /// Where all messages come on one stream.
    pub(super) const fn streams(mut self) -> Self {
        self.transports = &[Transport::Stdio, Transport::Sse];
        self
    }

    /// Over HTTP, whichever way.
    pub(super) const fn web(mut self) -> Self {
        self.transports = &[Transport::Http, Transport::Sse];
        self
    }

    /// Apart from all but those of the same word.
    pub(super) const fn apart(mut self, word: &'static str) -> Self {
        self.ground = Ground::Own(word);
        self
    }

    /// Once for all revisions.
    pub(super) const fn once(mut self) -> Self {
        self.ground = Ground::Once;
        self
    }

    /// Whether it means anything for this revision on this transport.
    pub(super) fn applies(&self, revision: Revision, transport: Transport) -> bool {
        (self.first..=self.last).contains(&revision) && self.transports.contains(&transport)
    }

    /// The page of the specification that it follows from.
    pub(super) fn page_of(&self, revision: Revision) -> &'static str {
        self.pages[usize::from(revision.is_modern())]
    }

    /// The page as documents name it: that of the newest revision it applies to.
    pub(super) fn main_page(&self) -> &'static str {
        self.page_of(self.last)
    }

    /// The part of the id before the dot.
    pub(super) fn group(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(group, _)| group)
    }

    /// The revisions as people write them.
    pub(super) fn revisions(&self) -> String {
        match (self.first, self.last) {
            (Revision::V2024_11_05, Revision::V2026_07_28) => "all".to_owned(),
            (Revision::V2024_11_05, Revision::V2025_11_25) => "legacy".to_owned(),
            (first, last) if first == last => first.to_string(),
            (first, Revision::V2026_07_28) => format!("{first} on"),
            (first, last) => format!("{first} to {last}"),
        }
    }

    /// The transports as people write them.
    pub(super) fn transports(&self) -> String {
        match self.transports.len() == Transport::ALL.len() {
            true => "all".to_owned(),
            false => self.transports.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", "),
        }
    }

    /// Whether a word of `--only` or `--skip` means it: its id or its group.
    pub(super) fn is_named(&self, word: &str) -> bool {
        self.id == word || self.group() == word
    }
}

/// All checks, in the order of the report.
pub(super) fn all() -> impl Iterator<Item = &'static Check> {
    acting().chain(group::WATCHING)
}

/// Those that send something.
pub(super) fn acting() -> impl Iterator<Item = &'static Check> {
    group::ACTING.iter().copied().flatten()
}

/// Those that look at what came while the others ran.
pub(super) fn watching() -> impl Iterator<Item = &'static Check> {
    group::WATCHING.iter()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_check_has_one_id_a_page_and_a_remedy() {
        let mut ids = BTreeSet::new();
        for check in all() {
            assert!(ids.insert(check.id), "{} twice", check.id);
            assert!(check.id.contains('.'), "{}", check.id);
            assert!(!check.remedy.is_empty(), "{} has no remedy", check.id);
            let pages = Revision::ALL.iter().filter(|it| (check.first..=check.last).contains(it));
            for revision in pages {
                let page = check.page_of(*revision);
                assert!(!page.is_empty(), "{} has no page for {revision}", check.id);
            }
        }
    }
}
