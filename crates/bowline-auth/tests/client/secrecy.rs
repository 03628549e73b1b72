//! What is confidential shows up in no log and no `Debug`.

use std::io::Write;
use std::sync::{Arc, Mutex};

use bowline_auth::client::{Client, FileStore, MemoryStore, OAuth, Secret, Step};
use http::StatusCode;
use tracing_subscriber::fmt::MakeWriter;

use crate::browse::{person, web};
use crate::site::Site;
use crate::world::{Rules, World};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Everything that the guards and the server were told or told in confidence.
fn secrets(world: &World) -> Vec<String> {
    let mut secrets = Vec::new();
    for asked in world.guards.iter().flat_map(Site::log) {
        let names = ["code", "code_verifier", "refresh_token", "client_secret"];
        secrets.extend(names.iter().filter_map(|name| asked.form(name)));
        secrets.extend(asked.query("state"));
        let basic = asked.header("authorization").and_then(|text| text.split_once(' '));
        secrets.extend(basic.map(|(_, pair)| pair.to_owned()));
    }
    for asked in world.server.log() {
        let token = asked.header("authorization").and_then(|text| text.split_once(' '));
        secrets.extend(token.map(|(_, token)| token.to_owned()));
    }
    secrets.push("s3cr3t".to_owned());
    secrets
}

/// The log of the whole process: the other tests may add to it, but not what is looked for.
#[tokio::test]
async fn logs_and_debug() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let mut shown = String::new();
    for dpop in [false, true] {
        let rules =
            Rules { methods: &["client_secret_basic"], expires_in: 0, dpop, ..Rules::default() };
        let world = World::new(rules).await;
        let store = MemoryStore::new();
        let exchanges = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&exchanges);
        let builder =
            world.login_with(person()).store(store.clone()).on_exchange(move |exchange| {
                seen.lock().unwrap().push((exchange.step, format!("{exchange} {exchange:?}")));
            });
        shown += &format!("{builder:?} {store:?}");
        let auth = builder.build().unwrap();
        for _ in 0..2 {
            assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        }
        shown += &format!("{auth:?} {auth:#?} {store:?}");
        world.revoke();
        world.revoke_refresh();
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        let exchanges = std::mem::take(&mut *exchanges.lock().unwrap());
        let steps: Vec<_> = exchanges.iter().take(4).map(|(step, _)| *step).collect();
        let expected =
            [Step::ResourceMetadata, Step::ServerMetadata, Step::Registration, Step::Token];
        assert_eq!(steps, expected);
        assert!(exchanges.iter().any(|(step, _)| *step == Step::Refresh));
        let told: String = exchanges.into_iter().map(|(_, text)| text).collect();
        for part in ["code=…", "\"access_token\":\"…\"", "authorization: …", "status 200"] {
            assert!(told.contains(part), "no {part} in {told}");
        }
        shown += &told;
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(said.contains("token request"), "nothing was logged: {said}");
        let secrets = secrets(&world);
        assert!(secrets.len() > 8);
        for secret in secrets {
            assert!(!said.contains(&secret), "{secret} in {said}");
            assert!(!shown.contains(&secret), "{secret} in {shown}");
        }
    }
}

#[test]
fn things_that_hold_secrets() {
    let client = Client::new("app").secret("s3cr3t");
    let auth = OAuth::client_credentials("https://a.example", client.clone()).web(web());
    let shown = format!("{client:?} {:?} {auth:?}", Secret::new("s3cr3t"));
    let shown = format!("{shown} {:?}", auth.build());
    assert!(!shown.contains("s3cr3t"), "{shown}");
}

/// The store's folder holds the secrets, and nobody else can read it.
#[cfg(unix)]
#[tokio::test]
async fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("bowline-secrecy-{}", std::process::id()));
    let world = World::new(Rules { dpop: true, ..Rules::default() }).await;
    let store = FileStore::open(&folder).unwrap();
    let auth = world.login_with(person()).store(store).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        count += 1;
    }
    // Tokens, client, key, and the lock.
    assert_eq!(count, 4);
    std::fs::remove_dir_all(&folder).unwrap();
}
