//! What handlers and rules see of the HTTP request.

use bowline::http::HttpService;
use bowline::{Caller, Context, Revision, Server, Tool};
use serde_json::{Value, json};

use super::client::{Ask, Session, call, modern, request, send, text};
use super::sse::Sse;
use super::world::Nothing;

#[derive(Clone)]
struct Customer(&'static str);

/// What a request says about itself, seen by a handler.
async fn seen(context: Context, _: Nothing) -> String {
    // What is seen at first must still be there later.
    tokio::task::yield_now().await;
    let color = context.headers().get("x-color").map_or("no color", |it| it.to_str().unwrap());
    let customer = context.extensions().get::<Customer>().map_or("nobody", |it| it.0);
    format!("{color}, {customer}, {:?}", context.peer_addr().map(|it| it.ip().to_string()))
}

fn is_red(caller: &Caller) -> bool {
    caller.headers().get("x-color").is_some_and(|color| color == "red")
}

fn service() -> HttpService {
    let server = Server::new("seen", "1.0.0")
        .with(Tool::new("seen", seen))
        .with(Tool::new("red", || async { "red" }).visible_to(is_red));
    server.http().into_service().unwrap()
}

/// Sends a request as it comes out of a layer.
async fn layered(service: &HttpService, ask: Ask, customer: &'static str) -> String {
    let mut request = ask.into_request();
    request.extensions_mut().insert(Customer(customer));
    super::client::Stream::new(service.handle(request).await).rest().await.text()
}

#[tokio::test]
async fn handlers_see_the_request_that_they_serve() {
    let service = service();
    for color in ["red", "blue"] {
        let ask = call(1, "seen").with("x-color", color);
        assert_eq!(layered(&service, ask, color).await, format!("{color}, {color}, None"));
    }
    assert_eq!(send(&service, call(1, "seen")).await.text(), "no color, nobody, None");
    // Per request, not per session.
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let session = Session::open(&service, revision).await;
        for color in ["red", "blue"] {
            let ask = session.call(1, "seen", json!({})).with("x-color", color);
            assert_eq!(layered(&service, ask, color).await, format!("{color}, {color}, None"));
        }
    }
}

#[tokio::test]
async fn so_do_handlers_of_batches_and_of_the_first_revision() {
    let service = service();
    let session = Session::open(&service, Revision::V2025_03_26).await;
    let one = request(1, "tools/call", json!({ "name": "seen", "arguments": {} }));
    let answer = send(&service, session.post(json!([one])).with("x-color", "red")).await;
    assert_eq!(text(&answer.json()[0]), "red, nobody, None");
    // There the stream's own request is seen; `ann` is in one of its headers.
    let server =
        Server::new("seen", "1.0.0").with(Tool::new("user", |context: Context, _: Nothing| {
            let user = context.headers().get("x-user").map(|it| it.to_str().unwrap().to_owned());
            async move { user.unwrap_or_default() }
        }));
    let service = server.http().into_service().unwrap();
    let mut client = Sse::open(&service, "ann").await;
    assert_eq!(text(&client.call(1, "user", json!({})).await), "ann");
}

#[tokio::test]
async fn rules_see_it_too() {
    let service = service();
    let session = Session::open(&service, Revision::V2025_11_25).await;
    let names = |answer: Value| {
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (color, tools) in [("red", vec!["seen", "red"]), ("blue", vec!["seen"])] {
        let asks =
            [modern(1, "tools/list", json!({})), session.post(request(1, "tools/list", json!({})))];
        for ask in asks {
            assert_eq!(names(send(&service, ask.with("x-color", color)).await.json()), tools);
        }
        let may = color == "red";
        for ask in [call(1, "red"), session.call(1, "red", json!({}))] {
            let answer = send(&service, ask.with("x-color", color)).await;
            assert_eq!(answer.text() == "red", may, "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_server_of_its_own_knows_the_address() {
    let server = Server::new("seen", "1.0.0").with(Tool::new("seen", seen));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(server.http().serve_until(listener, std::future::pending()));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let ask = super::socket::wire(&call(1, "seen"));
    // Twice: the memory of the first request is used again.
    for _ in 0..2 {
        tokio::io::AsyncWriteExt::write_all(&mut stream, ask.as_bytes()).await.unwrap();
        let answer = super::socket::read_until(&mut stream, "no color").await;
        assert!(answer.contains(r#"no color, nobody, Some(\"127.0.0.1\")"#), "{answer}");
    }
    served.abort();
}

#[tokio::test]
async fn a_handler_that_goes_on_keeps_its_request() {
    let (sender, mut contexts) = tokio::sync::mpsc::unbounded_channel();
    let keep = move |context: Context, _: Nothing| {
        sender.send(context).unwrap();
        async { "kept" }
    };
    let server = Server::new("keeps", "1.0.0").with(Tool::new("keep", keep));
    let service = server.http().into_service().unwrap();
    for color in ["red", "blue", "green"] {
        send(&service, call(1, "keep").with("x-color", color)).await;
    }
    for color in ["red", "blue", "green"] {
        assert_eq!(contexts.recv().await.unwrap().headers()["x-color"], color);
    }
}

#[cfg(feature = "auth")]
#[tokio::test]
async fn a_token_that_a_guard_has_checked_is_not_shown() {
    use bowline::http::auth::{Guard, Identity};

    let see = |context: Context, _: Nothing| async move {
        let names = context.headers().keys().map(ToString::to_string).collect::<Vec<_>>();
        names.join(" ")
    };
    let verify = |_: String| async { Ok(Identity::new("ann")) };
    let guard = Guard::new("http://localhost/mcp", verify).unwrap();
    let server = Server::new("guarded", "1.0.0").with(Tool::new("see", see));
    let service = server.http().require_auth(guard).into_service().unwrap();
    let ask = call(1, "see").with("authorization", "Bearer t").with("dpop", "p").with("x-a", "b");
    let names = send(&service, ask).await.text();
    assert!(names.contains("x-a") && names.contains("mcp-method"), "{names}");
    assert!(!names.contains("authorization") && !names.contains("dpop"), "{names}");
}
