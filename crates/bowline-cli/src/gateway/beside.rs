//! What runs beside a gateway: its admin socket, its metrics, and SIGHUP.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bowline_gateway::gateway::admin;
use tokio::sync::Notify;

use super::Running;

/// The admin socket, the metrics, and SIGHUP. Returns what went wrong.
pub(super) async fn beside(
    running: &Arc<Running>,
    drain: &Arc<Notify>,
    socket: Option<&Path>,
    metrics: Option<SocketAddr>,
) -> String {
    let admin = async {
        let Some(path) = socket else { return std::future::pending().await };
        let (running, drain) = (Arc::clone(running), Arc::clone(drain));
        let answer: admin::Answer = Arc::new(move |question| {
            let (running, drain) = (Arc::clone(&running), Arc::clone(&drain));
            Box::pin(async move { running.answer(question, &drain).await })
        });
        let failed = listen_for_admin(path, answer).await;
        format!("{}: {failed}", path.display())
    };
    let measured = async {
        let Some(address) = metrics else { return std::future::pending().await };
        let gateway = running.gateway.clone();
        let served = bowline_gateway::gateway::serve_metrics(address, gateway).await;
        let why = served.map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
        format!("cannot serve metrics on {address}: {why}")
    };
    tokio::select! {
        failed = admin => failed,
        failed = measured => failed,
        never = hangups(running) => never,
    }
}

#[cfg(unix)]
async fn listen_for_admin(path: &Path, answer: admin::Answer) -> String {
    let served = admin::serve(path, answer).await;
    served.map_or_else(|error| error.to_string(), |()| "it ended".to_owned())
}

#[cfg(not(unix))]
async fn listen_for_admin(_: &Path, _: admin::Answer) -> String {
    "the admin socket exists on Unix only".to_owned()
}

/// Reloads on SIGHUP.
#[cfg(unix)]
async fn hangups(running: &Arc<Running>) -> String {
    use super::say;
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => return format!("cannot wait for SIGHUP: {error}"),
    };
    while hangup.recv().await.is_some() {
        match running.reload().await {
            Ok(_) => say("reloaded"),
            Err(why) => say(&format!("not reloaded, nothing has changed: {why}")),
        }
    }
    std::future::pending().await
}

#[cfg(not(unix))]
async fn hangups(_: &Arc<Running>) -> String {
    std::future::pending().await
}
