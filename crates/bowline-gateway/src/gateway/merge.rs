//! The lists of all servers as one: which names clients see, and where each leads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bowline::proxy::{Listed, Picked};
use bowline::{Parts, Proxy};

use super::plan::{Plan, ServerPlan};
use super::shared::Shared;

/// The key of the commands, as that of a server.
pub(super) const COMMANDS: &str = "tools";

/// Where a name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The server's key.
    pub(super) server: Arc<str>,
    /// The server's own name.
    pub(super) name: String,
}

/// What kind of thing a name is for. Resources and templates share the URIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// Where all names lead.
#[derive(Default)]
pub(super) struct Routes {
    /// At the endpoint for all servers.
    pub(super) front: HashMap<(Kind, String), Route>,
    /// At the endpoints for one.
    pub(super) own: HashMap<(String, Kind, String), Route>,
    /// The advertised names that a bare name could mean.
    pub(super) bare: BTreeMap<String, Vec<String>>,
    /// What is wrong, for people.
    pub(super) problems: Vec<String>,
}

/// Clients limit names to 64 characters and put something like `mcp__name__` in front.
const LONGEST: usize = 64 - 12;

/// The name at the endpoint for all servers.
pub(super) fn advertised(has_prefixes: bool, prefix: &str, name: &str) -> String {
    if has_prefixes { format!("{prefix}__{name}") } else { name.to_owned() }
}

/// The servers that say what they have, with what they have.
pub(super) struct Source<'a> {
    pub(super) plan: &'a ServerPlan,
    pub(super) proxy: Proxy,
}

/// One list of everything, and one for each server.
pub(super) struct Merged {
    pub(super) routes: Routes,
    pub(super) front: Parts,
    pub(super) own: Vec<(String, Parts)>,
}

/// Something that is listed, under its names.
struct Found<'a> {
    plan: &'a ServerPlan,
    kind: Kind,
    own: String,
    /// After the server's renaming.
    name: String,
    advertised: String,
}

/// Merges all lists, in the order of the plan.
pub(super) fn merge(shared: &Arc<Shared>, plan: &Plan, sources: &[Source<'_>]) -> Merged {
    let mut found = Vec::new();
    for source in sources {
        // Only to learn the names.
        let _ = source.proxy.parts(|listed| {
            found.extend(find(plan, source.plan, listed));
            Vec::new()
        });
    }
    let mut routes = Routes::default();
    let mut counts: HashMap<(Kind, &str), usize> = HashMap::new();
    for it in &found {
        *counts.entry((it.kind, &it.advertised)).or_default() += 1;
    }
    for command in &plan.commands {
        let name = advertised(plan.has_prefixes, COMMANDS, &command.name);
        routes.bare.entry(command.name.clone()).or_default().push(name);
    }
    let mut taken = HashSet::new();
    for it in &found {
        let route = Route { server: it.plan.key.as_str().into(), name: it.own.clone() };
        let own = (it.plan.key.clone(), it.kind, it.name.clone());
        routes.own.entry(own).or_insert_with(|| route.clone());
        let is_twice = counts.get(&(it.kind, it.advertised.as_str())).is_some_and(|it| *it > 1);
        if is_twice && it.kind != Kind::Resource {
            let (key, name) = (&it.plan.key, &it.advertised);
            routes.problems.push(format!(
                "{key}: {name:?} is withheld, because another server has the same name; help: set \
                 tools.rename, an alias, or prefix = \"always\""
            ));
            continue;
        }
        if !taken.insert((it.kind, it.advertised.clone())) {
            // The first server wins: a URI is a locator that also occurs within texts.
            routes.problems.push(format!(
                "{}: {:?} is that of a server before it, which is used",
                it.plan.key, it.advertised
            ));
            continue;
        }
        if it.kind != Kind::Resource && it.advertised.chars().count() > LONGEST {
            routes.problems.push(format!(
                "{}: {:?} is longer than {LONGEST} characters: clients that add a prefix of their \
                 own may cut or reject it; help: set an alias or tools.rename",
                it.plan.key, it.advertised
            ));
        }
        if it.kind == Kind::Tool {
            routes.bare.entry(it.name.clone()).or_default().push(it.advertised.clone());
        }
        routes.front.insert((it.kind, it.advertised.clone()), route);
    }
    put_together(shared, plan, sources, routes)
}

fn find<'a>(plan: &Plan, server: &'a ServerPlan, listed: Listed<'_>) -> Option<Found<'a>> {
    let (kind, own) = kind_of(listed)?;
    let name = match kind {
        Kind::Tool => server.tools.name(own)?,
        _ => own.to_owned(),
    };
    let advertised = match kind {
        Kind::Resource => name.clone(),
        _ => advertised(plan.has_prefixes, server.prefix(), &name),
    };
    Some(Found { plan: server, kind, own: own.to_owned(), name, advertised })
}

fn kind_of(listed: Listed<'_>) -> Option<(Kind, &str)> {
    match listed {
        Listed::Tool(name) => Some((Kind::Tool, name)),
        Listed::Prompt(name) => Some((Kind::Prompt, name)),
        Listed::Resource(uri) | Listed::Template(uri) => Some((Kind::Resource, uri)),
        _ => None,
    }
}

fn put_together(
    shared: &Arc<Shared>,
    plan: &Plan,
    sources: &[Source<'_>],
    mut routes: Routes,
) -> Merged {
    // A bare name leads somewhere if it can mean one thing, and is not itself an advertised name.
    let is_alone = |routes: &Routes, name: &str| {
        routes.bare.get(name).is_some_and(|it| it.len() == 1)
            && !routes.front.contains_key(&(Kind::Tool, name.to_owned()))
    };
    let (mut front, mut own) = (Parts::default(), Vec::new());
    let mut added = Vec::new();
    for source in sources {
        let key = &source.plan.key;
        front.add(source.proxy.parts(|listed| {
            let Some(found) = find(plan, source.plan, listed) else { return Vec::new() };
            let leads = routes.front.get(&(found.kind, found.advertised.clone()));
            let Some(route) = leads.filter(|it| *it.server == **key && it.name == found.own) else {
                return Vec::new();
            };
            let mut picked = vec![Picked::new(&found.advertised, visible(shared, route))];
            if found.kind == Kind::Tool && is_alone(&routes, &found.name) {
                added.push(((Kind::Tool, found.name.clone()), route.clone()));
                picked.push(Picked::new(found.name, visible(shared, route)).unlisted());
            }
            picked
        }));
        let parts = source.proxy.parts(|listed| {
            let Some(found) = find(plan, source.plan, listed) else { return Vec::new() };
            let route = Route { server: key.as_str().into(), name: found.own };
            vec![Picked::new(found.name, visible(shared, &route))]
        });
        own.push((key.clone(), parts));
    }
    for command in &plan.commands {
        let route = Route { server: COMMANDS.into(), name: command.name.clone() };
        let name = advertised(plan.has_prefixes, COMMANDS, &command.name);
        front.add(command.tool(&name).visible_to(visible(shared, &route)));
        if is_alone(&routes, &command.name) && name != command.name {
            let tool = command.tool(&command.name).unlisted();
            front.add(tool.visible_to(visible(shared, &route)));
            added.push(((Kind::Tool, command.name.clone()), route.clone()));
        }
        added.push(((Kind::Tool, name), route));
    }
    routes.front.extend(added);
    Merged { routes, front, own }
}

/// Whether a caller may see what a route leads to. Asks the rules of the moment.
fn visible(
    shared: &Arc<Shared>,
    route: &Route,
) -> impl Fn(&bowline::Caller) -> bool + Send + Sync + 'static {
    let (shared, route) = (Arc::downgrade(shared), route.clone());
    move |caller| {
        shared.upgrade().is_some_and(|shared| {
            let policy = shared.policy();
            policy.decide(&policy.who(caller), &route.server, &route.name).is_allowed
        })
    }
}
