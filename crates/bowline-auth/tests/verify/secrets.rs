//! Nothing secret is printed, logged or told.

use std::io::Write;
use std::sync::{Arc, Mutex};

use bowline_auth::verify::{Guard, Identity, Introspection, StaticTokens, Verify};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{RESOURCE, Signer, Site, present, verifier, web, with};

/// Everything that is logged.
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

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn secrets_stay_secret() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let subscriber = subscriber.with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::debug!("the log works");
    let mut told = String::new();

    // A secret of an agreed token, and a claim that is nobody's business.
    let tokens = StaticTokens::new().token("hush-static", Identity::new("ci"));
    let mut identity = Identity::new("alice");
    identity.claims = json!({"email": "hush@example.com"}).as_object().unwrap().clone();
    told += &format!("{tokens:?} {identity:?}");
    let guard = Guard::new(RESOURCE, tokens).unwrap();
    told += &format!("{guard:?} {:?}", present(&guard, "hush-wrong").await.unwrap_err());

    // The credentials for introspection, the token that is asked about, and every way to fail.
    let site = Site::open().await;
    for (status, answer) in [(200, r#"{"active":false}"#), (500, "hush-answer"), (200, "hush-x")] {
        site.show("/introspect", status, answer);
        let url = format!("{}/introspect", site.url);
        let verifier = Introspection::new(&url, "me", "hush-secret").unwrap().web(web());
        told += &format!("{verifier:?} {:?}", verifier.verify("hush-token").await.unwrap_err());
    }
    let away = Introspection::new("http://127.0.0.1:1/x", "me", "hush-secret").unwrap().web(web());
    told += &format!("{:?}", away.verify("hush-token").await.unwrap_err());

    // Signed tokens: neither they nor their claims.
    let signer = Signer::new("k", "ES256");
    let token = signer.sign(&with(json!({"aud": "hush-audience", "sub": "hush-subject"})));
    let guard = Guard::new(RESOURCE, verifier(&[&signer])).unwrap();
    told += &format!("{guard:?} {:?}", present(&guard, &token).await.unwrap_err());

    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the log works"));
    assert!(logged.contains("introspection failed"), "{logged}");
    let encoded = bowline_proto::base64::STANDARD.encode(b"me:hush-secret");
    for text in [&told, &logged] {
        for secret in ["hush", &encoded, &token, token.rsplit('.').next().unwrap()] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}
