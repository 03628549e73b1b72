//! Where credentials are kept between requests, and between runs of a program.

mod file;
mod memory;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use super::secret::Secret;

pub use file::FileStore;
pub use memory::MemoryStore;

/// What the methods of [`Store`] give.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store failed. It must not hold what was to be kept.
pub type StoreError = Box<dyn Error + Send + Sync>;

/// Held while credentials are renewed; dropping it lets the next one in.
pub type StoreLock = Box<dyn Send>;

/// Keeps credentials: client registrations and keys by issuer, tokens by MCP server.
///
/// A key is a short line of text that says whose and what; a value is a secret that makes sense to
/// this crate alone. Implementations put them into a keychain, a vault, a database.
pub trait Store: Send + Sync {
    /// The value under a key.
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<Secret>>;

    /// Puts a value under a key, in place of what was there, as a whole or not at all.
    fn save<'a>(&'a self, key: &'a str, value: &'a Secret) -> Stored<'a, ()>;

    /// Takes away what is under a key, if anything.
    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()>;

    /// Waits until nobody else who shares this store holds the lock of this key. A refresh token
    /// may be good once only: without a lock, two programs would burn each other's.
    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, StoreLock>;
}
