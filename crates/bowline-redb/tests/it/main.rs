//! Tasks in a file: what the store promises, and what it says when it cannot keep it.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

mod folder;
mod open;
mod records;

use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::testing::{task_store_bytes_contract, task_store_contract};
use bowline_redb::Store;

use self::folder::Folder;

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_the_contract() {
    let folder = Folder::new("contract");
    let made = AtomicUsize::new(0);
    let make = async || {
        let number = made.fetch_add(1, Ordering::Relaxed);
        Store::open(folder.file(&format!("{number}.redb"))).unwrap()
    };
    task_store_contract(make).await;
    task_store_bytes_contract(make).await;
}
