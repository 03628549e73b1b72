//! The state of a session, for people.

use bowline::client::{CloseReason, Peer, State};

use super::Talk;
use crate::commands::info::era;
use crate::render::wire::time;
use crate::text::line;

impl Talk {
    /// Describes the connection, the server, and what is running.
    pub(super) fn status(&self) -> String {
        let mut rows: Vec<(&str, String)> = vec![("target", line(&self.link.resolved.name))];
        let client = self.link.client();
        let state = client.map(bowline::Client::state);
        rows.push(("connection", phase(state.as_ref(), self.link.opened)));
        if let Some(peer) = client.and_then(bowline::Client::peer) {
            rows.extend(server(&peer));
        }
        if let Some(id) = client.and_then(bowline::Client::process_id) {
            rows.push(("process", id.to_string()));
        }
        if let Some(reason) = state.and_then(|state| state.reason) {
            rows.extend(end(&reason));
            let said = [String::from("stderr"), String::from("5")];
            let log = self.link.log();
            rows.extend(log.filtered(&said).iter().map(|it| ("stderr", line(&it.text))));
        }
        for (number, job) in &self.jobs {
            let title = line(&job.title);
            rows.push((
                "running",
                format!("[{number}] {title}, {}", time(job.age().as_secs_f64())),
            ));
        }
        for call in client.map(bowline::Client::pending).unwrap_or_default() {
            let (id, method) = (line(&call.id.to_string()), line(&call.method));
            rows.push(("awaited", format!("{method} (id {id}), {}", time(call.age.as_secs_f64()))));
        }
        for uri in self.subscriptions.keys() {
            rows.push(("subscribed", line(uri)));
        }
        let rows: Vec<String> =
            rows.iter().map(|(name, value)| format!("{name:<10}  {value}")).collect();
        rows.join("\n")
    }
}

fn phase(state: Option<&State>, opened: u64) -> String {
    let word = state.map(|state| format!("{:?}", state.phase).to_lowercase());
    let word = word.unwrap_or_else(|| "none".to_owned());
    match opened {
        0 | 1 => word,
        2 => format!("{word}, restarted once"),
        times => format!("{word}, restarted {} times", times - 1),
    }
}

fn server(peer: &Peer) -> Vec<(&'static str, String)> {
    let (revision, era) = (peer.revision, era(peer.revision));
    let mut rows = vec![("revision", format!("{revision}, {era} era"))];
    if let Some(info) = &peer.info {
        let title = info.title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
        rows.insert(0, ("server", line(&format!("{} {}{title}", info.name, info.version))));
    }
    rows
}

fn end(reason: &CloseReason) -> Vec<(&'static str, String)> {
    match reason {
        CloseReason::Exited(exit) => vec![("ended", line(&exit.status))],
        other => vec![("ended", line(&other.to_string()))],
    }
}
