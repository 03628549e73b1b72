//! What the requests of a gateway share. A reload replaces it piece by piece.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bowline::Outcome;
use bowline::uri_template::Match;
use bowline_proto::method::{ListTools, Method};
use tokio::time::Instant;

use super::audit::{Audit, Record};
use super::door::Agreements;
use super::merge::{COMMANDS, Kind, Route, Routes};
use super::metrics::Metrics;
use super::plan::Plan;
use super::policy::{Decision, Policy, Rules, Who};
use super::rate::{Rate, Used};
use super::spelling::plainest;
use super::telemetry::Telemetry;
use super::upstream::lock;
use crate::bridge::Report;
use crate::redact::Redactor;

#[derive(Default)]
pub(super) struct Shared {
    rules: RwLock<Rules>,
    routes: RwLock<Arc<Routes>>,
    limits: RwLock<Arc<HashMap<String, Limits>>>,
    audit: RwLock<Option<Arc<Audit>>>,
    telemetry: RwLock<Option<Arc<Telemetry>>>,
    report: RwLock<Option<Report>>,
    redactor: RwLock<Arc<Redactor>>,
    /// What people were told and is still so.
    told: Mutex<HashSet<String>>,
    /// What was reported to them, for a while.
    recently: Mutex<Option<(String, Instant)>>,
    pub(super) agreements: Agreements,
    /// Requests that have gone on once with an earlier one.
    pub(super) continued: Agreements,
    pub(super) metrics: Arc<Metrics>,
    used: Used,
    running: Mutex<HashMap<(String, String), usize>>,
}

/// A reload that waits: what it brings counts where it allows less.
pub(super) struct Expecting<'a>(&'a Shared);

impl Drop for Expecting<'_> {
    fn drop(&mut self) {
        put(&self.0.rules, Rules { coming: None, ..self.0.rules() });
    }
}

/// The limits of one server or command.
struct Limits {
    rate: Option<Rate>,
    running: Option<usize>,
    timeout: Option<Duration>,
}

/// A call that counts as running until it is dropped.
pub(super) struct Running {
    shared: Arc<Shared>,
    key: Option<(String, String)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut running = lock(&self.shared.running);
        if let Some(count) = running.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                running.remove(&key);
            }
        }
    }
}

/// How long a call may take, unless a limit says so.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// What a call counts as: commands are counted each.
fn counted(route: &Route) -> Cow<'_, str> {
    if *route.server == *COMMANDS {
        return Cow::Owned(format!("{COMMANDS}/{}", route.name));
    }
    Cow::Borrowed(&route.server)
}

fn get<T: Clone>(lock: &RwLock<T>) -> T {
    lock.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn put<T>(lock: &RwLock<T>, value: T) {
    *lock.write().unwrap_or_else(PoisonError::into_inner) = value;
}

impl Shared {
    /// Follows a plan from now on. Returns whether callers may see something else now.
    pub(super) fn follow(&self, plan: &Plan) -> bool {
        self.report_to(plan);
        let is_new = *self.rules().now != plan.policy;
        put(&self.rules, Rules { now: Arc::new(plan.policy.clone()), coming: None });
        put(&self.audit, plan.audit.clone());
        if let Some(telemetry) = &plan.telemetry {
            telemetry.measures(&self.metrics, &plan.report);
        }
        put(&self.telemetry, plan.telemetry.clone());
        let limits = plan.servers.iter().map(|it| {
            let limits = Limits { rate: it.rate, running: it.running, timeout: it.timeout };
            (it.key.clone(), limits)
        });
        let of_commands = plan.commands.iter().map(|it| {
            let limits = Limits { rate: it.rate, running: it.running, timeout: None };
            (format!("{COMMANDS}/{}", it.name), limits)
        });
        put(&self.limits, Arc::new(limits.chain(of_commands).collect()));
        is_new
    }

    /// From now on, what these rules do not allow is not allowed either, until a plan is followed
    /// or what this returns is dropped.
    pub(super) fn expect(&self, policy: &Policy) -> Expecting<'_> {
        put(&self.rules, Rules { coming: Some(Arc::new(policy.clone())), ..self.rules() });
        Expecting(self)
    }

    /// Tells people as a plan says.
    pub(super) fn report_to(&self, plan: &Plan) {
        put(&self.report, Some(Arc::clone(&plan.report)));
    }

    /// Removes these secrets from what is told, and no others.
    pub(super) fn hide(&self, secrets: Redactor) {
        put(&self.redactor, Arc::new(secrets));
    }

    /// Removes secrets from a text.
    pub(super) fn redacted(&self, text: &str) -> String {
        get(&self.redactor).text(text)
    }

    /// Removes secrets from what an error says.
    pub(super) fn without_secrets(&self, outcome: Outcome) -> Outcome {
        outcome.map_err(|mut failure| {
            failure.error.message = self.redacted(&failure.error.message);
            failure
        })
    }

    /// Tells people something.
    pub(super) fn tell(&self, what: &str) {
        if let Some(report) = get(&self.report) {
            report(&self.redacted(what));
        }
    }

    /// Tells people what is wrong, and only what is new of it.
    pub(super) fn tell_new(&self, problems: &[String]) {
        let now: HashSet<String> = problems.iter().cloned().collect();
        let before = std::mem::replace(&mut *lock(&self.told), now);
        problems.iter().filter(|it| !before.contains(*it)).for_each(|it| self.tell(it));
    }

    /// Tells people something that may happen with every request, at most once a minute.
    pub(super) fn tell_once(&self, what: &str) {
        const QUIET: Duration = Duration::from_secs(60);
        let mut recently = lock(&self.recently);
        let is_known = |(told, at): &(String, Instant)| told == what && at.elapsed() < QUIET;
        if !recently.as_ref().is_some_and(is_known) {
            *recently = Some((what.to_owned(), Instant::now()));
            drop(recently);
            self.tell(what);
        }
    }

    pub(super) fn rules(&self) -> Rules {
        get(&self.rules)
    }

    pub(super) fn telemetry(&self) -> Option<Arc<Telemetry>> {
        get(&self.telemetry)
    }

    pub(super) fn set_routes(&self, routes: Routes) {
        put(&self.routes, Arc::new(routes));
    }

    pub(super) fn routes(&self) -> Arc<Routes> {
        get(&self.routes)
    }

    /// Why somebody sees no list, at the endpoint of a server or at that for all: an empty one
    /// would say that there is nothing, which nobody knows. Names only what they may use.
    pub(super) fn silence(
        &self,
        endpoint: Option<&str>,
        method: &str,
        who: &Who,
    ) -> Option<String> {
        let (routes, rules) = (self.routes(), self.rules());
        let servers = routes.servers.iter().filter(|(key, _)| match endpoint {
            Some(endpoint) => *key == endpoint,
            // Commands say nothing about prompts and resources.
            None => *key != COMMANDS || method == ListTools::NAME,
        });
        let usable = servers.filter(|(key, _)| rules.may_use(who, key));
        let mut causes = Vec::new();
        for (key, why) in usable {
            causes.push(format!("{key}: {}", why.as_ref()?));
        }
        let what = "no server that you can use has answered";
        (!causes.is_empty()).then(|| format!("{what}: {}", causes.join("; ")))
    }

    /// Where a name leads, at the endpoint of a server or at that for all.
    pub(super) fn route(&self, server: Option<&str>, kind: Kind, name: &str) -> Option<Route> {
        let routes = self.routes();
        let found = match server {
            Some(server) => routes.own.get(&(server.to_owned(), kind, name.to_owned())),
            None => routes.front.get(&(kind, name.to_owned())),
        };
        found.cloned()
    }

    /// Where the URI of a resource may lead: a resource of that name, then templates.
    pub(super) fn resources(&self, server: Option<&str>, uri: &str) -> Vec<Route> {
        let mut found: Vec<Route> = self.route(server, Kind::Resource, uri).into_iter().collect();
        let routes = self.routes();
        let fitting = routes.templates.iter().filter(|(template, route)| {
            server.is_none_or(|it| it == &*route.server)
                && template.matches(uri) != Match::Different
        });
        found.extend(fitting.map(|(_, route)| route.clone()));
        found
    }

    /// Whether somebody may use what a route leads to under a name. Rules judge the URI of
    /// a resource as it is and in its plainest spelling, and the template that it fits.
    pub(super) fn judge(&self, who: &Who, route: &Route, asked: &str) -> Decision {
        let (rules, server) = (self.rules(), &*route.server);
        if route.kind == Kind::Resource {
            let plain = plainest(&route.name);
            let is_denied = rules.is_denied(who, server, &plain);
            return rules.decide(who, server, &[if is_denied { &plain } else { &route.name }]);
        }
        if route.kind != Kind::Template || asked == route.name {
            return rules.decide(who, server, &[&route.name]);
        }
        rules.decide(who, server, &[&route.name, asked, &plainest(asked)])
    }

    /// The full names that a bare name could mean for somebody.
    pub(super) fn candidates(&self, who: &Who, name: &str) -> Vec<String> {
        let (routes, rules) = (self.routes(), self.rules());
        let meant = routes.bare.get(name).map(Vec::as_slice).unwrap_or_default();
        let visible = meant
            .iter()
            .filter(|(_, route)| rules.decide(who, &route.server, &[&route.name]).is_allowed);
        visible.map(|(advertised, _)| advertised.clone()).collect()
    }

    /// Counts a call, or returns how long to wait for the next one.
    pub(super) fn take(&self, route: &Route, caller: &str) -> Result<(), Duration> {
        let (limits, counted) = (get(&self.limits), counted(route));
        match limits.get(&*counted).and_then(|it| it.rate) {
            Some(rate) => self.used.take(rate, caller, &counted),
            None => Ok(()),
        }
    }

    /// Begins a call, if the caller does not run too many.
    pub(super) fn run(self: &Arc<Self>, route: &Route, caller: &str) -> Option<Running> {
        let (limits, counted) = (get(&self.limits), counted(route));
        let Some(most) = limits.get(&*counted).and_then(|it| it.running) else {
            return Some(Running { shared: Arc::clone(self), key: None });
        };
        let key = (caller.to_owned(), counted.into_owned());
        let mut running = lock(&self.running);
        let count = running.entry(key.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(running);
        Some(Running { shared: Arc::clone(self), key: Some(key) })
    }

    /// How long a call to a server may take, if its settings say so.
    pub(super) fn limit(&self, server: &str) -> Option<Duration> {
        get(&self.limits).get(server)?.timeout
    }

    /// How long a call to where a route leads may take.
    pub(super) fn timeout(&self, route: &Route) -> Duration {
        self.limit(&route.server).unwrap_or(TIMEOUT)
    }

    /// Why calls to where a route leads must fail at once, if they must.
    pub(super) fn refusing(&self, route: &Route) -> Option<String> {
        self.routes().refusing.get(&*route.server).cloned()
    }

    /// Whether what happens now can be recorded.
    pub(super) fn can_record(&self) -> io::Result<()> {
        get(&self.audit).map_or(Ok(()), |audit| audit.ready())
    }

    pub(super) fn record(&self, record: &Record) -> io::Result<()> {
        get(&self.audit).map_or(Ok(()), |audit| audit.write(record))
    }

    /// How many records the audit log has, and its newest digest.
    pub(super) fn audit_head(&self) -> Option<(u64, String)> {
        get(&self.audit).map(|it| it.head())
    }
}
