//! The commands that ask one thing of a server.

pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod info;
pub(crate) mod listen;
pub(crate) mod login;
pub(crate) mod ping;
pub(crate) mod prompts;
pub(crate) mod raw;
pub(crate) mod resources;
pub(crate) mod servers;
pub(crate) mod shell;
pub(crate) mod tools;
pub(crate) mod watch;

use std::collections::{BTreeMap, HashSet};

use bowline::client::CallError;
use bowline::{Client, Json};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::failure::{Code, Failure};
use crate::session::Session;

/// All pages of a list as one result: the members of the first page, the items of all.
///
/// A list of one page is given as it came, to the letter.
///
/// # Errors
/// When the server does not offer such a list, or does not give it.
pub(crate) async fn list(session: &Session, method: &str, member: &str) -> Result<Json, Failure> {
    let capability = if method.starts_with("resources/") { "resources" } else { member };
    if !offers(session, capability) {
        let failure = Failure::new(Code::Refused, format!("the server offers no {capability}"));
        return Err(failure.with_remedy(format!("`bowline raw` with {method} asks all the same")));
    }
    let (all, cut) = all_pages(session.client(), method, member).await?;
    if let Some(why) = cut {
        session.screen().warn(&why);
    }
    Ok(all)
}

/// The same, whatever the server says that it offers; and why the rest is left out, if it is.
///
/// # Errors
/// When the server does not give it.
pub(crate) async fn all_pages(
    client: &Client,
    method: &str,
    member: &str,
) -> Result<(Json, Option<String>), CallError> {
    /// However a server counts, this is no list for people any more.
    const PAGES: usize = 1000;
    let (mut pages, mut cursors, mut cut) = (Vec::new(), HashSet::new(), None);
    let mut params = Json::empty_object();
    loop {
        let page = client.call_json(method, params).await?;
        let next = page.parse::<Cursor>().ok().and_then(|cursor| cursor.next);
        pages.push(page);
        let Some(cursor) = next else { break };
        if pages.len() >= PAGES {
            cut =
                Some(format!("{method}: there are more than {PAGES} pages; the rest is left out"));
            break;
        }
        if !cursors.insert(cursor.clone()) {
            cut = Some(format!("{method}: nextCursor {cursor:?} came twice; the list has no end"));
            break;
        }
        params = json!({ "cursor": cursor }).into();
    }
    let all = if pages.len() == 1 { pages.remove(0) } else { joined(&pages, member) };
    Ok((all, cut))
}

/// Whether a server says that it has tools, resources or prompts.
pub(crate) fn offers(session: &Session, capability: &str) -> bool {
    let Some(peer) = session.client().peer() else { return false };
    let all = &peer.capabilities;
    match capability {
        "tools" => all.tools.is_some(),
        "resources" => all.resources.is_some(),
        "prompts" => all.prompts.is_some(),
        _ => true,
    }
}

/// A result as its type.
///
/// # Errors
/// When it is of another.
pub(crate) fn read<T: serde::de::DeserializeOwned>(result: &Json) -> Result<T, Failure> {
    result.parse().map_err(|error| {
        Failure::new(Code::Refused, format!("the server's answer cannot be read: {error}"))
            .with_remedy("--output json shows it as it came")
    })
}

/// The items of a list, those of another type left out with a warning.
///
/// # Errors
/// When there is no list.
pub(crate) fn items<T: serde::de::DeserializeOwned>(
    session: &Session,
    result: &Json,
    member: &str,
) -> Result<Vec<(T, Json)>, Failure> {
    let mut members = read::<BTreeMap<String, Json>>(result)?;
    let Some(list) = members.remove(member) else {
        let failure = Failure::new(Code::Refused, format!("the server's answer has no {member:?}"));
        return Err(failure.with_remedy("--output json shows it as it came"));
    };
    let mut items = Vec::new();
    for (at, exact) in read::<Vec<Json>>(&list)?.into_iter().enumerate() {
        match exact.parse() {
            Ok(item) => items.push((item, exact)),
            Err(error) => session.screen().warn(&format!("{member}[{at}] is left out: {error}")),
        }
    }
    Ok(items)
}

#[derive(serde::Deserialize)]
struct Cursor {
    #[serde(rename = "nextCursor", default)]
    next: Option<String>,
}

/// Members as they came: keys in order, values as text.
type Raw = Map<String, Value>;

fn joined(pages: &[Json], member: &str) -> Json {
    let mut items: Vec<Box<RawValue>> = Vec::new();
    for page in pages {
        let members: BTreeMap<String, Box<RawValue>> = page.parse().unwrap_or_default();
        let page_items = members.get(member).map(|raw| raw.get());
        items.extend(
            page_items
                .and_then(|text| serde_json::from_str::<Vec<_>>(text).ok())
                .unwrap_or_default(),
        );
    }
    let items: Vec<&str> = items.iter().map(|item| item.get()).collect();
    let first: Raw = pages.first().and_then(|page| page.parse().ok()).unwrap_or_default();
    let mut text = String::from("{");
    for (name, value) in first.iter().filter(|(name, _)| *name != "nextCursor") {
        let comma = if text.len() > 1 { "," } else { "" };
        let value =
            if name == member { format!("[{}]", items.join(",")) } else { value.to_string() };
        text += &format!("{comma}{}:{value}", Value::from(name.as_str()));
    }
    text.push('}');
    Json::from_text(text).unwrap_or_else(|_| Json::empty_object())
}
