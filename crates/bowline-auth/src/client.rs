//! Getting tokens, for one MCP server.
//!
//! An application says who it is and how its person can be reached; everything else is found out
//! from the server's refusals, in whatever revision of the protocol it speaks.
//!
//! | who is let in | begin with |
//! |---|---|
//! | a person, who logs in | [`OAuth::login`] with [`Browser`], [`Paste`] or [`Hook`] |
//! | the application itself | [`OAuth::client_credentials`] |
//! | a person, by the word of their enterprise | [`OAuth::enterprise`] |
//! | a workload, by the word of its platform | [`OAuth::workload`] |
//! | whoever has a token already | [`StaticToken`] |
//!
//! Pure parts (`challenge`, `metadata`, `registration`, `callback`, `scope`, `token`) know no
//! network; `discover` and `flow` drive them through `fetch`, the one door to the outside.

mod callback;
mod challenge;
mod discover;
mod dpop;
mod error;
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
pub use fixed::StaticToken;
pub use grant::{AssertionSource, Enterprise};
pub use login::{
    AuthorizationUrl, Browser, Hook, Login, LoginError, Paste, Redirected, Visit, Waiting,
};
pub use metadata::{MetadataError, ResourceMetadata, ServerMetadata};
pub use oauth::OAuth;
pub use registration::Client;
pub use secret::Secret;
pub use settings::{Limits, OAuthBuilder};
pub use store::{FileStore, MemoryStore, Store, StoreError, StoreLock, Stored};
