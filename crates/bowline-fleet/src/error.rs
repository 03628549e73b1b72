//! Why a fleet cannot be joined.

use bowline::tasks::StoreError;

/// Why a fleet cannot be joined or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The address of a store is not one.
    #[error("{url:?} is not the address of a store: {reason}")]
    Address {
        /// The address, without its password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Postgres cannot be reached, or rejected a statement.
    #[error("Postgres failed")]
    Postgres(#[from] tokio_postgres::Error),
    /// No connection to Postgres was free or could be opened in time.
    #[error("there is no connection to Postgres")]
    Pool(#[from] deadpool_postgres::PoolError),
    /// Postgres did not answer in time.
    #[error("Postgres did not answer within {0:?}")]
    Slow(std::time::Duration),
    /// Redis cannot be used.
    #[error("Redis failed")]
    Redis(#[from] redis::RedisError),
    /// The tables were made by a later release.
    #[error(
        "the tables are at migration {found}, and this release knows {known}; help: run the \
         release that made them, or a later one"
    )]
    TooNew {
        /// The latest migration of the database.
        found: i32,
        /// The latest that this release has.
        known: i32,
    },
    /// The keys in the database cannot be used.
    #[error("the keys of the fleet cannot be used: {0}")]
    Keys(String),
}

impl From<FleetError> for StoreError {
    fn from(error: FleetError) -> Self {
        Self::failed(error)
    }
}
