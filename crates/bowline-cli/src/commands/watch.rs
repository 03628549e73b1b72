//! `bowline watch`: what changes on a server, in words.

use std::collections::BTreeMap;

use bowline::Json;
use bowline::client::{Change, Changes, Wanted};
use bowline::model::ReadResourceResult;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::listen::{Limit, ready};
use super::{list, read};
use crate::failure::Failure;
use crate::render::content::Shower;
use crate::screen::{OutputArgs, Style};
use crate::session::{OnStop, Session, Settings};
use crate::target::TargetOptions;
use crate::text::line;

/// Tell what changes on a server as it happens, until Ctrl-C
///
/// When a list of tools, prompts or resources changes, it is asked for again and compared: what
/// came has a + before it, what went a -, what is another now a ~. Resources that are named are
/// subscribed to. The server's log messages are shown beside. With --output json, each change is a
/// line. `bowline listen` prints the notifications themselves.
#[derive(Args)]
#[command(override_usage = "bowline watch [OPTIONS] TARGET [URI]...\n       \
    bowline watch [OPTIONS] [URI]... -- COMMAND [ARGS]...")]
pub(crate) struct Watch {
    /// The server, unless a command follows `--`; resources to subscribe to
    #[arg(value_name = "TARGET URI")]
    words: Vec<String>,

    /// Show what a resource holds when it has changed
    #[arg(long)]
    read: bool,

    #[command(flatten)]
    limit: Limit,

    #[command(flatten)]
    options: TargetOptions,
}

impl Watch {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.options, root)?;
        let (resolved, uris) = self.options.resolve_words(&self.words)?;
        Session::run_until(&resolved, &settings, OnStop::End, async |session| {
            let wanted = uris.iter().fold(Wanted::lists(), Wanted::resource);
            let mut changes = session.client().changes(wanted).await?;
            warn_of_unheard(session, &changes, uris);
            let mut known = Known::read(session).await;
            ready(session);
            let mut over = std::pin::pin!(self.limit.over());
            let mut left = self.limit.count.unwrap_or(u64::MAX);
            while left > 0 && !session.screen().is_lost() {
                let change = tokio::select! {
                    change = changes.next() => change,
                    () = &mut over => break,
                    () = session.lost() => None,
                };
                match change {
                    None => return Err(session.why_lost()),
                    Some(change) => self.tell(session, &mut known, change?).await?,
                }
                left -= 1;
            }
            Ok(())
        })
        .await
    }

    async fn tell(
        &self,
        session: &Session,
        known: &mut Known,
        change: Change,
    ) -> Result<(), Failure> {
        let screen = session.screen();
        let (word, kind) = match &change {
            Change::Tools => ("tools", Some(Kind::Tools)),
            Change::Prompts => ("prompts", Some(Kind::Prompts)),
            Change::Resources => ("resources", Some(Kind::Resources)),
            Change::Resource(_) => ("resource", None),
        };
        let mut told = json!({ "changed": word });
        let mut text = screen.out.paint(Style::Bold, word);
        if let Change::Resource(uri) = &change {
            told["uri"] = json!(uri);
            text += &format!(" {}", line(uri));
        }
        if let Some(kind) = kind {
            let now = kind.read(session).await;
            let differences = differences(known.of(kind), &now);
            for (mark, name) in &differences {
                let style = match mark {
                    '+' => Style::Green,
                    '-' => Style::Red,
                    _ => Style::Yellow,
                };
                text += &format!(" {}", screen.out.paint(style, &format!("{mark}{}", line(name))));
            }
            for (mark, member) in [('+', "came"), ('-', "went"), ('~', "differs")] {
                let names = differences.iter().filter(|(it, _)| *it == mark);
                told[member] = names.map(|(_, name)| json!(name)).collect();
            }
            *known.of(kind) = now;
        }
        match screen.is_json() {
            true => screen.print_json(&told.into()),
            false => screen.print(&format!("{text}\n")),
        }
        match (&change, self.read) {
            (Change::Resource(uri), true) => show(session, uri).await,
            _ => Ok(()),
        }
    }
}

/// Shows what a resource holds now.
async fn show(session: &Session, uri: &str) -> Result<(), Failure> {
    let screen = session.screen();
    let result = session.client().call_json("resources/read", json!({ "uri": uri })).await?;
    if screen.is_json() {
        screen.print_json(&result);
        return Ok(());
    }
    let mut shower = Shower::new(screen, None);
    for contents in &read::<ReadResourceResult>(&result)?.contents {
        screen.print(&shower.resource(contents)?);
    }
    Ok(())
}

/// Says what will not be told, because the server does not offer it.
fn warn_of_unheard(session: &Session, changes: &Changes, uris: &[String]) {
    let screen = session.screen();
    if let Some(honoured) = changes.honoured() {
        let heard = honoured.resource_subscriptions.unwrap_or_default();
        for uri in uris.iter().filter(|uri| !heard.contains(uri)) {
            screen.warn(&format!("the server will not tell when {uri} changes"));
        }
        return;
    }
    let resources = session.client().peer().and_then(|peer| peer.capabilities.resources.clone());
    if !uris.is_empty() && resources.is_none_or(|it| it.subscribe != Some(true)) {
        screen.warn("the server does not offer subscriptions to resources");
    }
}

/// Something that there is a list of.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Tools,
    Prompts,
    Resources,
}

/// A list: names, and what stands behind each.
type Names = BTreeMap<String, String>;

/// What was known of the lists last.
#[derive(Default)]
struct Known {
    tools: Names,
    prompts: Names,
    resources: Names,
}

impl Known {
    async fn read(session: &Session) -> Self {
        Self {
            tools: Kind::Tools.read(session).await,
            prompts: Kind::Prompts.read(session).await,
            resources: Kind::Resources.read(session).await,
        }
    }

    fn of(&mut self, kind: Kind) -> &mut Names {
        match kind {
            Kind::Tools => &mut self.tools,
            Kind::Prompts => &mut self.prompts,
            Kind::Resources => &mut self.resources,
        }
    }
}

impl Kind {
    /// The list as it is now; empty if there is none.
    async fn read(self, session: &Session) -> Names {
        let (method, member, key) = match self {
            Self::Tools => ("tools/list", "tools", "name"),
            Self::Prompts => ("prompts/list", "prompts", "name"),
            Self::Resources => ("resources/list", "resources", "uri"),
        };
        let Ok(result) = list(session, method, member).await else { return Names::new() };
        names(&result, member, key)
    }
}

fn names(result: &Json, member: &str, key: &str) -> Names {
    let members = result.parse::<BTreeMap<String, Json>>().unwrap_or_default();
    let items = members.get(member).and_then(|items| items.parse::<Vec<Json>>().ok());
    let named = items.unwrap_or_default().into_iter().filter_map(|item| {
        let name = BTreeMap::<String, Value>::deserialize(&item.to_value()).ok()?;
        Some((name.get(key)?.as_str()?.to_owned(), item.as_str().to_owned()))
    });
    named.collect()
}

/// What came, went and changed.
fn differences(before: &Names, now: &Names) -> Vec<(char, String)> {
    let came = now.keys().filter(|name| !before.contains_key(*name)).map(|name| ('+', name));
    let went = before.keys().filter(|name| !now.contains_key(*name)).map(|name| ('-', name));
    let other = now
        .iter()
        .filter(|(name, text)| before.get(*name).is_some_and(|before| before != *text))
        .map(|(name, _)| ('~', name));
    came.chain(went).chain(other).map(|(mark, name)| (mark, name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_compared() {
        let list = |text: &str| names(&Json::from_text(text.to_owned()).unwrap(), "tools", "name");
        let before = list(r#"{"tools":[{"name":"a"},{"name":"b","x":1}]}"#);
        let now = list(r#"{"tools":[{"name":"b","x":2},{"name":"c"}]}"#);
        let found = differences(&before, &now);
        let expected = [('+', "c"), ('-', "a"), ('~', "b")];
        assert_eq!(found, expected.map(|(mark, name)| (mark, name.to_owned())));
    }
}
