//! Connections to Postgres, none of which can wait for ever.

use std::str::FromStr as _;
use std::time::Duration;

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use tokio_postgres::{Config, NoTls};

use crate::error::FleetError;

/// Connections to Postgres. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    config: Config,
    patience: Duration,
}

impl Connections {
    /// # Errors
    /// When the address is malformed.
    pub(crate) fn new(url: &str, size: usize, patience: Duration) -> Result<Self, FleetError> {
        let malformed = |reason: String| FleetError::Address { url: without_password(url), reason };
        let mut config = Config::from_str(url).map_err(|error| malformed(error.to_string()))?;
        if config.get_hosts().is_empty() {
            return Err(malformed("it names no host".to_owned()));
        }
        config.application_name("bowline");
        config.connect_timeout(patience);
        // A peer that is gone without a word is noticed by the kernel.
        config.tcp_user_timeout(patience * 2);
        config.keepalives_idle(Duration::from_secs(10));
        let millis = patience.as_millis();
        // The server gives up as well, so that a partition leaves no locks behind.
        config.options(format!(
            "-c statement_timeout={millis} -c lock_timeout={millis} \
             -c idle_in_transaction_session_timeout={}",
            millis * 2
        ));
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), NoTls, recycling);
        let wait = Some(patience);
        let timeouts = Timeouts { wait, create: wait, recycle: wait };
        let pool = Pool::builder(manager)
            .max_size(size)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| malformed(error.to_string()))?;
        Ok(Self { pool, config, patience })
    }

    /// A connection of the pool.
    pub(crate) async fn get(&self) -> Result<Client, FleetError> {
        Ok(self.pool.get().await?)
    }

    /// Does something with a connection, within the time that Postgres has for an answer. A
    /// connection that took longer is not used again.
    pub(crate) async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, FleetError> {
        let client = self.get().await?;
        match tokio::time::timeout(self.patience, work(&client)).await {
            Ok(done) => Ok(done?),
            Err(_) => {
                drop(deadpool_postgres::Object::take(client));
                Err(FleetError::Slow(self.patience))
            }
        }
    }

    /// Its settings, for a connection of its own.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// How many connections are open, and how many of those are idle.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }
}

/// An address as it may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    match rest.split_once('@') {
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
        assert_eq!(without_password("postgres://db/x"), "postgres://db/x");
        assert_eq!(without_password("host=db password=s3cret"), "…");
    }
}
