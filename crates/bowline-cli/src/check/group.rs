//! The checks, by what they look at. The order is that of the report: what keeps all others from
//! working comes first, what only watches what the others caused comes last.

pub(super) mod auth;
mod completion;
mod http;
mod http_modern;
mod jsonrpc;
mod lifecycle;
mod lint;
mod modern;
mod prompts;
mod resources;
mod schema;
pub(super) mod scopes;
mod sse;
mod stdio;
mod tasks;
mod tools;
mod utilities;
mod watch;

use super::table::Check;

/// What sends something.
pub(super) const ACTING: &[&[Check]] = &[
    auth::CHECKS,
    scopes::CHECKS,
    sse::CHECKS,
    lifecycle::CHECKS,
    jsonrpc::CHECKS,
    modern::CHECKS,
    tools::CHECKS,
    schema::CHECKS,
    resources::CHECKS,
    prompts::CHECKS,
    completion::CHECKS,
    tasks::CHECKS,
    utilities::CHECKS,
    http::CHECKS,
    http_modern::CHECKS,
    stdio::CHECKS,
];

/// What only watches.
pub(super) const WATCHING: &[Check] = watch::CHECKS;
