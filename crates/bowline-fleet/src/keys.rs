//! The keys of the fleet: in the database, and in the ring of each node.

use std::sync::{Mutex, PoisonError};

use bowline::seal::KeyRing;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio_postgres::Row;

use crate::error::FleetError;
use crate::pool::Connections;

/// How long a key is known before it seals, in seconds: longer than any node that is ready goes
/// without reading the keys.
const PROPAGATION: f64 = 10.0;
/// How long a key opens after a newer one seals, in seconds: two days.
const RETIRED: f64 = 172_800.0;
/// How old the newest key gets before there is another one, in seconds: 30 days.
const OLD: f64 = 2_592_000.0;

/// Only one node at a time adds a key.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('bowline.keys'))";

/// The keys.
pub(crate) struct Keys {
    ring: KeyRing,
    /// Seals those in the database.
    wrap: Option<KeyRing>,
    /// What the ring has, in its order.
    loaded: Mutex<Vec<Vec<u8>>>,
}

impl Keys {
    /// Reads the keys; the first node makes one.
    pub(crate) async fn open(
        connections: &Connections,
        secret: Option<Vec<u8>>,
    ) -> Result<Self, FleetError> {
        let wrap = secret.map(|secret| KeyRing::from_secrets([secret])).transpose();
        let wrap = wrap.map_err(|error| FleetError::Keys(error.to_string()))?;
        // Replaced at once: the ring of this node alone would seal what nobody else can open.
        let keys = Self { ring: KeyRing::random(), wrap, loaded: Mutex::default() };
        keys.add_if("NOT EXISTS (SELECT FROM bowline.keys)", connections).await?;
        keys.read(connections).await?;
        Ok(keys)
    }

    pub(crate) fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// Adds a key.
    pub(crate) async fn add(&self, connections: &Connections) -> Result<(), FleetError> {
        self.add_if("true", connections).await
    }

    /// Adds a key if the newest one is old, and removes those that open nothing any more.
    pub(crate) async fn renew(&self, connections: &Connections) -> Result<(), FleetError> {
        let condition = format!(
            "NOT EXISTS (SELECT FROM bowline.keys
             WHERE created > clock_timestamp() - interval '{OLD} s')"
        );
        self.add_if(&condition, connections).await?;
        // A newer one has sealed for so long that nothing is open that this one has sealed.
        let sql = format!(
            "DELETE FROM bowline.keys AS old WHERE EXISTS (SELECT FROM bowline.keys AS newer
             WHERE newer.number > old.number
             AND newer.created < clock_timestamp() - interval '{} s')",
            RETIRED + PROPAGATION
        );
        connections.with(async |client| client.execute(&sql, &[]).await).await?;
        Ok(())
    }

    async fn add_if(&self, condition: &str, connections: &Connections) -> Result<(), FleetError> {
        let mut secret = vec![0; KeyRing::MIN_SECRET];
        let filled = SystemRandom::new().fill(&mut secret);
        filled.map_err(|_| FleetError::Keys("there are no random bytes".to_owned()))?;
        if let Some(wrap) = &self.wrap {
            let sealed = wrap.seal("fleet key", b"", &secret);
            let sealed = sealed.map_err(|error| FleetError::Keys(error.to_string()))?;
            secret = sealed.into_bytes();
        }
        let mut client = connections.get().await?;
        let transaction = client.transaction().await?;
        transaction.execute(LOCK, &[]).await?;
        let sql = format!("INSERT INTO bowline.keys (secret) SELECT $1 WHERE {condition}");
        if transaction.execute(&sql, &[&secret]).await? > 0 {
            tracing::info!("the fleet has another key");
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Reads the keys, and puts them into the ring.
    pub(crate) async fn read(&self, connections: &Connections) -> Result<(), FleetError> {
        let sql = "SELECT secret, extract(epoch FROM clock_timestamp() - created)::float8
            FROM bowline.keys ORDER BY number DESC";
        let rows = connections.with(async |client| {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, &[]).await
        });
        let secrets = self.in_order(&rows.await?)?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if *loaded != secrets {
            let reloaded = self.ring.reload(&secrets);
            reloaded.map_err(|error| FleetError::Keys(error.to_string()))?;
            *loaded = secrets;
        }
        Ok(())
    }

    /// The secrets, that of the key that seals first: the newest that every node has.
    fn in_order(&self, rows: &[Row]) -> Result<Vec<Vec<u8>>, FleetError> {
        let mut secrets = Vec::new();
        let mut sealing = None;
        for (at, row) in rows.iter().enumerate() {
            let stored: Vec<u8> = row.get(0);
            secrets.push(self.unwrap(stored)?);
            if row.get::<_, f64>(1) >= PROPAGATION {
                sealing.get_or_insert(at);
            }
        }
        // A new fleet has one that nobody knows yet, and then its oldest is what all will know.
        let sealing = sealing.unwrap_or_else(|| secrets.len().saturating_sub(1));
        if !secrets.is_empty() {
            let first = secrets.remove(sealing);
            secrets.insert(0, first);
        }
        Ok(secrets)
    }

    fn unwrap(&self, stored: Vec<u8>) -> Result<Vec<u8>, FleetError> {
        let wrong = || {
            let reason = "they are sealed with another secret; help: give all nodes the same one";
            FleetError::Keys(reason.to_owned())
        };
        match &self.wrap {
            None if stored.len() == KeyRing::MIN_SECRET => Ok(stored),
            None => Err(wrong()),
            Some(wrap) => {
                let token = String::from_utf8(stored).map_err(|_| wrong())?;
                wrap.open("fleet key", b"", &token).map_err(|_| wrong())
            }
        }
    }
}
