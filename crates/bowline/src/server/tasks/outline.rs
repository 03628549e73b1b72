//! What can be read of a record that another release has stored.

use bowline_proto::error::ErrorObject;
use bowline_proto::revision::Revision;
use serde::Deserialize;

use super::super::rounds::Past;
use super::record::{Lease, State, TaskClient, TaskRecord};

/// What the records of all releases have.
#[derive(Deserialize)]
pub(super) struct Outline {
    pub(super) id: String,
    version: u64,
    owner: Option<String>,
    #[serde(default)]
    party: Option<String>,
    revision: Revision,
    tool: String,
    created: u64,
    ttl: u64,
}

impl Outline {
    pub(super) fn into_record(self) -> TaskRecord {
        let Self { id, version, owner, party, revision, tool, created, ttl } = self;
        let message = "the task was stored by another release of the server; call again";
        TaskRecord {
            id,
            version,
            owner,
            party,
            revision,
            tool,
            arguments: None,
            client: TaskClient::default(),
            state: State::Failed { error: ErrorObject::internal(message) },
            message: Some(message.to_owned()),
            created,
            updated: created,
            ttl,
            past: Past::default(),
            lease: Lease { holder: String::new(), fence: 0, until: 0 },
            is_queued: false,
        }
    }
}
