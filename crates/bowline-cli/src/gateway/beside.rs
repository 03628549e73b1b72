//! What runs beside a gateway: its admin socket, its metrics, and SIGHUP. Trouble with them is
//! reported, tried again, and never ends the gateway.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_gateway::gateway::{Gateway, admin, serve_metrics};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::running::{Given, Running};
use super::say;

/// How long to wait before what failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// The admin socket, the metrics, and SIGHUP.
pub(super) async fn beside(
    running: &Arc<Running>,
    given: &Given,
    drain: &Arc<Notify>,
    socket: Option<&Path>,
) -> Infallible {
    let admin = async {
        let Some(path) = socket else { return std::future::pending().await };
        let (running, given, drain) = (Arc::clone(running), given.clone(), Arc::clone(drain));
        let answer: admin::Answer = Arc::new(move |question| {
            let (running, given) = (Arc::clone(&running), given.clone());
            let drain = Arc::clone(&drain);
            Box::pin(async move { running.answer(question, &given, &drain).await })
        });
        again(async || {
            let why = listen_for_admin(path, Arc::clone(&answer)).await;
            format!("the admin socket {} cannot be used: {why}", path.display())
        })
        .await
    };
    let measured = async {
        let Some(address) = running.metrics() else { return std::future::pending().await };
        again(async || {
            let why = measure(address, running.gateway.clone()).await;
            format!("cannot serve metrics on {address}: {why}")
        })
        .await
    };
    tokio::select! {
        never = admin => never,
        never = measured => never,
        never = hangups(running, given) => never,
    }
}

/// Tries something again whenever it ends, and says why it did, once.
async fn again(mut work: impl AsyncFnMut() -> String) -> Infallible {
    let mut told = String::new();
    loop {
        let why = work().await;
        if why != told {
            say(&why);
            told = why;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn measure(address: SocketAddr, gateway: Gateway) -> String {
    match TcpListener::bind(address).await {
        Ok(listener) => {
            serve_metrics(listener, gateway).await;
            "it ended".to_owned()
        }
        Err(error) => error.to_string(),
    }
}

#[cfg(unix)]
async fn listen_for_admin(path: &Path, answer: admin::Answer) -> String {
    let served = admin::serve(path, answer).await;
    served.map_or_else(|error| error.to_string(), |()| "it ended".to_owned())
}

#[cfg(not(unix))]
async fn listen_for_admin(_: &Path, _: admin::Answer) -> String {
    "there are no such sockets on this system".to_owned()
}

/// Reloads on SIGHUP.
#[cfg(unix)]
async fn hangups(running: &Arc<Running>, given: &Given) -> Infallible {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::hangup()) {
        Ok(mut hangup) => {
            while hangup.recv().await.is_some() {
                match running.reload(given).await {
                    Ok(status) => {
                        let note = status.get("note").and_then(|it| it.as_str());
                        say(&note
                            .map_or_else(|| "reloaded".to_owned(), |it| format!("reloaded; {it}")));
                    }
                    Err(why) => say(&format!("not reloaded, nothing has changed: {why}")),
                }
            }
        }
        Err(error) => say(&format!("cannot wait for SIGHUP: {error}")),
    }
    std::future::pending().await
}

#[cfg(not(unix))]
async fn hangups(_: &Arc<Running>, _: &Given) -> Infallible {
    std::future::pending().await
}
