//! The keys of the fleet: in the database, and in the ring of each node.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bowline::seal::KeyRing;
use deadpool_postgres::Client;
use ring::hmac;
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
const PURPOSE: &str = "fleet key";

/// The keys.
pub(crate) struct Keys {
    ring: KeyRing,
    /// Seals those in the database.
    wrap: Option<Wrap>,
    /// The server, whose keys no other server has.
    server: Arc<OnceLock<String>>,
    /// What the ring is made of, in its order.
    loaded: Mutex<Vec<Vec<u8>>>,
}

/// What seals the keys in the database.
struct Wrap {
    /// Seals with the first secret, and opens with both.
    both: KeyRing,
    /// Only the first secret.
    first: KeyRing,
}

impl Wrap {
    fn new(secret: &[u8], other: Option<&[u8]>) -> Result<Self, FleetError> {
        let ring = |secrets: Vec<&[u8]>| {
            let ring = KeyRing::from_secrets(secrets);
            ring.map_err(|error| FleetError::Keys(error.to_string()))
        };
        let both = ring([Some(secret), other].into_iter().flatten().collect())?;
        Ok(Self { both, first: ring(vec![secret])? })
    }

    fn seal(&self, secret: &[u8]) -> Result<Vec<u8>, FleetError> {
        let sealed = self.first.seal(PURPOSE, b"", secret);
        sealed.map(String::into_bytes).map_err(|error| FleetError::Keys(error.to_string()))
    }
}

impl Keys {
    /// Reads the keys; the first node makes one.
    pub(crate) async fn open(
        connections: &Connections,
        (secret, other): (Option<Vec<u8>>, Option<Vec<u8>>),
        server: Arc<OnceLock<String>>,
    ) -> Result<Self, FleetError> {
        let wrap = match (&secret, &other) {
            (Some(secret), other) => Some(Wrap::new(secret, other.as_deref())?),
            (None, None) => {
                tracing::warn!(
                    "anybody who can read the database can read the keys of the fleet; help: set \
                     a secret, with `FleetBuilder::secret` or BOWLINE_FLEET_SECRET"
                );
                None
            }
            (None, Some(_)) => {
                let reason = "there is another secret, but none that seals; help: set both";
                return Err(FleetError::Keys(reason.to_owned()));
            }
        };
        // Replaced at once: the ring of this node alone would seal what nobody else can open.
        let keys = Self { ring: KeyRing::random(), wrap, server, loaded: Mutex::default() };
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

    /// Replaces all keys by a new one: whatever was sealed before opens nowhere any more.
    pub(crate) async fn replace(&self, connections: &Connections) -> Result<(), FleetError> {
        let stored = self.generate()?;
        let replace = async |client: &mut Client| {
            let transaction = client.transaction().await?;
            transaction.execute(LOCK, &[]).await?;
            transaction.execute("DELETE FROM bowline.keys", &[]).await?;
            let sql = "INSERT INTO bowline.keys (secret) VALUES ($1)";
            transaction.execute(sql, &[&stored]).await?;
            Ok(transaction.commit().await?)
        };
        connections.with_within(connections.patience(), replace).await?;
        self.read(connections).await
    }

    /// Adds a key if the newest one is old, removes those that open nothing any more, and seals
    /// with the first secret what another one has sealed.
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
        self.wrap_again(connections).await
    }

    async fn wrap_again(&self, connections: &Connections) -> Result<(), FleetError> {
        let Some(wrap) = &self.wrap else { return Ok(()) };
        let sql = "SELECT number, secret FROM bowline.keys";
        for row in connections.with(async |client| client.query(sql, &[]).await).await? {
            let (number, stored): (i64, Vec<u8>) = (row.get(0), row.get(1));
            let token = String::from_utf8_lossy(&stored);
            if wrap.first.open(PURPOSE, b"", &token).is_ok() {
                continue;
            }
            let sealed = wrap.seal(&self.unwrap(stored.clone())?)?;
            let sql = "UPDATE bowline.keys SET secret = $3 WHERE number = $1 AND secret = $2";
            let update =
                async |client: &Client| client.execute(sql, &[&number, &stored, &sealed]).await;
            connections.with(update).await?;
            tracing::info!(number, "a key of the fleet is sealed with another secret now");
        }
        Ok(())
    }

    /// A new secret, as it is stored.
    fn generate(&self) -> Result<Vec<u8>, FleetError> {
        let mut secret = vec![0; KeyRing::MIN_SECRET];
        let filled = SystemRandom::new().fill(&mut secret);
        filled.map_err(|_| FleetError::Keys("there are no random bytes".to_owned()))?;
        match &self.wrap {
            Some(wrap) => wrap.seal(&secret),
            None => Ok(secret),
        }
    }

    async fn add_if(&self, condition: &str, connections: &Connections) -> Result<(), FleetError> {
        let stored = self.generate()?;
        let sql = format!("INSERT INTO bowline.keys (secret) SELECT $1 WHERE {condition}");
        let add = async |client: &mut Client| {
            let transaction = client.transaction().await?;
            transaction.execute(LOCK, &[]).await?;
            let added = transaction.execute(&sql, &[&stored]).await?;
            transaction.commit().await?;
            Ok(added)
        };
        if connections.with_within(connections.patience(), add).await? > 0 {
            tracing::info!("the fleet has another key");
        }
        Ok(())
    }

    /// Reads the keys, and puts them into the ring. If there is none, because it is a new fleet or
    /// because somebody has removed a key that has leaked, there is one afterwards.
    pub(crate) async fn read(&self, connections: &Connections) -> Result<(), FleetError> {
        let sql = "SELECT secret, extract(epoch FROM clock_timestamp() - created)::float8
            FROM bowline.keys ORDER BY number DESC";
        let read = async || {
            connections
                .with(async |client| {
                    let statement = client.prepare_cached(sql).await?;
                    client.query(&statement, &[]).await
                })
                .await
        };
        let mut rows = read().await?;
        if rows.is_empty() {
            self.add_if("NOT EXISTS (SELECT FROM bowline.keys)", connections).await?;
            rows = read().await?;
        }
        let secrets = self.in_order(&rows)?;
        let mut loaded = self.lock();
        if *loaded != secrets {
            self.reload(&secrets)?;
            *loaded = secrets;
        }
        Ok(())
    }

    /// Makes the ring that of the server, now that it is known.
    pub(crate) fn belong(&self) {
        if let Err(error) = self.reload(&self.lock()) {
            tracing::error!(%error, "the keys of a fleet cannot be used");
        }
    }

    fn reload(&self, secrets: &[Vec<u8>]) -> Result<(), FleetError> {
        let server = self.server.get().map_or("", String::as_str);
        let derive = |secret: &Vec<u8>| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), server.as_bytes())
        };
        let reloaded = self.ring.reload(secrets.iter().map(derive));
        reloaded.map_err(|error| FleetError::Keys(error.to_string()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
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
                wrap.both.open(PURPOSE, b"", &token).map_err(|_| wrong())
            }
        }
    }
}
