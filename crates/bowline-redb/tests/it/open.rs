//! Files that cannot be opened.

use std::path::Path;

use bowline::tasks::TaskStore;
use bowline_redb::{OpenError, Store};

use crate::folder::Folder;

fn refusal(path: &Path) -> OpenError {
    match Store::open(path) {
        Ok(_) => panic!("{}: it was opened", path.display()),
        Err(error) => error,
    }
}

#[test]
fn a_file_belongs_to_one_store_at_a_time() {
    let folder = Folder::new("in-use");
    let path = folder.file("tasks.redb");
    let store = Store::open(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::InUse(_)), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("another process uses this file") && message.contains("help: "));
    drop(store);
    Store::open(&path).unwrap();
}

#[test]
fn a_folder_that_does_not_exist_is_an_error() {
    let folder = Folder::new("missing");
    let error = refusal(&folder.file("nowhere/tasks.redb"));
    assert!(matches!(error, OpenError::Unusable { .. }), "{error:?}");
    assert!(error.to_string().contains("check that the folder exists"), "{error}");
    let error = refusal(&folder.file("."));
    assert!(matches!(error, OpenError::Unusable { .. }), "{error:?}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new("mode");
    let path = folder.file("tasks.redb");
    Store::open(&path).unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn what_is_not_a_database_is_an_error() {
    let folder = Folder::new("other");
    let path = folder.file("tasks.redb");
    for content in ["x".to_owned(), "{}\n".repeat(10_000), "\0".repeat(100_000)] {
        std::fs::write(&path, &content).unwrap();
        let error = refusal(&path);
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content, "it is left as it was");
    }
}

/// Every damage is an error when the file is opened or read, or does no harm. None is a panic.
#[tokio::test]
async fn a_damaged_file_is_an_error() {
    let folder = Folder::new("damaged");
    let path = folder.file("tasks.redb");
    drop(Store::open(&path).unwrap());
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40).chain(0..64) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, damaged).unwrap();
        if let Ok(store) = Store::open(&path) {
            let _ = store.due(u64::MAX, 9).await;
        }
    }
    for length in [1, 100, 4_096, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        if let Ok(store) = Store::open(&path) {
            let _ = store.due(u64::MAX, 9).await;
        }
    }
}
