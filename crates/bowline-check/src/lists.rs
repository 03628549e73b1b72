//! Lists of a server, over all their pages.

use serde_json::{Value, json};

use crate::probe::{NotPassed, Probe, broken};

/// Lists longer than this count as endless.
const MOST_PAGES: usize = 200;

/// A method that lists something.
pub(crate) struct List {
    pub(crate) method: &'static str,
    pub(crate) member: &'static str,
    pub(crate) capability: &'static str,
}

impl List {
    const fn new(method: &'static str, member: &'static str, capability: &'static str) -> Self {
        Self { method, member, capability }
    }
}

pub(crate) const TOOLS: &List = &List::new("tools/list", "tools", "tools");
pub(crate) const RESOURCES: &List = &List::new("resources/list", "resources", "resources");
pub(crate) const TEMPLATES: &List =
    &List::new("resources/templates/list", "resourceTemplates", "resources");
pub(crate) const PROMPTS: &List = &List::new("prompts/list", "prompts", "prompts");
pub(crate) const SKILLS: &List = &List::new("skills/list", "skills", "resources");
pub(crate) const TASKS: &List = &List::new("tasks/list", "tasks", "tasks");

impl Probe {
    /// Those of the lists that the server declares, but for those that failed already.
    pub(crate) async fn declared(
        &mut self,
        lists: &[&'static List],
    ) -> Result<Vec<&'static List>, NotPassed> {
        let capabilities = self.capabilities().await?;
        let is_declared = |list: &&List| {
            let has_failed = matches!(self.lists.get(list.method), Some(Err(_)));
            capabilities.get(list.capability).is_some() && !has_failed
        };
        Ok(lists.iter().copied().filter(is_declared).collect())
    }

    /// All entries of a list, over all its pages; requested once.
    pub(crate) async fn list(&mut self, list: &'static List) -> Result<Vec<Value>, NotPassed> {
        if let Some(known) = self.lists.get(list.method) {
            return known.clone();
        }
        self.needs(list.capability).await?;
        let found = self.pages(list).await.map(|(entries, _)| entries);
        if let Ok(entries) = &found {
            self.lists.insert(list.method, Ok(entries.clone()));
        }
        self.note_failure(list, &found);
        found
    }

    /// Remembers a list that cannot be had: this check reports it, and those that need it are
    /// skipped.
    pub(crate) fn note_failure<T>(&mut self, list: &List, found: &Result<T, NotPassed>) {
        let is_failure = match found {
            Ok(_) | Err(NotPassed::Skipped(_)) => false,
            Err(NotPassed::Broken(_)) => true,
            Err(NotPassed::Lost(lost)) => !lost.is_unconnected(),
        };
        if is_failure {
            let why = format!("{} failed: see {}", list.method, self.rule);
            self.lists.insert(list.method, Err(NotPassed::Skipped(why)));
        }
    }

    /// All pages of a list, and how many there are.
    pub(crate) async fn pages(&mut self, list: &List) -> Result<(Vec<Value>, usize), NotPassed> {
        let List { method, member, .. } = list;
        let mut entries = Vec::new();
        let mut cursors = Vec::new();
        let mut params = json!({});
        for page in 1..=MOST_PAGES {
            let result = self.result(method, params).await?;
            match result.get(member).and_then(Value::as_array) {
                Some(found) => entries.extend(found.iter().cloned()),
                None => return broken(format!("{method}: result.{member} is not an array")),
            }
            let cursor = match result.get("nextCursor") {
                None | Some(Value::Null) => return Ok((entries, page)),
                Some(Value::String(cursor)) => cursor.clone(),
                Some(other) => {
                    return broken(format!("{method}: nextCursor is {other}, not a string"));
                }
            };
            if cursors.contains(&cursor) {
                return broken(format!("{method}: cursor {cursor:?} repeats: the list never ends"));
            }
            params = json!({"cursor": cursor});
            cursors.push(cursor);
        }
        broken(format!("{method}: more than {MOST_PAGES} pages"))
    }
}
