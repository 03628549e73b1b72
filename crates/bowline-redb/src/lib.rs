//! [Tasks](bowline::tasks) in a file: they survive restarts and crashes of their server.
//!
//! ```no_run
//! use bowline::{Context, HandlerError, Server, TaskMode, Tool};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let deploy = Tool::new("deploy", |context: Context| async move {
//!     let build = context.once("build", async { "build 7".to_owned() }).await;
//!     if !context.confirm(format!("Deploy {build}?")).await? {
//!         return Ok("not deployed".to_owned());
//!     }
//!     Ok::<_, HandlerError>(format!("{build} is deployed"))
//! });
//! Server::new("deployer", "1.0.0")
//!     .with(deploy.task(TaskMode::Optional).rerun())
//!     .tasks(bowline_redb::tasks("tasks.redb")?)
//!     .serve_stdio()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - Whatever a client has been told is on the disk: every write is synced before it returns.
//!   Writes that come at the same time share one sync, so many tasks cost little more than one.
//! - No thread of the runtime waits for the disk.
//! - The file belongs to one process at a time. Another one gets [`OpenError::InUse`]. After a
//!   crash the lock is gone with its process, and the file is repaired when it is opened.
//! - After a failure of the disk, such as a full one, the file is opened again by the next request.
//!   The server goes on as soon as there is room.
//!
//! The file contains arguments, answers and results of calls; tokens and headers never. On Unix
//! only its owner can read it. It holds a [redb](https://docs.rs/redb) database.

mod engine;
mod error;
mod store;
mod tables;
mod writer;

use std::path::Path;

use bowline::{TaskLimits, Tasks};

pub use self::error::OpenError;
pub use self::store::Store;

/// Tasks in a file, which is created if it does not exist.
///
/// # Errors
/// When the file is in use, damaged, or cannot be opened.
pub fn tasks(path: impl AsRef<Path>) -> Result<Tasks, OpenError> {
    tasks_with(path, TaskLimits::default())
}

/// The same, with other limits.
///
/// # Errors
/// When the file is in use, damaged, or cannot be opened.
pub fn tasks_with(path: impl AsRef<Path>, limits: TaskLimits) -> Result<Tasks, OpenError> {
    Ok(Tasks::in_store(Store::open(path)?, limits))
}
