//! Who may use what.

use std::sync::Arc;

use bowline::{Principal, Profile};
use serde_json::Value;

use crate::bridge::tools::matches;

/// The rules of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// All of them are asked: what one denies is denied.
    pub rules: Vec<Rule>,
    /// What is allowed where there is no rule at all: everything, as on loopback, or nothing.
    pub is_open: bool,
    /// The claims of a token that name groups.
    pub group_claims: Vec<String>,
}

/// One rule. Patterns are `server/name`, with the server's own names; `*` stands for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// What the audit and `explain` call it.
    pub name: String,
    /// The users that it is about; all if empty. Patterns.
    pub subjects: Vec<String>,
    /// The groups that it is about; all if empty. Patterns.
    pub groups: Vec<String>,
    /// The client programs that it is about; all if empty. Patterns.
    pub clients: Vec<String>,
    /// What they may use.
    pub allow: Vec<String>,
    /// What they may not use, whatever other rules say.
    pub deny: Vec<String>,
    /// What the user must agree to before each call.
    pub confirm: Vec<String>,
}

/// Whether something may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may.
    pub is_allowed: bool,
    /// Whether the user must agree first.
    pub confirms: bool,
    /// The rule that decided, or why none did.
    pub rule: String,
}

/// Somebody, as rules see them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Who {
    /// The user; `None` without authentication.
    pub subject: Option<String>,
    /// The groups that the token names.
    pub groups: Vec<String>,
    /// The client program that the token names.
    pub client: Option<String>,
}

impl Policy {
    /// A caller, as rules see it.
    #[must_use]
    pub fn who(&self, caller: &Profile) -> Who {
        let Some(principal) = &caller.principal else { return Who::default() };
        Who {
            subject: Some(principal.subject().to_owned()),
            groups: groups(self, principal),
            client: principal.client_id().map(str::to_owned),
        }
    }

    /// Whether somebody may use what a server calls `name`.
    #[must_use]
    pub fn decide(&self, who: &Who, server: &str, name: &str) -> Decision {
        if self.rules.is_empty() {
            let rule = if self.is_open { "no rules, on loopback" } else { "no rules" };
            return Decision { is_allowed: self.is_open, confirms: false, rule: rule.to_owned() };
        }
        let what = format!("{server}/{name}");
        let about = || self.rules.iter().filter(|rule| rule.is_about(who));
        let has = |patterns: &[String]| patterns.iter().any(|it| matches(it, &what));
        if let Some(rule) = about().find(|rule| has(&rule.deny)) {
            return Decision { is_allowed: false, confirms: false, rule: rule.name.clone() };
        }
        let confirms = about().any(|rule| has(&rule.confirm));
        match about().find(|rule| has(&rule.allow) || has(&rule.confirm)) {
            Some(rule) => Decision { is_allowed: true, confirms, rule: rule.name.clone() },
            None => {
                let rule = "no rule allows it".to_owned();
                Decision { is_allowed: false, confirms: false, rule }
            }
        }
    }
}

impl Policy {
    /// Whether somebody may use something of a server, as far as patterns tell.
    #[must_use]
    pub fn may_use(&self, who: &Who, server: &str) -> bool {
        if self.rules.is_empty() {
            return self.is_open;
        }
        let all = format!("{server}/");
        let rules = self.rules.iter().filter(|rule| rule.is_about(who));
        let mut patterns = rules.flat_map(|rule| rule.allow.iter().chain(&rule.confirm));
        patterns.any(|pattern| {
            let (fixed, has_star) = match pattern.split_once('*') {
                Some((fixed, _)) => (fixed, true),
                None => (pattern.as_str(), false),
            };
            fixed.starts_with(&all) || has_star && all.starts_with(fixed)
        })
    }

    /// Whether a rule denies something, whatever others say.
    pub(super) fn is_denied(&self, who: &Who, server: &str, name: &str) -> bool {
        let what = format!("{server}/{name}");
        let mut rules = self.rules.iter().filter(|rule| rule.is_about(who));
        rules.any(|rule| rule.deny.iter().any(|it| matches(it, &what)))
    }

    /// Whether somebody may use something that has several spellings, such as the template and the
    /// URI of a resource: each must be allowed, and none denied.
    #[must_use]
    pub fn decide_all(&self, who: &Who, server: &str, names: &[&str]) -> Decision {
        let mut confirms = false;
        let mut last = None;
        for name in names {
            let mut decision = self.decide(who, server, name);
            if !decision.is_allowed {
                return decision;
            }
            confirms |= decision.confirms;
            decision.confirms = confirms;
            last = Some(decision);
        }
        last.unwrap_or_else(|| Decision {
            is_allowed: false,
            confirms: false,
            rule: "it has no name".to_owned(),
        })
    }
}

/// The rules that count now: those of the plan, and while a reload waits for servers also those
/// that it brings. Both must allow then: what a reload revokes is revoked at once, and what it
/// allows may be about servers that are not there yet.
#[derive(Clone, Default)]
pub(super) struct Rules {
    pub(super) now: Arc<Policy>,
    pub(super) coming: Option<Arc<Policy>>,
}

impl Rules {
    fn all(&self) -> impl Iterator<Item = &Policy> {
        [Some(&self.now), self.coming.as_ref()].into_iter().flatten().map(AsRef::as_ref)
    }

    pub(super) fn who(&self, caller: &Profile) -> Who {
        self.coming.as_ref().unwrap_or(&self.now).who(caller)
    }

    pub(super) fn may_use(&self, who: &Who, server: &str) -> bool {
        self.all().all(|policy| policy.may_use(who, server))
    }

    pub(super) fn is_denied(&self, who: &Who, server: &str, name: &str) -> bool {
        self.all().any(|policy| policy.is_denied(who, server, name))
    }

    pub(super) fn decide(&self, who: &Who, server: &str, names: &[&str]) -> Decision {
        let now = self.now.decide_all(who, server, names);
        let Some(coming) = self.coming.as_ref().filter(|_| now.is_allowed) else { return now };
        let mut decision = coming.decide_all(who, server, names);
        decision.confirms |= decision.is_allowed && now.confirms;
        decision
    }
}

/// The groups that a token names.
fn groups(policy: &Policy, principal: &Principal) -> Vec<String> {
    let claims = policy.group_claims.iter().filter_map(|it| principal.claims().get(it));
    let groups = claims.flat_map(|claim| match claim {
        // Whole: the names of groups have spaces.
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    });
    groups.collect()
}

impl Rule {
    fn is_about(&self, who: &Who) -> bool {
        let fits = |patterns: &[String], name: Option<&str>| {
            patterns.is_empty()
                || name.is_some_and(|name| patterns.iter().any(|it| matches(it, name)))
        };
        let in_group = |group: &String| self.groups.iter().any(|it| matches(it, group));
        fits(&self.subjects, who.subject.as_deref())
            && fits(&self.clients, who.client.as_deref())
            && (self.groups.is_empty() || who.groups.iter().any(in_group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|it| (*it).to_owned()).collect()
    }

    fn who(subject: &str, groups: &[&str]) -> Who {
        Who { subject: Some(subject.to_owned()), groups: texts(groups), client: None }
    }

    #[test]
    fn deny_wins_and_nothing_is_allowed_without_a_rule() {
        let ops = Rule {
            name: "ops".to_owned(),
            groups: texts(&["ops"]),
            allow: texts(&["github/*", "logs/read*"]),
            confirm: texts(&["github/merge_*"]),
            ..Rule::default()
        };
        let never =
            Rule { name: "never".to_owned(), deny: texts(&["*/delete_*"]), ..Rule::default() };
        let policy = Policy { rules: vec![ops, never], ..Policy::default() };
        let ann = who("ann", &["dev", "ops"]);
        let cases = [
            (&ann, "github", "get_issue", true, false, "ops"),
            (&ann, "github", "merge_pr", true, true, "ops"),
            (&ann, "github", "delete_repo", false, false, "never"),
            (&ann, "logs", "read_all", true, false, "ops"),
            (&ann, "logs", "write", false, false, "no rule allows it"),
            (&who("bob", &["dev"]), "github", "get_issue", false, false, "no rule allows it"),
            (&Who::default(), "github", "get_issue", false, false, "no rule allows it"),
        ];
        for (who, server, name, is_allowed, confirms, rule) in cases {
            let decided = policy.decide(who, server, name);
            let expected = Decision { is_allowed, confirms, rule: rule.to_owned() };
            assert_eq!(decided, expected, "{who:?} {server}/{name}");
        }
    }

    #[test]
    fn a_group_is_one_whatever_its_name() {
        let policy = Policy { group_claims: texts(&["groups", "roles"]), ..Policy::default() };
        let claims = serde_json::json!({ "groups": "Domain Admins", "roles": ["a b", "c"] });
        let claims = claims.as_object().unwrap().clone();
        let principal = Principal::new("ann").with_claims(claims);
        assert_eq!(groups(&policy, &principal), ["Domain Admins", "a b", "c"]);
    }

    #[test]
    fn servers_that_somebody_may_use_are_known_by_the_patterns() {
        let one = |allow: &[&str]| Policy {
            rules: vec![Rule { allow: texts(allow), ..Rule::default() }],
            ..Policy::default()
        };
        let cases = [
            (&["git/*"][..], true),
            (&["git/get"], true),
            (&["*"], true),
            (&["g*/get"], true),
            (&["github/*"], false),
            (&["gi"], false),
            (&["other/*"], false),
            (&[], false),
        ];
        for (allow, expected) in cases {
            assert_eq!(one(allow).may_use(&Who::default(), "git"), expected, "{allow:?}");
        }
    }

    #[test]
    fn without_rules_loopback_is_open_and_everything_else_closed() {
        for is_open in [true, false] {
            let policy = Policy { is_open, ..Policy::default() };
            assert_eq!(policy.decide(&Who::default(), "a", "b").is_allowed, is_open);
        }
    }
}
