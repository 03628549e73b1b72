//! Fetches from a service on loopback.

use std::net::TcpListener;
use std::time::Duration;

use bowline_serve::fetch::{Fetch, FetchError};
use bowline_serve::testing::{HttpReply, Service, free_port};
use serde_json::json;

fn service() -> Service {
    Service::start(|asked| match asked.what.as_str() {
        "GET /json?a=1" => HttpReply::json(&json!({ "a": 1 })),
        "GET /text" => HttpReply::bytes("not JSON"),
        "GET /long" => HttpReply::bytes(vec![b'x'; 2_000]),
        "POST /sound" => HttpReply::bytes(*b"\x00\xff"),
        _ => HttpReply::error(418, "I am a teapot"),
    })
}

#[tokio::test]
async fn json_and_bytes_are_fetched() {
    let service = service();
    let fetch = Fetch::default();
    let got = fetch.json(&format!("{}/json?a=1", service.url())).await.unwrap();
    assert_eq!(got, json!({ "a": 1 }));
    let sound = fetch.post(&format!("{}/sound", service.url()), &json!({ "text": "ア" })).await;
    assert_eq!(sound.unwrap()[..], *b"\x00\xff");
    assert_eq!(service.asked()[1].body, r#"{"text":"ア"}"#);
}

#[tokio::test]
async fn every_error_names_the_url() {
    let service = service();
    let base = service.url();
    let fetch = Fetch::new(Duration::from_secs(10), 1_000);
    let check =
        async |path: &str| fetch.json(&format!("{base}{path}")).await.unwrap_err().to_string();
    assert_eq!(check("/tea").await, format!("{base}/tea returned status 418: I am a teapot"));
    let error = check("/long").await;
    assert!(error.starts_with(&format!("cannot fetch {base}/long: ")), "{error}");
    assert!(error.ends_with("the response is larger than 1000 bytes"), "{error}");
    let error = check("/text").await;
    assert!(
        error.starts_with(&format!("{base}/text returned an unexpected response: ")),
        "{error}"
    );
    for url in ["ftp://example.com/", "example.com", "http://a b/", ""] {
        let error = fetch.json(url).await.unwrap_err().to_string();
        assert!(error.contains(url) && error.starts_with("cannot fetch "), "{error}");
    }
}

#[tokio::test]
async fn silence_and_absence_are_different_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let reason = async |fetch: Fetch, url: &str| match fetch.json(url).await {
        Err(FetchError::Unanswered { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    // The kernel accepts the connection, and nothing ever replies.
    let late = reason(Fetch::new(Duration::from_millis(50), 1_000), &url).await;
    assert!(late.contains("took longer than 50ms"), "{late}");
    let nowhere = format!("http://127.0.0.1:{}/", free_port());
    let absent = reason(Fetch::default(), &nowhere).await;
    assert!(absent.contains("cannot connect"), "{absent}");
}
