//! Facilities, severities and targets, as resources.

use std::sync::Arc;

use bowline::{HandlerError, Resource, Structured};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::prompt;
use crate::destination::Transport;
use crate::logger::Logger;
use crate::priority::{FACILITIES, Facility, SEVERITIES, Severity, Word};
use crate::spool::SPOOL_URI;

const JSON: &str = "application/json";

/// A facility or severity.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WordEntry {
    number: usize,
    name: &'static str,
    aliases: &'static [&'static str],
    about: &'static str,
}

/// A configured target.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct TargetEntry {
    name: String,
    server: String,
    port: Option<u16>,
    transport: Transport,
}

/// All targets, and which other servers are allowed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Allowed {
    targets: Vec<TargetEntry>,
    others: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Named {
    name: String,
}

/// The tables of facilities and severities, whole and by name, and the targets.
pub(super) fn resources(logger: &Logger) -> Vec<Resource> {
    let spool = logger.spool().map(|spool| {
        let spool = Arc::clone(spool);
        Resource::new(SPOOL_URI, "spool", move || {
            let spool = Arc::clone(&spool);
            async move { Structured(spool.state().await) }
        })
        .title("Spool")
        .description("Messages that could not be sent yet, by destination, and why")
        .mime_type(JSON)
    });
    let tables = [
        table("facilities", "All facilities", &FACILITIES),
        table("severities", "All severities", &SEVERITIES),
        Resource::new("syslog://facilities/{name}", "facility", facility)
            .description("One facility, by name, alias or number")
            .mime_type(JSON)
            .complete("name", prompt::facilities),
        Resource::new("syslog://severities/{name}", "severity", severity)
            .description("One severity, by name, alias or number")
            .mime_type(JSON)
            .complete("name", prompt::severities),
        targets(logger),
    ];
    tables.into_iter().chain(spool).collect()
}

fn table(name: &str, about: &str, words: &'static [Word]) -> Resource {
    let list = move || async move {
        Structured((0..words.len()).map(|number| entry(words, number)).collect::<Vec<_>>())
    };
    Resource::new(format!("syslog://{name}"), name, list).description(about).mime_type(JSON)
}

fn entry(words: &'static [Word], number: usize) -> WordEntry {
    let Word { name, aliases, about } = &words[number];
    WordEntry { number, name, aliases, about }
}

async fn facility(named: Named) -> Result<Structured<WordEntry>, HandlerError> {
    let found: Facility = named.name.parse().map_err(|error| not_found(&error))?;
    Ok(Structured(entry(&FACILITIES, found.number().into())))
}

async fn severity(named: Named) -> Result<Structured<WordEntry>, HandlerError> {
    let found: Severity = named.name.parse().map_err(|error| not_found(&error))?;
    Ok(Structured(entry(&SEVERITIES, found.number().into())))
}

fn not_found(error: &impl std::error::Error) -> HandlerError {
    bowline::ErrorObject::new(bowline::ErrorCode::RESOURCE_NOT_FOUND, error.to_string()).into()
}

fn targets(logger: &Logger) -> Resource {
    let target = |(name, target): (&String, &crate::config::Target)| TargetEntry {
        name: name.clone(),
        server: target.server.clone(),
        port: target.port,
        transport: target.transport,
    };
    let allowed = Allowed {
        targets: logger.config().targets.iter().map(target).collect(),
        others: logger.network().allow.to_string(),
    };
    Resource::new("syslog://targets", "targets", move || {
        let allowed = allowed.clone();
        async move { Structured(allowed) }
    })
    .description("Configured targets, and which other servers are allowed")
    .mime_type(JSON)
}
