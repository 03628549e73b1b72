//! Connections that hear hints of other nodes: to Postgres always, to Redis if there is one.

use std::future::poll_fn;
use std::sync::Weak;
use std::time::Duration;

use bowline::with_causes;
use futures_util::StreamExt as _;
use redis::TlsCertificates;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Config};

use crate::changes::PAUSE;
use crate::error::FleetError;
use crate::fleet::Inner;
use crate::tls::Tls;

const CHANNEL: &str = "bowline";

/// How often to ask whether the other end still lives, and how long it may take to say so, or to
/// take part in a handshake.
const PING: Duration = Duration::from_secs(5);

/// Redis, and a connection to it that is made again when it breaks.
#[derive(Clone)]
pub(crate) struct Hints {
    client: redis::Client,
    pub(crate) connection: ConnectionManager,
}

impl Hints {
    /// # Errors
    /// When the address is not one. Redis need not be there.
    pub(crate) fn new(url: &str, root: Option<&[u8]>) -> Result<Self, redis::RedisError> {
        let client = match root {
            None => redis::Client::open(url)?,
            Some(root) => {
                let root_cert = Some(root.to_vec());
                redis::Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert })?
            }
        };
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_max_delay(PAUSE)
            .set_connection_timeout(Some(PAUSE))
            .set_response_timeout(Some(PAUSE));
        let connection = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
        Ok(Self { client, connection })
    }
}

/// Where hints for the nodes of a server are published. Names of channels are short.
pub(crate) fn channel(server: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, server.as_bytes());
    let digits: String = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{CHANNEL}_{digits}")
}

/// Keeps a connection to Postgres that hears notifications.
pub(crate) async fn keep_connected(node: Weak<Inner>, hint: mpsc::Sender<String>) {
    loop {
        let settings = node.upgrade().map(|inner| (inner.connections.settings(), inner.channel()));
        let Some((settings, channel)) = settings else { return };
        let heard = hear(settings, &channel, &hint).await;
        if let Err(error) = heard {
            tracing::debug!(error = %with_causes(&error), "no notifications of Postgres");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn hear(
    (config, tls): (Config, Tls),
    channel: &str,
    hint: &mpsc::Sender<String>,
) -> Result<(), FleetError> {
    let connect = tokio::time::timeout(PING, config.connect(tls));
    let (client, mut connection) = connect.await.map_err(|_| FleetError::Slow(PING))??;
    let listen = format!("LISTEN {channel}");
    let asking = async {
        client.batch_execute(&listen).await?;
        // Whatever was announced before is found by looking.
        let _ = hint.try_send("0\n1".to_owned());
        loop {
            tokio::time::sleep(PING).await;
            let asked = tokio::time::timeout(PING, client.batch_execute(""));
            asked.await.map_err(|_| FleetError::Slow(PING))??;
        }
    };
    let mut asking = std::pin::pin!(asking);
    loop {
        let message = tokio::select! {
            failed = &mut asking => return failed,
            message = poll_fn(|cx| connection.poll_message(cx)) => message,
        };
        match message {
            None => return Ok(()),
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(AsyncMessage::Notification(notification))) => {
                if hint.send(notification.payload().to_owned()).await.is_err() {
                    return Ok(());
                }
            }
            Some(Ok(_)) => {}
        }
    }
}

/// Keeps a connection to Redis that hears what is published.
pub(crate) async fn keep_subscribed(node: Weak<Inner>, hint: mpsc::Sender<String>) {
    loop {
        let Some(inner) = node.upgrade() else { return };
        let Some(Hints { client, .. }) = inner.redis.clone() else { return };
        let channel = inner.channel();
        drop(inner);
        if let Err(error) = subscribe(&client, &channel, &hint).await {
            tracing::debug!(error = %with_causes(&error), "no messages of Redis");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn subscribe(
    redis: &redis::Client,
    channel: &str,
    hint: &mpsc::Sender<String>,
) -> Result<(), FleetError> {
    let slow = |_| FleetError::Slow(PING);
    let subscribe = async {
        let mut subscribed = redis.get_async_pubsub().await?;
        subscribed.subscribe(channel).await?;
        Ok::<_, redis::RedisError>(subscribed)
    };
    let subscribed = tokio::time::timeout(PING, subscribe).await.map_err(slow)??;
    let _ = hint.try_send("0\n1".to_owned());
    let (mut asked, mut messages) = subscribed.split();
    let asking = async {
        loop {
            tokio::time::sleep(PING).await;
            tokio::time::timeout(PING, asked.ping::<redis::Value>()).await.map_err(slow)??;
        }
    };
    let mut asking = std::pin::pin!(asking);
    loop {
        let message = tokio::select! {
            failed = &mut asking => return failed,
            message = messages.next() => message,
        };
        let Some(message) = message else { return Ok(()) };
        if hint.send(message.get_payload()?).await.is_err() {
            return Ok(());
        }
    }
}
