//! `bowline watch`: reports what changes on a server, in words.

use std::collections::BTreeMap;

use bowline::Json;
use bowline::client::{Change, Changes, Wanted};
use clap::Args;
use serde_json::json;

use super::list::{List, PROMPTS, RESOURCES, TOOLS};
use super::listen::Limit;
use crate::failure::Failure;
use crate::render::content::ContentRenderer;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Invocation, Session};
use crate::target::TargetOptions;
use crate::text::line;

/// Report what changes on a server as it happens, until Ctrl-C
///
/// When a list of tools, prompts or resources changes, it is fetched again and compared: + marks
/// what was added, - what was removed, ~ what is different now. URIs are subscribed to. The
/// server's log messages are shown as well. With --output json, each change is a line. `bowline
/// listen` prints the notifications themselves.
#[derive(Args)]
#[command(override_usage = "bowline watch [OPTIONS] TARGET [URI]...\n       \
    bowline watch [OPTIONS] [URI]... -- COMMAND [ARGS]...")]
pub(crate) struct Watch {
    /// The server, unless a command follows `--`; resources to subscribe to
    #[arg(value_name = "TARGET URI")]
    words: Vec<String>,

    /// Print a resource whenever it changes
    #[arg(long)]
    read: bool,

    #[command(flatten)]
    limit: Limit,

    #[command(flatten)]
    options: TargetOptions,
}

impl Watch {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, uris) = Invocation::split(&self.options, &self.words, root)?;
        invocation.run_until_stopped(async |session| self.watch(session, uris).await).await
    }

    async fn watch(&self, session: &Session, uris: &[String]) -> Result<(), Failure> {
        let wanted = uris.iter().fold(Wanted::all_lists(), Wanted::resource);
        let mut changes = session.client.changes(wanted).await?;
        warn_of_unheard(session, &changes, uris);
        let mut known = BTreeMap::new();
        for (name, list) in LISTS {
            known.insert(name, fetch(session, list).await);
        }
        let next = async || match changes.next().await {
            None => Err(session.lost().await),
            Some(change) => {
                self.report(session, &mut known, change?).await?;
                Ok(true)
            }
        };
        self.limit.repeat(session, next).await
    }

    async fn report(
        &self,
        session: &Session,
        known: &mut BTreeMap<&str, Names>,
        change: Change,
    ) -> Result<(), Failure> {
        let screen = &session.screen;
        let word = match &change {
            Change::Tools => "tools",
            Change::Prompts => "prompts",
            Change::Resources => "resources",
            Change::Resource(_) => "resource",
        };
        let mut told = json!({ "changed": word });
        let mut text = screen.out.paint(Style::Bold, word);
        if let Change::Resource(uri) = &change {
            told["uri"] = json!(uri);
            text += &format!(" {}", line(uri));
        }
        if let Some((name, list)) = LISTS.iter().find(|(name, _)| *name == word) {
            let now = fetch(session, list).await;
            for (mark, member, style, names) in differences(&known[name], &now) {
                for name in &names {
                    let name = format!("{mark}{}", line(name));
                    text += &format!(" {}", screen.out.paint(style, &name));
                }
                told[member] = json!(names);
            }
            known.insert(*name, now);
        }
        screen.show(&told.into(), || Ok(format!("{text}\n")))?;
        match &change {
            Change::Resource(uri) if self.read => show(session, uri).await,
            _ => Ok(()),
        }
    }
}

/// Prints a resource.
async fn show(session: &Session, uri: &str) -> Result<(), Failure> {
    let screen = &session.screen;
    let result = session.call("resources/read", json!({ "uri": uri })).await?;
    screen.show(&result, || ContentRenderer::new(screen, None).resource_result(&result))
}

/// Warns of URIs whose changes the server will not report.
fn warn_of_unheard(session: &Session, changes: &Changes, uris: &[String]) {
    let heard = changes.granted().resource_subscriptions.unwrap_or_default();
    for uri in uris.iter().filter(|uri| !heard.contains(uri)) {
        session.screen.warn(&format!("the server will not report changes of {uri}"));
    }
}

/// The lists that can change, by the name of their change.
const LISTS: [(&str, &List); 3] =
    [("tools", &TOOLS), ("prompts", &PROMPTS), ("resources", &RESOURCES)];

/// The items of a list: what identifies each, and its text.
type Names = BTreeMap<String, String>;

/// The list as it is now; empty if there is none.
async fn fetch(session: &Session, list: &List) -> Names {
    let result = list.fetch(session).await;
    result.map(|result| names(list, &result, &session.screen)).unwrap_or_default()
}

fn names(list: &List, result: &Json, screen: &Screen) -> Names {
    let items = list.items(result, screen).unwrap_or_default();
    items.iter().filter_map(|item| Some((list.key(item)?, item.as_str().to_owned()))).collect()
}

/// The names that were added, removed or changed, each group with its mark, its member in JSON and
/// its colour.
fn differences<'a>(
    before: &'a Names,
    now: &'a Names,
) -> [(char, &'static str, Style, Vec<&'a String>); 3] {
    let added = now.keys().filter(|name| !before.contains_key(*name));
    let removed = before.keys().filter(|name| !now.contains_key(*name));
    let changed = now.iter().filter(|(name, text)| before.get(*name).is_some_and(|it| it != *text));
    [
        ('+', "came", Style::Green, added.collect()),
        ('-', "went", Style::Red, removed.collect()),
        ('~', "differs", Style::Yellow, changed.map(|(name, _)| name).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_compared() {
        let screen = Screen::new(&OutputArgs::default());
        let list = |text: &str| names(&TOOLS, &Json::from_text(text.to_owned()).unwrap(), &screen);
        let before = list(r#"{"tools":[{"name":"a"},{"name":"b","x":1}]}"#);
        let now = list(r#"{"tools":[{"name":"b","x":2},{"name":"c"}]}"#);
        let found = differences(&before, &now).map(|(mark, _, _, names)| (mark, names[0].as_str()));
        let expected = [('+', "c"), ('-', "a"), ('~', "b")];
        assert_eq!(found, expected);
    }
}
