//! Guides: what the documentation of single items cannot say. Their examples are compiled.
//!
//! | page | for |
//! |---|---|
//! | [`tutorial`] | a first server, from nothing to HTTP |
//! | [`state_and_errors`] | what tools share, and what becomes of their errors |
//! | [`questions`] | asking the user, in both eras |
//! | [`tasks`] | calls that take long, survive restarts, and end elsewhere |
//! | [`middleware`] | code around every request |
//! | [`apps`] | results to look at and click |
//! | [`extensions`] | methods, results and notifications beyond the protocol |
//! | [`testing`] | unit tests of servers |
//! | [`axum`] | a server inside an application |
//! | [`verifiers`] | tokens, scopes, and who may call |
//! | [`client`] | recipes for clients |
//! | [`proxying`] | other servers behind one |
//! | [`from_rmcp`], [`from_fastmcp`] | what is called what |

/// Defines a page from its text.
macro_rules! pages {
    ($($name:ident)*) => {$(
        #[doc = include_str!(concat!("guide/", stringify!($name), ".md"))]
        pub mod $name {}
    )*};
}
pages! {
    tutorial state_and_errors questions tasks middleware apps extensions testing axum verifiers
    client proxying from_rmcp from_fastmcp
}
