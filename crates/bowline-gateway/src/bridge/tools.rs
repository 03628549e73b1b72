//! Which tools clients see, and under which names.

/// Which tools clients see, and under which names.
///
/// Patterns may contain `*`, which stands for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// If there are any, only tools that match one of these are there.
    pub allow: Vec<String>,
    /// Tools that match one of these are not there.
    pub deny: Vec<String>,
    /// The server's names, and the names that clients see.
    pub rename: Vec<(String, String)>,
}

impl ToolRules {
    /// Whether all tools are there, under their own names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty() && self.rename.is_empty()
    }

    /// What clients call a tool of the server; `None` if they do not see it. `allow` and `deny` are
    /// about the server's names.
    #[must_use]
    pub fn name(&self, tool: &str) -> Option<String> {
        let is_any = |patterns: &[String]| patterns.iter().any(|it| matches(it, tool));
        if !self.allow.is_empty() && !is_any(&self.allow) || is_any(&self.deny) {
            return None;
        }
        let renamed = self.rename.iter().find(|(old, _)| old == tool);
        Some(renamed.map_or(tool, |(_, new)| new).to_owned())
    }

    /// What is wrong with the rules for a server that has these tools, for people: rules without
    /// effect, and tools that nobody can call because another has their name.
    #[must_use]
    pub fn problems(&self, tools: &[String]) -> Vec<String> {
        let mut problems = Vec::new();
        for (old, new) in &self.rename {
            if !tools.contains(old) {
                problems.push(format!("--rename {old}={new}: the server has no tool {old:?}"));
            }
        }
        for (option, patterns) in [("--allow", &self.allow), ("--deny", &self.deny)] {
            for pattern in patterns {
                if !tools.iter().any(|tool| matches(pattern, tool)) {
                    problems.push(format!("{option} {pattern}: the server has no such tool"));
                }
            }
        }
        let mut named: Vec<(String, &str)> = Vec::new();
        for tool in tools {
            let Some(name) = self.name(tool) else { continue };
            match named.iter().find(|(other, _)| *other == name) {
                Some((_, other)) => problems.push(format!(
                    "{tool:?} and {other:?} are both called {name:?}: {tool:?} is left out; help: \
                     rename one of them, or leave it out with --deny"
                )),
                None => named.push((name, tool)),
            }
        }
        problems
    }
}

/// Whether a name matches a pattern: the parts between stars occur in order.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        let cases = [
            ("read", "read", true),
            ("read", "reader", false),
            ("read*", "read", true),
            ("read*", "read_file", true),
            ("*file", "read_file", true),
            ("*file", "read_files", false),
            ("*a*b*", "xaxbx", true),
            ("*a*b*", "bxa", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn tools_are_allowed_denied_and_renamed() {
        let text = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let rules = ToolRules {
            allow: text(&["get_*", "put"]),
            deny: text(&["get_secret*"]),
            rename: vec![("put".to_owned(), "store".to_owned())],
        };
        let named = |tool| rules.name(tool);
        assert_eq!(named("get_a").as_deref(), Some("get_a"));
        assert_eq!(named("put").as_deref(), Some("store"));
        assert_eq!(named("get_secrets"), None);
        assert_eq!(named("other"), None);
        assert_eq!(ToolRules::default().name("other").as_deref(), Some("other"));
    }

    #[test]
    fn rules_without_effect_and_names_that_collide_are_reported() {
        let text = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        let tools = text(&["get", "put"]);
        let rules = ToolRules {
            allow: text(&["*et", "put", "post*"]),
            deny: text(&["delete"]),
            rename: vec![pair("put", "get"), pair("pull", "push")],
        };
        let expected = [
            "--rename pull=push: the server has no tool \"pull\"",
            "--allow post*: the server has no such tool",
            "--deny delete: the server has no such tool",
            "\"put\" and \"get\" are both called \"get\": \"put\" is left out; help: rename one of \
             them, or leave it out with --deny",
        ];
        assert_eq!(rules.problems(&tools), expected);
        let swapped = ToolRules {
            rename: vec![pair("put", "get"), pair("get", "put")],
            ..ToolRules::default()
        };
        assert!(swapped.problems(&tools).is_empty());
        assert!(ToolRules::default().problems(&tools).is_empty());
    }
}
