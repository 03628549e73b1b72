//! `--fleet`: one of several processes that serve the same.

use std::env;
use std::net::SocketAddr;

use bowline::{Server, with_causes};
use bowline_fleet::Fleet;
use clap::Args;
use tokio::net::TcpListener;

use crate::failure::Failure;

/// The variable with the address of the database: other users can read arguments, and not this.
const FLEET: &str = "BOWLINE_FLEET";
/// The variable with the address of Redis, for the same reason.
const REDIS: &str = "BOWLINE_FLEET_REDIS";
/// The variable with the secret that seals the keys in the database.
const SECRET: &str = "BOWLINE_FLEET_SECRET";
/// The variable with another one, which also opens them while the secret is being changed.
const OTHER_SECRET: &str = "BOWLINE_FLEET_OTHER_SECRET";

/// The fleet that a server joins, if it does.
#[derive(Args, Default)]
pub(super) struct FleetArgs {
    /// With --http, join a fleet whose processes share their state in this database, such as
    /// `postgres://user@host/name`; set `BOWLINE_FLEET` instead to keep the password off the
    /// command line. `BOWLINE_FLEET_SECRET`, the same for all of them, seals the keys in it
    #[arg(long = "fleet", id = "fleet", value_name = "URL", requires = "http")]
    url: Option<String>,

    /// In a fleet, notify the other processes through this Redis or Valkey, such as `redis://host`;
    /// set `BOWLINE_FLEET_REDIS` instead if the address has a password
    #[arg(long = "fleet-redis", value_name = "URL")]
    redis: Option<String>,

    /// In a fleet, where the other processes reach this one, such as `http://10.0.0.7:8080`;
    /// defaults to the address of --http
    #[arg(long = "fleet-address", value_name = "ORIGIN")]
    address: Option<String>,

    /// In a fleet, answer `/metrics` on this address, for Prometheus
    #[arg(long = "fleet-metrics", value_name = "ADDR")]
    metrics: Option<SocketAddr>,
}

impl FleetArgs {
    /// Joins the fleet, if there is one.
    pub(super) async fn join(
        self,
        server: Server,
        http: Option<SocketAddr>,
    ) -> Result<Server, Failure> {
        let variable = || env::var(FLEET).ok().filter(|url| !url.is_empty() && http.is_some());
        let Some(url) = self.url.or_else(variable) else {
            return match self.redis.is_some() || self.address.is_some() || self.metrics.is_some() {
                true => Err(Failure::usage("there is no fleet: --fleet is missing")
                    .with_remedy(format!("give --fleet URL, or set {FLEET}, and --http"))),
                false => Ok(server),
            };
        };
        if let Some(address) = http.filter(|it| it.ip().is_unspecified() && self.address.is_none())
        {
            return Err(Failure::usage(format!(
                "--http {address}: the other processes of the fleet need an address of this one"
            ))
            .with_remedy("add --fleet-address, as in `--fleet-address http://10.0.0.7:8080`"));
        }
        let mut fleet = Fleet::builder(url);
        let redis = || env::var(REDIS).ok().filter(|url| !url.is_empty());
        if let Some(redis) = self.redis.or_else(redis) {
            fleet = fleet.redis(redis);
        }
        if let Some(address) = self.address {
            fleet = fleet.address(address);
        }
        if let Ok(secret) = env::var(SECRET) {
            fleet = fleet.secret(secret);
        }
        if let Ok(secret) = env::var(OTHER_SECRET) {
            fleet = fleet.other_secret(secret);
        }
        let fleet = fleet.connect().await.map_err(|error| {
            Failure::usage(format!("--fleet: {}", with_causes(&error)))
                .with_remedy("does the database exist, and may this user create a schema in it?")
        })?;
        if let Some(address) = self.metrics {
            let listener = TcpListener::bind(address).await.map_err(|error| {
                Failure::usage(format!("--fleet-metrics: cannot listen on {address}: {error}"))
            })?;
            let fleet = fleet.clone();
            // As long as the process.
            tokio::spawn(async move { fleet.serve_metrics(listener).await });
        }
        Ok(server.fleet(fleet))
    }
}
