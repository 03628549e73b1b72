//! Tasks in a simulated world: time is virtual, the store fails, hesitates and fills up, servers
//! crash, stall or stop, clients of both generations create, poll, answer in part, cancel and
//! disconnect, and work is ended from outside. In some worlds nothing breaks: there, nothing may be
//! lost either.
//!
//! Every change of a task passes the [`disk`], which knows what may become of one; clients compare
//! what they are told with what they were told before. A world follows from its seed:
//! `SEED=17 cargo test -p bowline --all-features --test simulation` runs one of them. 200 by
//! default, 20,000 with `BOWLINE_FULL=1`.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values, not references")]

#[allow(dead_code, reason = "shared with the tests of HTTP")]
#[path = "../http/client.rs"]
mod client;
mod disk;
mod people;
mod process;
mod random;
mod tools;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tokio::runtime::Builder;

use self::world::World;

/// Seeds that have found something, each with what it was.
const FOUND: [u64; 0] = [];

#[test]
fn tasks_keep_their_promises_whatever_happens() {
    let seed = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    let count = if std::env::var_os("BOWLINE_FULL").is_some() { 20_000 } else { 200 };
    let seeds = FOUND.into_iter().chain(0..count);
    for seed in seed.map_or_else(|| seeds.collect(), |seed| vec![seed]) {
        run(seed);
    }
}

fn run(seed: u64) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let lived = catch_unwind(AssertUnwindSafe(|| runtime.block_on(World::live(seed))));
    if let Err(panic) = lived {
        say(seed);
        resume_unwind(panic);
    }
}

#[expect(clippy::print_stderr, reason = "a test's panic goes there, too")]
fn say(seed: u64) {
    eprintln!("in the world of SEED={seed}");
}
