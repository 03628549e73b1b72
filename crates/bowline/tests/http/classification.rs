//! The era of a request: every combination of headers and claims.

use std::collections::BTreeMap;

use bowline::http::HttpService;
use bowline::{Revision, Server, Tool};
use http::Method;
use serde_json::{Value, json};

use super::client::{Ask, Session, initialize, modern, request, send};
use super::world::World;

const MODERN: &str = "2026-07-28";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Body {
    Modern,
    /// Claims a revision that needs a handshake.
    ClaimsLegacy,
    ClaimsUnknown,
    Legacy,
    Initialize,
    Notification,
    Response,
    Empty,
    Array,
}

const BODIES: [Body; 9] = [
    Body::Modern,
    Body::ClaimsLegacy,
    Body::ClaimsUnknown,
    Body::Legacy,
    Body::Initialize,
    Body::Notification,
    Body::Response,
    Body::Empty,
    Body::Array,
];

const HEADERS: [Option<&str>; 6] = [
    None,
    Some("2025-03-26"),
    Some("2025-11-25"),
    Some(MODERN),
    Some("1999-01-01"),
    Some("2099-01-01"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Named {
    None,
    Valid,
    Unknown,
    Ended,
    Foreign,
}

const NAMED: [Named; 5] = [Named::None, Named::Valid, Named::Unknown, Named::Ended, Named::Foreign];

fn body(body: Body) -> String {
    let claiming = |version: &str| {
        let text = modern(1, "tools/list", json!({})).body;
        text.replace(MODERN, version)
    };
    match body {
        Body::Modern => claiming(MODERN),
        Body::ClaimsLegacy => claiming("2025-11-25"),
        Body::ClaimsUnknown => claiming("1999-01-01"),
        Body::Legacy => request(1, "tools/list", json!({})).to_string(),
        Body::Initialize => initialize("2025-11-25").to_string(),
        Body::Notification => json!({ "jsonrpc": "2.0", "method": "notifications/x" }).to_string(),
        Body::Response => json!({ "jsonrpc": "2.0", "id": 1, "result": {} }).to_string(),
        Body::Empty => String::new(),
        Body::Array => json!([request(1, "tools/list", json!({}))]).to_string(),
    }
}

/// The expected status and code: the rules, written a second time.
fn expected(body: Body, header: Option<&str>, named: Named, session: Revision) -> (u16, i64) {
    let parsed = header.map(|header| header.parse::<Revision>().ok());
    let names_legacy = parsed.is_none_or(|it| it.is_some_and(|it| !it.is_modern()));
    let in_session = |served: (u16, i64)| match named {
        Named::None => (400, -32600),
        _ if !names_legacy => (400, -32600),
        Named::Valid => served,
        Named::Unknown | Named::Ended | Named::Foreign => (404, -32600),
    };
    let claims = match body {
        Body::Modern => Some(MODERN),
        Body::ClaimsLegacy => Some("2025-11-25"),
        Body::ClaimsUnknown => Some("1999-01-01"),
        _ => None,
    };
    match body {
        Body::Empty => (400, -32700),
        Body::Array => match named {
            Named::None => (400, -32600),
            Named::Valid if !names_legacy => (400, -32600),
            Named::Valid if session == Revision::V2025_03_26 => (200, 0),
            Named::Valid => (400, -32600),
            _ => (404, -32600),
        },
        _ if claims.is_some() => match claims {
            claims if header != claims => (400, -32020),
            Some(MODERN) => (200, 0),
            _ => (400, -32022),
        },
        Body::Response => in_session((202, 0)),
        // Without a claim in the body or a session, the header alone can make it modern.
        Body::Initialize if header == Some(MODERN) && named == Named::None => (404, -32601),
        Body::Initialize => (200, 0),
        _ if !names_legacy && named == Named::None => match body {
            Body::Notification if header == Some(MODERN) => (202, 0),
            Body::Notification => (400, -32022),
            _ => (400, -32602),
        },
        Body::Notification => in_session((202, 0)),
        _ => in_session((200, 0)),
    }
}

/// Sessions of every kind, in one revision.
struct Ids(BTreeMap<&'static str, String>);

impl Ids {
    async fn open(service: &HttpService, revision: Revision) -> Self {
        let mut ids = BTreeMap::new();
        for (name, user) in [("valid", "ann"), ("ended", "ann"), ("foreign", "bob")] {
            let session = Session::open_as(service, revision, Some(user)).await;
            if name == "ended" {
                assert_eq!(send(service, session.delete()).await.status, 204);
            }
            ids.insert(name, session.id);
        }
        Self(ids)
    }

    fn name(&self, ask: Ask, named: Named) -> Ask {
        let ask = ask.with("x-user", "ann");
        match named {
            Named::None => ask,
            Named::Valid => ask.with("mcp-session-id", &self.0["valid"]),
            Named::Unknown => ask.with("mcp-session-id", &"0".repeat(32)),
            Named::Ended => ask.with("mcp-session-id", &self.0["ended"]),
            Named::Foreign => ask.with("mcp-session-id", &self.0["foreign"]),
        }
    }
}

#[tokio::test]
async fn every_post() {
    let world = World::new();
    let legacy = Revision::ALL.into_iter().filter(|revision| !revision.is_modern());
    for revision in legacy {
        let ids = Ids::open(&world.service, revision).await;
        for (kind, header) in BODIES.iter().flat_map(|kind| HEADERS.map(|it| (*kind, it))) {
            for named in NAMED {
                let ask = ids.name(post(kind, header), named);
                let answer = send(&world.service, ask).await;
                let case = format!("{kind:?} {header:?} {named:?} {revision}: {}", answer.body);
                let found = (answer.status, answer.code().unwrap_or(0));
                assert_eq!(found, expected(kind, header, named, revision), "{case}");
                check_body(kind, &answer.json(), answer.status, &case);
                let opens = kind == Body::Initialize && answer.status == 200;
                assert_eq!(answer.header("mcp-session-id").is_some(), opens, "{case}");
            }
        }
    }
}

fn post(kind: Body, header: Option<&str>) -> Ask {
    let ask = Ask::post(body(kind)).with("mcp-method", "tools/list");
    match header {
        Some(header) => ask.with("mcp-protocol-version", header),
        None => ask,
    }
}

fn check_body(kind: Body, body: &Value, status: u16, case: &str) {
    match (kind, status) {
        (_, 202) => assert_eq!(*body, Value::Null, "{case}"),
        (Body::Modern, 200) => assert_eq!(body["result"]["resultType"], "complete", "{case}"),
        (Body::Legacy, 200) => {
            assert!(body["result"]["tools"].is_array(), "{case}");
            assert_eq!(body["result"]["resultType"], Value::Null, "{case}");
        }
        (Body::Initialize, 200) => {
            assert_eq!(body["result"]["protocolVersion"], "2025-11-25", "{case}");
        }
        (Body::Array, 200) => assert!(body[0]["result"]["tools"].is_array(), "{case}"),
        (_, 200) => panic!("{case}"),
        _ => assert!(!body["error"]["message"].as_str().unwrap().is_empty(), "{case}"),
    }
}

#[tokio::test]
async fn every_other_method() {
    let world = World::new();
    let ids = Ids::open(&world.service, Revision::V2025_11_25).await;
    let methods = [Method::GET, Method::DELETE, Method::PUT, Method::PATCH, Method::OPTIONS];
    for (method, header) in methods.iter().flat_map(|it| HEADERS.map(|header| (it, header))) {
        for named in [Named::None, Named::Unknown, Named::Ended, Named::Foreign] {
            let mut ask = ids.name(Ask::new(method.clone(), "/mcp"), named);
            if let Some(header) = header {
                ask = ask.with("mcp-protocol-version", header);
            }
            let answer = send(&world.service, ask).await;
            let expected = match *method {
                Method::GET | Method::DELETE if named == Named::None => 400,
                Method::GET | Method::DELETE => 404,
                _ => 405,
            };
            assert_eq!(answer.status, expected, "{method} {header:?} {named:?}");
            assert_eq!(answer.code(), Some(-32600));
            let allow = (expected == 405).then_some("GET, POST, DELETE");
            assert_eq!(answer.header("allow"), allow);
        }
    }
}

#[tokio::test]
async fn a_modern_server_knows_no_sessions() {
    let server = Server::new("modern", "1.0.0").revisions(Revision::V2026_07_28.into());
    let server = server.with(Tool::new("x", || async { "x" }));
    let service = server.http().into_service().unwrap();
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = send(&service, Ask::new(method, "/mcp")).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    }
    let refused = send(&service, Ask::post(initialize("2025-11-25"))).await;
    assert_eq!((refused.status, refused.code()), (400, Some(-32022)), "{}", refused.body);
    assert_eq!(refused.json()["id"], 0);
    assert_eq!(send(&service, modern(1, "tools/list", json!({}))).await.status, 200);
    let legacy = send(&service, Ask::post(request(1, "tools/list", json!({})))).await;
    assert_eq!((legacy.status, legacy.code()), (400, Some(-32602)));
}
