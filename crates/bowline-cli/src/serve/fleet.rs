//! `--fleet`: one of several processes that serve the same.

use bowline::{Server, with_causes};
use bowline_fleet::Fleet;
use clap::Args;

use crate::failure::Failure;

/// The variable with the secret that seals the keys in the database.
const SECRET: &str = "BOWLINE_FLEET_SECRET";

/// The fleet that a server joins, if it does.
#[derive(Args, Default)]
pub(super) struct FleetArgs {
    /// With --http, be one of several processes that serve the same and share what they know in
    /// this database, as in `postgres://user@host/name`; `BOWLINE_FLEET_SECRET`, the same for all of
    /// them, seals the keys in it
    #[arg(long = "fleet", id = "fleet", value_name = "URL", requires = "http")]
    url: Option<String>,

    /// With --fleet, let news travel through this Redis or Valkey, as in `redis://host`
    #[arg(long = "fleet-redis", value_name = "URL", requires = "fleet")]
    redis: Option<String>,

    /// With --fleet, where the other processes reach this one, as in `http://10.0.0.7:8080`; defaults
    /// to the address of --http
    #[arg(long = "fleet-address", value_name = "ORIGIN", requires = "fleet")]
    address: Option<String>,
}

impl FleetArgs {
    /// Joins the fleet, if there is one.
    pub(super) async fn join(self, server: Server) -> Result<Server, Failure> {
        let Some(url) = self.url else { return Ok(server) };
        let mut fleet = Fleet::builder(url);
        if let Some(redis) = self.redis {
            fleet = fleet.redis(redis);
        }
        if let Some(address) = self.address {
            fleet = fleet.address(address);
        }
        if let Ok(secret) = std::env::var(SECRET) {
            fleet = fleet.secret(secret);
        }
        let fleet = fleet.connect().await.map_err(|error| {
            Failure::usage(format!("--fleet: {}", with_causes(&error)))
                .with_remedy("does the database exist, and may this user create a schema in it?")
        })?;
        Ok(server.fleet(fleet))
    }
}
