//! Records that cannot be read, and records of events.

use bowline::client::http::Endpoint;
use bowline::events::{EventKind, Events};
use bowline::tasks::{Elsewhere, StoreError, TaskStore};
use bowline::{Client, Principal, Server, TaskLimits, TaskMode, Tasks, Tool};
use bowline_redb::Store;
use redb::{Database, ReadableTable as _, TableDefinition};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::folder::Folder;

type Row = (u64, u64, u64, &'static [u8], &'static [u8]);
const TASKS: TableDefinition<'_, &str, Row> = TableDefinition::new("tasks 1");

/// Opens a file that another user is about to close.
async fn reopen(path: &std::path::Path) -> Store {
    for _ in 0..6_000 {
        if let Ok(store) = Store::open(path) {
            return store;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the file stays in use")
}

#[tokio::test]
async fn a_damaged_record_hides_no_other_and_leaves_when_it_is_due() {
    let folder = Folder::new("damaged-record");
    let path = folder.file("tasks.redb");
    let away = Tool::new("away", || async { Elsewhere }).task(TaskMode::Required);
    let tasks = Tasks::in_store(Store::open(&path).unwrap(), TaskLimits::default());
    let server = Server::new("test", "1.0.0").with(away).tasks(tasks);
    let client = Client::builder("test", "1.0.0").connect(server).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let started = client.call_tool("away", json!({})).start().await.unwrap();
        ids.push(started.task().unwrap().id().to_owned());
    }
    client.close().await;
    // In the order of pages: two of the same millisecond are in that of their ids.
    let page = reopen(&path).await.page(None, None, 9).await.unwrap();
    let ids: Vec<_> = page.iter().map(|it| it.id().to_owned()).collect();
    assert_eq!(ids.len(), 2);

    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(TASKS).unwrap();
        let (version, due, created, owner) = {
            let found = table.get(ids[0].as_str()).unwrap().unwrap();
            let (version, due, created, owner, _) = found.value();
            (version, due, created, owner.to_vec())
        };
        let row = (version, due, created, owner.as_slice(), b"{\"id\":".as_slice());
        table.insert(ids[0].as_str(), row).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);

    let store = reopen(&path).await;
    let Err(StoreError::Damaged { version }) = store.load(&ids[0]).await else {
        panic!("it is damaged")
    };
    assert!(store.load(&ids[1]).await.unwrap().is_some());
    let page = store.page(None, None, 9).await.unwrap();
    let page: Vec<_> = page.iter().map(|it| it.id()).collect();
    assert_eq!(page, [ids[1].as_str()]);
    // A page that is not full is the last one, so a damaged record does not count.
    assert_eq!(store.page(None, None, 1).await.unwrap().len(), 1);
    assert!(store.swap(&ids[0], version, None).await.unwrap(), "it can be removed");
    assert!(store.load(&ids[0]).await.unwrap().is_none());
}

#[tokio::test]
async fn subscriptions_of_events_survive_in_a_file() {
    let folder = Folder::new("events");
    let path = folder.file("events.redb");
    let events = || Events::new().with(EventKind::new("paid", "Paid.")).also_to("127.0.0.1:1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let kept = events().keep_in(Store::open(&path).unwrap()).await.unwrap();
    let http = Server::new("shop", "1.0.0").with(kept.clone()).http();
    let http = http.identify(|_| Some(Principal::new("ada")));
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = tokio::spawn(http.serve_until(listener, stopped));
    let client = Client::builder("test", "1.0.0").connect(Endpoint::new(&url)).await.unwrap();
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
    let delivery = json!({ "mode": "webhook", "url": "http://127.0.0.1:1/hook", "secret": secret });
    let wish = json!({ "name": "paid", "delivery": delivery });
    let subscribed = client.call_json("events/subscribe", wish).await.unwrap().to_value();
    client.close().await;
    drop(stop);
    serving.await.unwrap().unwrap();
    drop(kept);

    let again = events().keep_in(reopen(&path).await).await.unwrap();
    let saved = again.save().to_value();
    assert_eq!(saved[0]["id"], subscribed["id"], "{saved}");
    assert_eq!(saved[0]["secret"], secret);
    assert_eq!(saved.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_file_of_an_earlier_release_is_counted_again() {
    let folder = Folder::new("counted");
    let path = folder.file("tasks.redb");
    let connect = async |limits: TaskLimits| {
        let away = Tool::new("away", || async { Elsewhere }).task(TaskMode::Required);
        let server = Server::new("test", "1.0.0").with(away);
        let server = server.tasks(Tasks::in_store(reopen(&path).await, limits));
        Client::builder("test", "1.0.0").connect(server).await.unwrap()
    };
    let client = connect(TaskLimits::default()).await;
    for _ in 0..2 {
        client.call_tool("away", json!({})).start().await.unwrap();
    }
    client.close().await;
    drop(reopen(&path).await);

    // As it was: counts of tasks, without their bytes.
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let counts = TableDefinition::<&[u8], (u64, u64)>::new("counts 2");
    assert!(transaction.delete_table(counts).unwrap());
    let counts = TableDefinition::<&[u8], u64>::new("counts 1");
    transaction.open_table(counts).unwrap().insert(b"".as_slice(), 2).unwrap();
    transaction.commit().unwrap();
    drop(database);

    for limits in [
        TaskLimits { tasks_per_owner: 2, ..TaskLimits::default() },
        TaskLimits { stored_per_owner: 500, ..TaskLimits::default() },
    ] {
        let client = connect(limits).await;
        let refused = client.call_tool("away", json!({})).start().await.unwrap_err();
        assert!(refused.to_string().contains("no room for another task"), "{refused}");
        client.close().await;
    }
}
