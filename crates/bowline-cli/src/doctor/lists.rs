//! What the server offers: each list is read to its end and checked for what clients choke on.

use std::collections::HashSet;

use bowline_check::problem_of_entry;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::conversation::{AskError, Conversation};
use super::era::{Live, Plan};
use super::report::{Diagnosis, Report, Step, broken};
use super::seen::plain;

/// A list that servers may have.
struct List {
    /// The capability, and the member that holds the items.
    name: &'static str,
    method: &'static str,
    /// The member that identifies an item.
    key: &'static str,
}

const TOOLS: List = List { name: "tools", method: "tools/list", key: "name" };
const RESOURCES: List = List { name: "resources", method: "resources/list", key: "uri" };
const PROMPTS: List = List { name: "prompts", method: "prompts/list", key: "name" };

/// How many pages of one list are read.
const PAGES: usize = 100;

/// Reads every list that the server declares, then pings it. Returns whether the conversation can
/// go on.
pub(crate) async fn walk(
    conversation: &mut Conversation,
    report: &mut Report,
    live: &Live,
    plan: Plan,
) -> bool {
    for list in [TOOLS, RESOURCES, PROMPTS] {
        if live.capabilities.get(list.name).is_none() {
            report.push(Step::skipped(list.name, "not a declared capability"));
            continue;
        }
        let began = Instant::now();
        match list.read(conversation, live, plan).await {
            Ok(read) => report.push(list.judge(read, began)),
            Err(AskError::Refused { error, .. })
                if error.code.0 == -32601 && list.name != "tools" =>
            {
                let List { name, method, .. } = list;
                let seen = format!("error {}: {}", error.code.0, plain(&error.message));
                let diagnosis =
                    broken(format!("the server declares {name} but does not implement {method}"))
                        .fix("Implement it, if only with an empty list, or do not declare it.");
                report.push(Step::ok(name, seen, began).warn(diagnosis));
            }
            Err(error) => {
                let (seen, diagnosis) = conversation.explain(list.method, &error).await;
                report.push(Step::ok(list.name, seen, began).fail(diagnosis));
                if is_fatal(&error) {
                    return false;
                }
            }
        }
    }
    if live.revision.is_modern() {
        return true;
    }
    let began = Instant::now();
    match conversation.ask("ping", json!({}), live.revision, plan.timeout).await {
        Ok(_) => {
            report.push(Step::ok("ping", "answered", began));
            true
        }
        Err(error) => {
            let (seen, diagnosis) = conversation.explain("ping", &error).await;
            report.push(Step::ok("ping", seen, began).fail(diagnosis));
            !is_fatal(&error)
        }
    }
}

/// Ends the handshake.
pub(crate) async fn initialized(conversation: &mut Conversation, plan: Plan) -> Step {
    let began = Instant::now();
    conversation.connection.timeout = plan.timeout;
    let agreed = conversation.connection.agree().await;
    let (seen, problem) = match agreed.map(|received| received.status) {
        Ok(None) => ("sent".to_owned(), None),
        Err(lost) => (AskError::from(lost).seen(), None),
        Ok(Some(status)) => {
            let seen = format!("HTTP {}", status.as_u16());
            let problem = match status.as_u16() {
                202 => None,
                200..300 => Some(format!("the server answers a notification with {seen}, not 202")),
                _ => Some(format!("the server rejects notifications/initialized: {seen}")),
            };
            let fix = "Respond to notifications with 202 and no body, and keep the session open.";
            (seen, problem.map(|cause| broken(cause).fix(fix)))
        }
    };
    let step = Step::ok("initialized", seen, began).warn(problem);
    let Some(method) = &conversation.request else { return step };
    step.with_seen(format!("it sent {method} before")).warn(
        broken(format!("the server sends {method} before the handshake is over"))
            .fix("Send no request but ping before notifications/initialized has arrived."),
    )
}

fn is_fatal(error: &AskError) -> bool {
    matches!(error, AskError::Ended | AskError::TimedOut(_) | AskError::Unreachable(_))
}

/// What a list returned until it ended or broke.
#[derive(Default)]
struct Items {
    items: Vec<Value>,
    pages: usize,
    /// Why the list does not end.
    endless: Option<String>,
}

impl List {
    async fn read(
        &self,
        conversation: &mut Conversation,
        live: &Live,
        plan: Plan,
    ) -> Result<Items, AskError> {
        let deadline = Instant::now() + plan.timeout;
        let mut read = Items::default();
        let mut cursors = HashSet::new();
        let mut params = json!({});
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let asked = conversation.ask(self.method, params, live.revision, left).await;
            if let Err(AskError::TimedOut(_)) = asked {
                if read.pages == 0 {
                    return Err(AskError::TimedOut(plan.timeout));
                }
                read.endless = Some(format!("{} pages arrived in time", read.pages));
                return Ok(read);
            }
            let page = asked?;
            let Some(items) = page[self.name].as_array() else {
                return Err(AskError::Malformed(format!("result.{} is not an array", self.name)));
            };
            read.pages += 1;
            read.items.extend(items.iter().cloned());
            let Some(cursor) = page["nextCursor"].as_str() else { return Ok(read) };
            if !cursors.insert(cursor.to_owned()) {
                read.endless = Some(format!("the cursor {:?} is repeated", plain(cursor)));
                return Ok(read);
            }
            if read.pages == PAGES {
                read.endless = Some(format!("{PAGES} pages, and more to come"));
                return Ok(read);
            }
            params = json!({ "cursor": cursor });
        }
    }

    fn judge(&self, read: Items, began: Instant) -> Step {
        let Items { items, pages, endless } = read;
        let pages = if pages == 1 { String::new() } else { format!(" on {pages} pages") };
        let seen = format!("{}{pages}{}", items.len(), self.examples(&items));
        let endless = endless.map(|why| {
            broken(format!("the list of {} does not end: {why}", self.name))
                .fix("Leave nextCursor out of the last page, and never repeat a cursor.")
        });
        Step::ok(self.name, seen, began).fail(endless.or_else(|| self.check(&items)))
    }

    fn examples(&self, items: &[Value]) -> String {
        let names = items.iter().take(5).filter_map(|item| item[self.key].as_str().map(plain));
        let names: Vec<String> = names.collect();
        let more = if items.len() > 5 { ", …" } else { "" };
        if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) }
    }

    /// The first thing in a list that clients choke on.
    fn check(&self, items: &[Value]) -> Option<Diagnosis> {
        let Self { name, key, .. } = self;
        let mut known = HashSet::new();
        for item in items {
            let id = item[key].as_str().unwrap_or_default();
            if id.is_empty() {
                let one = name.trim_end_matches('s');
                return Some(broken(format!("a {one} has an empty {key}")).fix("Give it one."));
            }
            let shown = plain(id);
            if !known.insert(id) {
                let fix = "Use each only once: clients keep one of them, or reject both.";
                return Some(broken(format!("two {name} have the {key} {shown:?}")).fix(fix));
            }
            if let Some((problem, fix)) = problem_of_entry(self.method, item) {
                return Some(broken(plain(&problem)).fix(fix));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_list_has_its_cause() {
        let tool = |name: &str, schema: Value| json!({ "name": name, "inputSchema": schema });
        let resource = |uri: &str| json!({ "uri": uri, "name": "a" });
        let good = || json!({ "type": "object" });
        for (list, items, cause) in [
            (TOOLS, vec![tool("a", good()), tool("a", good())], "two tools have the name \"a\""),
            (TOOLS, vec![tool("", good())], "a tool has an empty name"),
            (TOOLS, vec![tool("a", json!({ "type": "string" }))], "inputSchema.type is \"string\""),
            (TOOLS, vec![tool("a", json!({}))], "inputSchema.type is null"),
            (TOOLS, vec![tool("a", json!([]))], "inputSchema"),
            (
                TOOLS,
                vec![tool("a", json!({ "type": "object", "properties": 5 }))],
                "a: inputSchema: ",
            ),
            (RESOURCES, vec![resource("x"), resource("x")], "the uri \"x\""),
            (RESOURCES, vec![json!({ "uri": "x" })], "name is missing"),
            (PROMPTS, vec![json!({ "name": "" })], "a prompt has an empty name"),
        ] {
            let found = list.check(&items).unwrap_or_else(|| panic!("{items:?}"));
            assert!(found.cause.contains(cause), "{items:?}: {found:?}");
            assert!(!found.fix.is_empty(), "{items:?}: {found:?}");
        }
        assert_eq!(TOOLS.check(&[tool("a", good()), tool("b", good())]), None);
        assert_eq!(RESOURCES.check(&[resource("x"), resource("y")]), None);
    }
}
