//! Connections to Postgres, none of which can wait for ever.

use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts,
};
use tokio::time::Instant;
use tokio_postgres::Config;

use crate::error::FleetError;
use crate::tls::{Tls, Wanted};

/// Connections to Postgres. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    config: Config,
    tls: Tls,
    patience: Duration,
    waits: Arc<Waits>,
}

/// How often and how long somebody waited for a connection.
#[derive(Default)]
struct Waits {
    times: AtomicU64,
    micros: AtomicU64,
}

/// How a pool is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) open: u64,
    pub(crate) idle: u64,
    /// How often a connection was asked for, and how long that took in all.
    pub(crate) taken: u64,
    pub(crate) waited: Duration,
}

impl Connections {
    /// # Errors
    /// When the address is malformed.
    pub(crate) fn new(url: &str, size: usize, patience: Duration) -> Result<Self, FleetError> {
        let malformed = |reason: String| FleetError::Address { url: without_password(url), reason };
        let Wanted { url: rest, mode, tls } = Wanted::read(url).map_err(malformed)?;
        let mut config = Config::from_str(&rest).map_err(|error| malformed(error.to_string()))?;
        if config.get_hosts().is_empty() {
            return Err(malformed("it names no host".to_owned()));
        }
        if let Some(mode) = mode {
            config.ssl_mode(mode);
        }
        if config.get_application_name().is_none() {
            config.application_name("bowline");
        }
        config.connect_timeout(patience);
        // A peer that is gone without a word is noticed by the kernel.
        config.tcp_user_timeout(patience * 2);
        config.keepalives_idle(Duration::from_secs(10));
        let settings = settings(config.get_options().unwrap_or_default(), patience);
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
        let wait = Some(patience);
        let timeouts = Timeouts { wait, create: wait, recycle: wait };
        let pool = Pool::builder(manager)
            .max_size(size)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .post_create(Hook::async_fn(move |client, _| {
                let settings = settings.clone();
                Box::pin(async move {
                    client.batch_execute(&settings).await.map_err(HookError::Backend)
                })
            }))
            .build()
            .map_err(|error| malformed(error.to_string()))?;
        Ok(Self { pool, config, tls, patience, waits: Arc::default() })
    }

    /// A connection of the pool.
    async fn get(&self) -> Result<Client, FleetError> {
        let began = Instant::now();
        let got = self.pool.get().await;
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.waits.times.fetch_add(1, Ordering::Relaxed);
        self.waits.micros.fetch_add(micros, Ordering::Relaxed);
        Ok(got?)
    }

    /// Does something with a connection, within the time that Postgres has for an answer. A
    /// connection that took longer is not used again.
    pub(crate) async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, FleetError> {
        let work = async |client: &mut Client| Ok(work(client).await?);
        self.with_within(self.patience, work).await
    }

    /// The same for transactions, and for what may take longer.
    pub(crate) async fn with_within<T>(
        &self,
        time: Duration,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        let mut client = self.get().await?;
        match tokio::time::timeout(time, work(&mut client)).await {
            Ok(done) => done,
            Err(_) => {
                drop(deadpool_postgres::Object::take(client));
                Err(FleetError::Slow(time))
            }
        }
    }

    /// How long Postgres may take for an answer.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// What a connection of its own needs.
    pub(crate) fn settings(&self) -> (Config, Tls) {
        (self.config.clone(), self.tls.clone())
    }

    pub(crate) fn usage(&self) -> Usage {
        let status = self.pool.status();
        Usage {
            open: status.size as u64,
            idle: status.available as u64,
            taken: self.waits.times.load(Ordering::Relaxed),
            waited: Duration::from_micros(self.waits.micros.load(Ordering::Relaxed)),
        }
    }
}

/// What is set on every connection, unless its address sets it: the server gives up as well, so
/// that a partition leaves no locks behind. Poolers in front of Postgres refuse it at the start of
/// a connection, so it is said afterwards.
fn settings(given: &str, patience: Duration) -> String {
    let millis = patience.as_millis();
    let ours = [
        ("statement_timeout", millis),
        ("lock_timeout", millis),
        ("idle_in_transaction_session_timeout", millis * 2),
    ];
    let ours = ours.into_iter().filter(|(name, _)| !given.contains(name));
    let mut settings: String =
        ours.map(|(name, millis)| format!("SET {name} = {millis};")).collect();
    if !given.contains("synchronous_commit") {
        // What is acknowledged must survive a crash, whatever the database does by default.
        settings += "SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') = 'off';";
    }
    settings
}

/// An address as it may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let rest = rest.split('?').next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("postgres://ada:s3cret@db/x"), "postgres://ada@db/x");
        assert_eq!(without_password("postgres://ada:s3@cret@db/x"), "postgres://ada@db/x");
        assert_eq!(without_password("postgres://db/x?password=s3cret"), "postgres://db/x");
        assert_eq!(without_password("postgres://db/x"), "postgres://db/x");
        assert_eq!(without_password("host=db password=s3cret"), "…");
    }

    #[test]
    fn what_an_address_sets_stays_as_it_is() {
        let all = settings("", Duration::from_secs(5));
        let expected = "SET statement_timeout = 5000;SET lock_timeout = 5000;\
             SET idle_in_transaction_session_timeout = 10000;SELECT set_config(";
        assert!(all.starts_with(expected), "{all}");
        let given = "-c statement_timeout=100 -c synchronous_commit=off";
        let rest = settings(given, Duration::from_secs(5));
        assert!(!rest.contains("statement_timeout") && !rest.contains("commit"), "{rest}");
    }
}
