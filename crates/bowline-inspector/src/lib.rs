//! The page of `bowline inspect`, the server that guards it, and the protocol between the two.
//!
//! A page that can start processes is worth attacking, so the server is small and says no first:
//! loopback only, one gate in front of every path ([`gate`](Site)), a key that only the page knows,
//! and a policy under which the page runs no script but its own. Apps of servers are served from a
//! second port, which is another origin, each under its own policy.
//!
//! What a request *does* is up to the program: it gives [`Site::serve`] a function. What happens is
//! published in a [`Feed`], which a page reads from the beginning, so that a reload loses nothing.
//! `docs/inspector.md` describes the protocol.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use bowline_inspector::{Action, Feed, Problem, Site};
//!
//! let feed = Feed::default();
//! let site = Site::bind(0, 0, feed).await?;
//! assert!(site.address().starts_with("http://127.0.0.1:"));
//! let serving = site.serve(async |action: Action| match action {
//!     Action::Targets {} => Ok(serde_json::json!([])),
//!     _ => Err(Problem::new("not today")),
//! });
//! drop(serving);
//! # Ok::<_, std::io::Error>(()) }).unwrap();
//! ```

mod app;
mod asset;
mod body;
mod feed;
mod gate;
mod key;
mod protocol;
mod site;

pub use app::{Apps, LARGEST_APP, MOST_APPS, Served};
pub use asset::{Asset, assets};
pub use feed::{Feed, FeedLimits, Keep};
pub use protocol::{Action, Form, Load, Login, Place, Problem, Side};
pub use site::{LARGEST_REQUEST, Site};
