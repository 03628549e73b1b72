//! The lists of all servers as one: which names clients see, and where each leads.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bowline::proxy::{Listed, Picked};
use bowline::uri_template::UriTemplate;
use bowline::{Parts, Proxy};

use super::plan::{Plan, ServerPlan};
use super::shared::Shared;

/// The key of the commands, as that of a server.
pub(super) const COMMANDS: &str = "tools";

/// Where a name leads. What is served is [labelled](Parts::label) with it, so that a request and
/// the rules about it can never mean different things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The server's key.
    pub(super) server: Arc<str>,
    pub(super) kind: Kind,
    /// The server's own name.
    pub(super) name: String,
}

/// What kind of thing a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
    Template,
}

/// Where all names lead.
#[derive(Default)]
pub(super) struct Routes {
    /// At the endpoint for all servers.
    pub(super) front: HashMap<(Kind, String), Route>,
    /// At the endpoints for one.
    pub(super) own: HashMap<(String, Kind, String), Route>,
    /// What a bare name could mean: the advertised names, and where they lead.
    pub(super) bare: BTreeMap<String, Vec<(String, Route)>>,
    /// The templates among them.
    pub(super) templates: Vec<(UriTemplate, Route)>,
    /// The servers, and why there is no list of them.
    pub(super) servers: BTreeMap<String, Option<String>>,
    /// The servers whose calls must fail at once, and why.
    pub(super) refusing: BTreeMap<String, String>,
    /// What is wrong, for people.
    pub(super) problems: Vec<String>,
}

/// Clients limit names to 64 characters and put something like `mcp__name__` in front.
const LONGEST: usize = 64 - 12;

/// How many problems of one server people are told: names are its choice.
pub(super) const PROBLEMS: usize = 20;

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
    pub(super) own: BTreeMap<String, Parts>,
}

/// Something that is listed, under its names.
struct Found {
    route: Route,
    /// After the server's renaming.
    name: String,
    advertised: String,
}

/// Merges all lists, in the order of the plan.
pub(super) fn merge(shared: &Arc<Shared>, plan: &Plan, sources: &[Source<'_>]) -> Merged {
    let mut found = Vec::new();
    for command in &plan.commands {
        let (server, name) = (COMMANDS.into(), command.name.clone());
        let route = Route { server, kind: Kind::Tool, name: name.clone() };
        let advertised = advertised(plan.has_prefixes, COMMANDS, &name);
        found.push(Found { route, name, advertised });
    }
    for source in sources {
        // Only to learn the names.
        let _ = source.proxy.parts(|listed| {
            found.extend(find(plan, source.plan, listed));
            Vec::new()
        });
    }
    put_together(shared, plan, sources, routes(&found))
}

fn routes(found: &[Found]) -> Routes {
    let mut routes = Routes::default();
    let mut counts: HashMap<(Kind, &str), usize> = HashMap::new();
    for it in found {
        *counts.entry((it.route.kind, &it.advertised)).or_default() += 1;
    }
    let mut problems: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut problem = |key: &str, what: String| {
        let known = problems.entry(key.to_owned()).or_default();
        match known.len() {
            ..PROBLEMS => known.push(format!("{key}: {what}")),
            PROBLEMS => known.push(format!("{key}: more names are wrong, too")),
            _ => {}
        }
    };
    for it in found {
        let (key, kind) = (it.route.server.to_string(), it.route.kind);
        let is_uri = matches!(kind, Kind::Resource | Kind::Template);
        routes.own.entry((key.clone(), kind, it.name.clone())).or_insert_with(|| it.route.clone());
        if counts.get(&(kind, it.advertised.as_str())).is_some_and(|it| *it > 1) && !is_uri {
            let name = &it.advertised;
            let what = "is withheld, because it would be the name of two things; help: set \
                        tools.rename, an alias, or prefix = \"always\"";
            problem(&key, format!("{name:?} {what}"));
            continue;
        }
        if routes.front.contains_key(&(kind, it.advertised.clone())) {
            // The first server wins: a URI is a locator that also occurs within texts.
            let uri = &it.advertised;
            problem(&key, format!("{uri:?} is that of a server before it, which is used"));
            continue;
        }
        if !is_uri && it.advertised.chars().count() > LONGEST {
            let name = &it.advertised;
            let what = format!(
                "is longer than {LONGEST} characters: clients that add a prefix of their own may \
                 cut or reject it; help: set an alias or tools.rename"
            );
            problem(&key, format!("{name:?} {what}"));
        }
        if kind == Kind::Tool {
            let meant = routes.bare.entry(it.name.clone()).or_default();
            meant.push((it.advertised.clone(), it.route.clone()));
        }
        if let (Kind::Template, Ok(template)) = (kind, UriTemplate::parse(&it.route.name)) {
            routes.templates.push((template.allow_unsafe_values(), it.route.clone()));
        }
        routes.front.insert((kind, it.advertised.clone()), it.route.clone());
    }
    routes.problems = problems.into_values().flatten().collect();
    routes
}

fn find(plan: &Plan, server: &ServerPlan, listed: Listed<'_>) -> Option<Found> {
    let (kind, own) = match listed {
        Listed::Tool(name) => (Kind::Tool, name),
        Listed::Prompt(name) => (Kind::Prompt, name),
        Listed::Resource(uri) => (Kind::Resource, uri),
        Listed::Template(uri) => (Kind::Template, uri),
        _ => return None,
    };
    let name = match kind {
        Kind::Tool => server.tools.name(own)?,
        _ => own.to_owned(),
    };
    let advertised = match kind {
        Kind::Resource | Kind::Template => name.clone(),
        Kind::Tool | Kind::Prompt => advertised(plan.has_prefixes, server.prefix(), &name),
    };
    let route = Route { server: server.key.as_str().into(), kind, name: own.to_owned() };
    Some(Found { route, name, advertised })
}

fn put_together(
    shared: &Arc<Shared>,
    plan: &Plan,
    sources: &[Source<'_>],
    mut routes: Routes,
) -> Merged {
    let (mut front, mut own) = (Parts::default(), BTreeMap::new());
    let mut added = Vec::new();
    for source in sources {
        let key = &source.plan.key;
        let picked = |name: &str, route: &Route| {
            Picked::new(name, visible(shared, route)).label(route.clone())
        };
        front.add(source.proxy.parts(|listed| {
            let Some(it) = find(plan, source.plan, listed) else { return Vec::new() };
            if routes.front.get(&(it.route.kind, it.advertised.clone())) != Some(&it.route) {
                return Vec::new();
            }
            let mut names = vec![picked(&it.advertised, &it.route)];
            if is_alone(&routes, &it) {
                names.push(picked(&it.name, &it.route).unlisted());
                added.push(((Kind::Tool, it.name), it.route));
            }
            names
        }));
        let parts = source.proxy.parts(|listed| {
            let Some(it) = find(plan, source.plan, listed) else { return Vec::new() };
            let leads = routes.own.get(&(key.clone(), it.route.kind, it.name.clone()));
            if leads == Some(&it.route) { vec![picked(&it.name, &it.route)] } else { Vec::new() }
        });
        own.insert(key.clone(), parts);
    }
    for command in &plan.commands {
        let name = command.name.clone();
        let route = Route { server: COMMANDS.into(), kind: Kind::Tool, name: name.clone() };
        let advertised = advertised(plan.has_prefixes, COMMANDS, &name);
        if routes.front.get(&(Kind::Tool, advertised.clone())) != Some(&route) {
            continue;
        }
        let mut parts = Parts::default();
        parts.add(command.tool(&advertised).visible_to(visible(shared, &route)));
        let it = Found { route: route.clone(), name: name.clone(), advertised };
        if is_alone(&routes, &it) {
            parts.add(command.tool(&name).unlisted().visible_to(visible(shared, &route)));
            added.push(((Kind::Tool, name), route.clone()));
        }
        parts.label(route);
        front.add(parts);
    }
    routes.front.extend(added);
    Merged { routes, front, own }
}

/// Whether a bare name leads somewhere: it means one thing, and is not itself advertised.
fn is_alone(routes: &Routes, it: &Found) -> bool {
    it.route.kind == Kind::Tool
        && routes.bare.get(&it.name).is_some_and(|meant| meant.len() == 1)
        && !routes.front.contains_key(&(Kind::Tool, it.name.clone()))
}

/// Whether a caller may see what a route leads to. Asks the rules of the moment.
fn visible(
    shared: &Arc<Shared>,
    route: &Route,
) -> impl Fn(&bowline::Caller) -> bool + Send + Sync + 'static {
    let (shared, route) = (Arc::downgrade(shared), route.clone());
    move |caller| {
        shared.upgrade().is_some_and(|shared| {
            let rules = shared.rules();
            rules.decide(&rules.who(caller), &route.server, &[&route.name]).is_allowed
        })
    }
}
