//! Where credentials are stored between requests and between runs of a program.

mod file;
mod memory;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use super::secret::Secret;

pub use file::FileStore;
pub use memory::MemoryStore;

/// What the methods of [`Store`] return.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store failed. It must not contain the credentials.
pub type StoreError = Box<dyn Error + Send + Sync>;

/// Held while credentials are refreshed; dropping it releases the lock.
pub type StoreLock = Box<dyn Send>;

/// Stores credentials: client registrations and proof keys by issuer, tokens by MCP server.
///
/// A key is a short line of text; a value is a secret that only this crate understands.
/// Implementations put them into a keychain, a vault or a database.
pub trait Store: Send + Sync {
    /// Loads the value of a key.
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<Secret>>;

    /// Replaces the value of a key atomically.
    fn save<'a>(&'a self, key: &'a str, value: &'a Secret) -> Stored<'a, ()>;

    /// Removes the value of a key, if there is one.
    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()>;

    /// Waits for the lock of this key, which all users of the store share. A refresh token may be
    /// valid only once: without a lock, two programs would invalidate each other's.
    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, StoreLock>;
}
