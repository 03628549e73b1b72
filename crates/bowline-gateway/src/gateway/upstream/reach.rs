//! How a server is reached: connecting to it, asking whether it is well, and why it is not.

use std::sync::Arc;
use std::time::Duration;

use bowline::client::{Client, Restart, State, Target};
use bowline::proxy::ProxyError;
use bowline::{Proxy, with_causes};
use bowline_proto::method::{Method, Ping, SubscriptionsListen};

use super::{Around, Upstream, lock};

/// How long a server that starts keeps others from starting: one that hangs would for ever.
const TURN: Duration = Duration::from_secs(10);

/// How long a server has to answer a ping.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a server is down.
pub(super) struct Cause {
    /// For its operator.
    pub(super) why: String,
    /// For callers: without what its process wrote to standard error.
    pub(super) told: String,
    /// Whether calls could still reach it.
    pub(super) is_reachable: bool,
}

impl Cause {
    /// No call can reach it.
    pub(super) fn over(why: impl Into<String>) -> Self {
        let why = why.into();
        Self { told: why.clone(), why, is_reachable: false }
    }

    fn of(error: &ProxyError) -> Self {
        Self { told: with_causes(&error.without_stderr()), ..Self::over(with_causes(error)) }
    }

    pub(super) fn ended(state: Option<&State>) -> Self {
        match state.and_then(|state| state.reason.as_ref()) {
            Some(reason) => {
                let told = reason.without_stderr().to_string();
                Self { told, ..Self::over(reason.to_string()) }
            }
            None => Self::over("the connection is closed"),
        }
    }
}

/// Connects, when it is its turn.
pub(super) async fn connect(this: &Upstream, around: &Around) -> Result<Proxy, Cause> {
    let Ok(turn) = around.starts.acquire().await else { return Err(Cause::over("stopped")) };
    let target = (this.plan.target)().map_err(Cause::over)?;
    let (make, again, preference) =
        (Arc::clone(&this.plan.client), Arc::clone(&this.plan.target), this.plan.preference);
    let client = move || make().preference(preference).restart(Restart::Never);
    let builder = Proxy::builder(client());
    let builder = match around.has_one_caller {
        true => builder.one_caller(),
        // A server that asks its callers gets a connection for each of them.
        false => builder.further(move || {
            let target = again().unwrap_or_else(|why| Target::from(format!("unusable: {why}")));
            (client(), target)
        }),
    };
    let limit = *lock(&around.start);
    let connected = tokio::time::timeout(limit, builder.connect(target));
    let mut connected = std::pin::pin!(connected);
    let connected = match tokio::time::timeout(TURN, &mut connected).await {
        Ok(connected) => connected,
        Err(_) => {
            drop(turn);
            connected.await
        }
    };
    match connected {
        Ok(Ok(proxy)) => Ok(proxy),
        Ok(Err(error)) => Err(Cause::of(&error)),
        Err(_) => Err(Cause::over(format!("it did not start within {limit:?}"))),
    }
}

/// Asks a server whether it is well. One that runs a call may have no time to answer.
pub(super) async fn ask(client: &Client, busy: Duration) -> Result<(), Cause> {
    let oldest = || {
        let mut calls = client.pending().into_iter();
        calls.find(|it| it.method != Ping::NAME && it.method != SubscriptionsListen::NAME)
    };
    match tokio::time::timeout(PATIENCE, client.ping()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.as_refusal().is_some() => Ok(()),
        Ok(Err(error)) => {
            let told = with_causes(&error.without_stderr());
            Err(Cause { told, is_reachable: true, ..Cause::over(with_causes(&error)) })
        }
        Err(_) if oldest().is_some_and(|call| call.age < busy) => Ok(()),
        Err(_) => Err(Cause::over("it does not answer a ping")),
    }
}
