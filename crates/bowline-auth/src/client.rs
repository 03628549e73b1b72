//! Gets tokens for one MCP server.
//!
//! An application says who it is and how its user can log in. Everything else is discovered from
//! the server's 401 and 403 responses, in every revision of the protocol.
//!
//! | who gets access | start with |
//! |---|---|
//! | a user who logs in | [`OAuth::login`] with [`Browser`], [`Paste`] or [`Hook`] |
//! | the application itself | [`OAuth::client_credentials`] |
//! | a user, vouched for by their enterprise | [`OAuth::enterprise`] |
//! | a workload, vouched for by its platform | [`OAuth::workload`] |
//! | anyone who has a token already | [`StaticToken`] |
//!
//! The pure parts (`challenge`, `metadata`, `registration`, `callback`, `scope`, `token`) do not
//! touch the network. `discover` and `flow` drive them through `fetch`, which makes every request.

mod callback;
mod challenge;
mod discover;
mod dpop;
mod error;
mod exchange;
mod fetch;
mod fixed;
mod flow;
mod form;
mod grant;
mod login;
mod metadata;
mod oauth;
mod pkce;
mod registration;
mod scope;
mod secret;
mod settings;
mod store;
mod token;

pub use bowline_proto::scope::is_scope;
pub use challenge::Challenge;
pub use dpop::Dpop;
pub use error::{AuthError, Reason, Step};
pub use exchange::{Exchange, ExchangeAnswer};
pub use fixed::StaticToken;
pub use grant::{AssertionSource, Enterprise};
pub use login::{
    AuthorizationUrl, Browser, Hook, Login, LoginError, Paste, Redirected, Visit, Waiting,
    open_page,
};
pub use metadata::{MetadataError, ResourceMetadata, ServerMetadata};
pub use oauth::OAuth;
pub use registration::Client;
pub use secret::Secret;
pub use settings::{Limits, OAuthBuilder};
pub use store::{FileStore, MemoryStore, Store, StoreError, StoreLock, Stored};
