//! Over HTTP: which answers tell an era, and which do not.

use std::time::Duration;

use bowline::Revision;
use bowline::client::http::Endpoint;
use bowline::client::{Client, ConnectError, OpenError, Timeouts, Verdicts};
use serde_json::json;

use super::fixture::{builder, pass, soon};
use super::web::Web;
use super::wire::{discovered, initialized, text};

fn revision(client: &Client) -> Revision {
    client.peer().unwrap().revision
}

#[tokio::test]
async fn what_is_in_the_way_is_no_era() {
    for status in [401, 402, 403, 407, 408, 429, 500, 502, 503, 504] {
        let mut web = Web::start().await;
        let verdicts = Verdicts::new();
        let client = web.connecting(builder().verdicts(verdicts.clone()));
        web.asked("server/discover").await.status(status).await;
        let error = soon("an error", client).await.unwrap().unwrap_err();
        match error {
            OpenError::Unauthorized { status: told, .. } => {
                assert!(told == status && matches!(status, 401 | 403));
            }
            OpenError::Connect { error: ConnectError::Blocked(rejection), .. } => {
                assert_eq!(rejection.status, Some(status));
            }
            error => panic!("{status}: {error}"),
        }
        assert_eq!(verdicts.find(&web.url()), None);
        assert_eq!(web.unseen(), [""; 0], "{status}");
    }
}

#[tokio::test]
async fn a_network_that_fails_is_no_era() {
    // Nobody listens.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let verdicts = Verdicts::new();
    let unreachable = |error: &OpenError| {
        matches!(error, OpenError::Connect { error: ConnectError::Unreachable(_), .. })
    };
    let url = format!("http://{address}/mcp");
    let connecting = builder().verdicts(verdicts.clone()).connect(url.as_str());
    let error = soon("an error", connecting).await.unwrap_err();
    assert!(unreachable(&error), "{error}");
    assert_eq!(verdicts.find(&url), None);
    // A connection that ends without a word.
    let mut web = Web::start().await;
    let client = web.connecting(builder());
    drop(web.asked("server/discover").await);
    let error = soon("an error", client).await.unwrap().unwrap_err();
    assert!(unreachable(&error), "{error}");
    assert_eq!(web.unseen(), [""; 0]);
    // TLS where there is none.
    let secure = web.url().replace("http:", "https:");
    let error = soon("an error", builder().connect(secure)).await.unwrap_err();
    assert!(unreachable(&error), "{error}");
    // Silence.
    let patience = Duration::from_secs(50);
    let timeouts = Timeouts { connect: patience, ..Timeouts::default() };
    let client = web.connecting(builder().timeouts(timeouts));
    let probe = web.asked("server/discover").await;
    pass(patience).await;
    let error = soon("an error", client).await.unwrap().unwrap_err();
    let late = matches!(error, OpenError::Connect { error: ConnectError::TimedOut, .. });
    assert!(late || matches!(error, OpenError::TimedOut(_)), "{error}");
    probe.closed().await;
    assert_eq!(web.unseen(), [""; 0]);
}

#[tokio::test]
async fn tls_that_is_not_trusted_is_no_era() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let tls = bowline::http::Tls::from_pem(cert.as_bytes(), key.as_bytes()).unwrap();
    let url = super::world::serve(super::world::server().http().tls(tls)).await;
    let url = url.replace("http://127.0.0.1", "https://localhost");
    let verdicts = Verdicts::new();
    let distrusts = builder().verdicts(verdicts.clone()).connect(url.as_str());
    let error = soon("an error", distrusts).await.unwrap_err();
    let OpenError::Connect { error: ConnectError::Unreachable(why), .. } = &error else {
        panic!("{error}")
    };
    assert!(why.contains("certificate"), "{why}");
    assert_eq!(verdicts.find(&url), None);
    let trusts = builder().connect(Endpoint::new(&url).ca_pem(cert.as_bytes()));
    let client = soon("a connection", trusts).await.unwrap();
    assert_eq!(revision(&client), Revision::LATEST);
    client.close().await;
}

#[tokio::test]
async fn every_refusal_of_an_old_server_leads_to_the_handshake() {
    for (status, code) in [
        (400, None),
        (404, None),
        (405, None),
        (406, None),
        (415, None),
        (422, None),
        (400, Some(-32600)),
        (400, Some(-32000)),
        (400, Some(-32602)),
        (404, Some(-32601)),
        (200, Some(-32601)),
        (200, Some(-32602)),
    ] {
        let mut web = Web::start().await;
        let client = web.connecting(builder());
        let probe = web.asked("server/discover").await;
        match code {
            Some(code) => probe.refuse(status, code).await,
            None => probe.respond(status, "text/html", "", "<html>no").await,
        }
        web.shake("one").await;
        let client = soon("a connection", client).await.unwrap().unwrap();
        assert_eq!(revision(&client), Revision::V2025_11_25, "{status} {code:?}");
    }
}

#[tokio::test]
async fn the_oldest_transport_is_fallen_back_to() {
    for status in [400, 404, 405] {
        let mut web = Web::start().await;
        let client = web.connecting(builder());
        web.asked("server/discover").await.status(status).await;
        web.asked("initialize").await.status(status).await;
        let mut stream = web.http("GET").await.events().await;
        stream.send(b"event: endpoint\ndata: /messages?session=1\n\n").await;
        let hello = web.asked("initialize").await;
        assert_eq!(hello.path, "/messages?session=1");
        let id = hello.body["id"].clone();
        hello.status(202).await;
        stream.answer_event(&id, initialized()).await;
        web.asked("notifications/initialized").await.status(202).await;
        let client = soon("a connection", client).await.unwrap().unwrap();
        // An answer may come before the status of its question.
        let call = tokio::spawn(client.call_tool("t", json!({})).text());
        let question = web.asked("tools/call").await;
        stream.answer_event(&question.body["id"], text("done")).await;
        assert_eq!(soon("an answer", call).await.unwrap().unwrap(), "done");
        question.status(202).await;
        // The end of the stream is the end of what waits, and the beginning of another.
        let call = tokio::spawn(client.call_tool("t", json!({})).text());
        web.asked("tools/call").await.status(202).await;
        drop(stream);
        let error = soon("an error", call).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("the stream ended before the answer"), "{error}");
        client.close().await;
    }
}

#[tokio::test]
async fn the_oldest_transport_is_opened_again_and_not_without_a_pause() {
    let mut web = Web::start().await;
    let client = web.connecting(builder());
    web.asked("server/discover").await.status(404).await;
    web.asked("initialize").await.status(404).await;
    let mut streams = Vec::new();
    for round in 0..2 {
        if round > 0 {
            // What was known is asked first, and turns out as before.
            streams.clear();
            web.asked("initialize").await.status(404).await;
            web.asked("server/discover").await.status(404).await;
        }
        let mut stream = web.http("GET").await.events().await;
        stream.send(format!("event: endpoint\ndata: /m/{round}\n\n").as_bytes()).await;
        let hello = web.asked("initialize").await;
        assert_eq!(hello.path, format!("/m/{round}"));
        let id = hello.body["id"].clone();
        hello.status(202).await;
        stream.answer_event(&id, initialized()).await;
        web.asked("notifications/initialized").await.status(202).await;
        streams.push(stream);
    }
    let client = soon("a connection", client).await.unwrap().unwrap();
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    let question = web.asked("tools/call").await;
    assert_eq!(question.path, "/m/1");
    streams[0].answer_event(&question.body["id"], text("done")).await;
    question.status(202).await;
    assert_eq!(soon("an answer", call).await.unwrap().unwrap(), "done");
}

#[tokio::test]
async fn messages_do_not_go_to_another_origin() {
    let mut web = Web::start().await;
    let client = web.connecting(builder());
    web.asked("server/discover").await.status(404).await;
    web.asked("initialize").await.status(404).await;
    let mut stream = web.http("GET").await.events().await;
    stream.send(b"event: endpoint\ndata: http://127.0.0.2:1/messages\n\n").await;
    let error = soon("an error", client).await.unwrap().unwrap_err();
    assert!(matches!(error, OpenError::Connect { .. }), "{error}");
}

#[tokio::test]
async fn a_verdict_spares_the_question_and_is_looked_at_anew_if_it_is_wrong() {
    // Legacy it was, and still is.
    let mut web = Web::start().await;
    let verdicts = Verdicts::new();
    verdicts.remember(&web.url(), Revision::V2025_06_18);
    let known = || builder().verdicts(verdicts.clone());
    let client = web.connecting(known());
    web.shake("one").await;
    let client = soon("a connection", client).await.unwrap().unwrap();
    drop(client);
    // Modern it is now.
    verdicts.remember(&web.url(), Revision::V2025_06_18);
    let client = web.connecting(known());
    web.asked("initialize").await.refuse(404, -32601).await;
    web.asked("server/discover").await.answer(discovered()).await;
    let client = soon("a connection", client).await.unwrap().unwrap();
    assert_eq!(revision(&client), Revision::LATEST);
    assert_eq!(verdicts.find(&web.url()), Some(Revision::LATEST));
    drop(client);
    // Legacy it is again.
    let client = web.connecting(known());
    web.asked("server/discover").await.refuse(400, -32600).await;
    web.asked("server/discover").await.refuse(400, -32600).await;
    web.shake("two").await;
    let client = soon("a connection", client).await.unwrap().unwrap();
    assert_eq!(revision(&client), Revision::V2025_11_25);
    assert_eq!(verdicts.find(&web.url()), Some(Revision::V2025_11_25));
    // A failure on the way says nothing about it.
    drop(client);
    let client = web.connecting(known());
    web.find("another handshake", |it| it.body["method"] == "initialize").await.status(502).await;
    let error = soon("an error", client).await.unwrap().unwrap_err();
    let blocked = matches!(error, OpenError::Connect { error: ConnectError::Blocked(_), .. });
    assert!(blocked, "{error}");
    assert_eq!(verdicts.find(&web.url()), Some(Revision::V2025_11_25));
}
