//! State machines: any order of events, in virtual time, compared with naive models.
//!
//! An input is a letter that selects the machine, then decisions. Each machine has a file in
//! `session`.

#![no_main]

// A binary looks for its modules next to itself, where the other targets are.
#[path = "session/calls.rs"]
mod calls;
#[path = "session/connect.rs"]
mod connect;
#[path = "session/inbound.rs"]
mod inbound;
#[path = "session/lifecycle.rs"]
mod lifecycle;
#[path = "session/replay.rs"]
mod replay;
#[path = "session/subscription.rs"]
mod subscription;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bowline_fuzz::Bytes;
use bowline_proto::revision::{Revision, Revisions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes::new(input);
    match bytes.byte() {
        b'c' => calls::drive(&mut bytes),
        b'i' => inbound::drive(&mut bytes),
        b'l' => lifecycle::drive(&mut bytes),
        b's' => subscription::drive(&mut bytes),
        b'r' => replay::drive(&mut bytes),
        b'k' => connect::drive(&mut bytes),
        _ => {}
    }
});

/// This many seconds after the start of virtual time.
fn at(second: u64) -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now) + Duration::from_secs(second)
}

/// A set of revisions, one bit each.
fn revisions(bytes: &mut Bytes<'_>) -> Revisions {
    let bits = bytes.byte();
    let members = Revision::ALL.into_iter().enumerate();
    members.filter(|(index, _)| bits >> index & 1 == 1).map(|(_, revision)| revision).collect()
}
