//! How a gateway and its servers are, for people.

use serde::Serialize;

use super::merge::{Kind, Route};
use super::policy::{Decision, Who};
use super::{Gateway, Health};

/// How one server is.
#[derive(Debug, Clone, Serialize)]
pub struct ServerStatus {
    /// Its key.
    pub server: String,
    /// How it is.
    #[serde(flatten)]
    pub health: Health,
    /// How often it was connected to.
    pub starts: u64,
    /// The process, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// How many tools clients see of it, if the rules let them.
    pub tools: usize,
}

/// How a gateway is.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Whether at least one server answers, or there are none.
    pub is_ready: bool,
    /// Its servers.
    pub servers: Vec<ServerStatus>,
    /// What people should know: names that clash or are too long.
    pub problems: Vec<String>,
    /// How many records the audit log has, and its newest digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<(u64, String)>,
    /// How many spans were dropped, if they are sent somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans_dropped: Option<u64>,
}

impl Gateway {
    /// How everything is.
    #[must_use]
    pub fn status(&self) -> Status {
        let (current, routes) = (self.0.now(), self.0.shared.routes());
        let servers = current.upstreams.iter().map(|it| {
            let own = routes
                .own
                .keys()
                .filter(|(key, kind, _)| *key == it.plan.key && *kind == Kind::Tool);
            ServerStatus {
                server: it.plan.key.clone(),
                health: it.health(),
                starts: it.starts(),
                process: it.process_id(),
                tools: own.count(),
            }
        });
        Status {
            is_ready: self.is_ready(),
            servers: servers.collect(),
            problems: routes.problems.clone(),
            audit: self.0.shared.audit_head(),
            spans_dropped: self.0.shared.telemetry().map(|it| it.dropped()),
        }
    }

    /// The metrics in Prometheus' text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        let servers = self.status().servers.into_iter();
        let servers = servers.map(|it| (it.server, it.health == Health::Up, it.starts));
        self.0.shared.metrics.text(&servers.collect::<Vec<_>>())
    }

    /// What the rules say about somebody and a tool, by its name at the endpoint for all, or as
    /// `server/name`.
    #[must_use]
    pub fn explain(&self, who: &Who, tool: &str) -> (String, Decision) {
        let (server, name) = match self.0.shared.route(None, Kind::Tool, tool) {
            Some(route) => (route.server.to_string(), route.name),
            None => match tool.split_once('/') {
                Some((server, name)) => (server.to_owned(), name.to_owned()),
                None => (String::new(), tool.to_owned()),
            },
        };
        let mut decision = self.0.shared.rules().decide(who, &server, &[&name]);
        let routes = self.0.shared.routes();
        let is_it = |it: &Route| it.kind == Kind::Tool && *it.server == *server && it.name == name;
        if decision.is_allowed && !routes.own.values().any(is_it) {
            decision.is_allowed = false;
            "there is no such tool now".clone_into(&mut decision.rule);
        }
        (format!("{server}/{name}"), decision)
    }
}
