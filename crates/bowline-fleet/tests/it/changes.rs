//! Changes that are hard to pass on.

use bowline::fleet::{Change, Fleet as _};
use serde_json::json;

use crate::http;
use crate::nodes::{NEWS, Node, two};
use crate::stores::Postgres;

/// Listens for a resource, makes something happen, and hears of a change.
async fn hears(node: &Node, uri: &str, happens: impl FnOnce()) {
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let stream = http::modern(node.port, "ada", "subscriptions/listen", filter).await;
    let (mut stream, mut rest) = (stream.unwrap(), String::new());
    stream.event(&mut rest).await.unwrap();
    happens();
    let told = tokio::time::timeout(http::PATIENCE, stream.event(&mut rest)).await;
    assert!(told.expect("the change is heard").is_some());
}

/// Text that cannot be compressed, so that no index takes it.
pub fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 40) % 26).unwrap())
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_that_postgres_does_not_like_hold_nothing_up() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let changed = |uri: &str| {
        two.fleet.announce(Change::parse(&format!("resource {uri}")).unwrap());
    };
    let long = format!("test://{}", noise(8_000));
    hears(&one, &long, || changed(&long)).await;
    hears(&one, NEWS, || {
        changed("test://nul\0");
        changed(NEWS);
    })
    .await;
    // As with a database whose encoding does not have a character.
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.topic LIKE '%odd' THEN
                RAISE SQLSTATE '22P05';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON bowline.changes
            FOR EACH ROW EXECUTE FUNCTION refuse();";
    postgres.sql("test0", refuse).unwrap();
    hears(&one, NEWS, || {
        changed("test://odd");
        changed(NEWS);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_right_before_an_own_one_is_heard() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let change =
        |uri: &str, node: u32| format!("SELECT bowline.change('node', '{{{uri}}}', {node});");
    let (topic, own) = (format!("resource {NEWS}"), one.fleet.node().number());
    // Both are there before the node looks.
    let both = change(&topic, two.fleet.node().number()) + &change(&topic, own);
    hears(&one, NEWS, || drop(postgres.sql("test0", &both).unwrap())).await;
    let everything = change("everything", two.fleet.node().number());
    hears(&one, NEWS, || drop(postgres.sql("test0", &everything).unwrap())).await;
}
