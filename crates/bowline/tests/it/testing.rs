//! The test kit: principals, headers, every revision, and time that passes at once.

use std::time::Duration;

use bowline::client::{CallError, FormAnswer};
use bowline::testing;
use bowline::{Context, Elicited, HandlerError, Limits, Revision, Server, Structured, Tool};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Empty {}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
struct Name {
    name: String,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn ask(context: Context, _: Empty) -> Result<Structured<Name>, HandlerError> {
    match context.elicit::<Name>("Your name?").await? {
        Elicited::Accepted(name) => Ok(Structured(name)),
        _ => Ok(Structured(Name { name: "nobody".to_owned() })),
    }
}

#[tokio::test]
async fn a_test_runs_in_every_revision() {
    let seen = std::sync::Mutex::new(Vec::new());
    testing::each_revision(async |client| {
        let server = Server::new("ask", "1.0.0").with(Tool::new("ask", ask));
        let answer = |_| async { Ok(FormAnswer::accept(&json!({ "name": "Ada" }))) };
        let client = client.on_form(answer).connect(server).await.unwrap();
        let revision = client.peer().unwrap().revision;
        seen.lock().unwrap().push(revision);
        // Forms exist since 2025-06-18, and so does structured content.
        if revision >= Revision::V2025_06_18 {
            let name: Name = client.call_tool("ask", json!({})).structured().await.unwrap();
            assert_eq!(name, Name { name: "Ada".to_owned() });
        }
    })
    .await;
    assert_eq!(seen.into_inner().unwrap(), Revision::ALL);
}

/// A server on which much time passes.
fn slow(limits: Limits) -> Server {
    let sleepy = |context: Context, _: Empty| async move {
        for hour in 1..=3 {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            context.progress(f64::from(hour), 3.0, "");
        }
        "awake"
    };
    Server::new("slow", "1.0.0").limits(limits).with(Tool::new("sleep", sleepy))
}

#[tokio::test(start_paused = true)]
async fn time_passes_at_once() {
    let three_hours = Duration::from_secs(10_800);
    testing::each_revision(async |client| {
        let limits = Limits { deadline: DAY, ..Limits::default() };
        let client = client.connect(slow(limits)).await.unwrap();
        let begun = tokio::time::Instant::now();
        let (call, mut progress) = client.call_tool("sleep", json!({})).with_progress();
        let call = tokio::spawn(call.idle_timeout(DAY).timeout(DAY).text());
        let mut hours = Vec::new();
        while let Some(report) = progress.next().await {
            hours.push(report.progress);
        }
        assert_eq!(call.await.unwrap().unwrap(), "awake");
        assert_eq!(hours, [1.0, 2.0, 3.0]);
        assert!(begun.elapsed() >= three_hours && begun.elapsed() < 2 * three_hours);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn deadlines_pass_at_once() {
    testing::each_revision(async |client| {
        let client = client.connect(slow(Limits::default())).await.unwrap();
        let call = client.call_tool("sleep", json!({})).idle_timeout(DAY).timeout(DAY);
        let error = call.await.unwrap_err();
        assert!(error.as_refusal().unwrap().message.contains("timed out"), "{error}");
        // The client's patience can be the shorter one.
        let call = client.call_tool("sleep", json!({})).timeout(Duration::from_secs(1));
        assert!(matches!(call.await.unwrap_err(), CallError::TimedOut { .. }));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_at_once() {
    testing::each_revision(async |client| {
        let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
        let wait = move |context: Context, _: Empty| {
            let started = started.clone();
            async move {
                started.send(context.clone()).unwrap();
                tokio::time::sleep(DAY).await;
                "late"
            }
        };
        let limits = Limits { deadline: 2 * DAY, ..Limits::default() };
        let server = Server::new("wait", "1.0.0").limits(limits).with(Tool::new("wait", wait));
        let client = client.connect(server).await.unwrap();
        let call = tokio::spawn(client.call_tool("wait", json!({})).text());
        let context: Context = starts.recv().await.unwrap();
        call.abort();
        context.cancelled().await;
        assert!(context.is_cancelled());
    })
    .await;
}

#[cfg(all(feature = "http", feature = "client-http"))]
mod over_http {
    use bowline::testing::over_http;
    use bowline::{Caller, Principal};

    use super::*;

    #[derive(Clone)]
    struct Tenant(&'static str);

    async fn seen(context: Context, _: Empty) -> String {
        let language = context.headers().get("accept-language").map(|it| it.to_str().unwrap());
        let tenant = context.extensions().get::<Tenant>().map(|it| it.0);
        let principal = context.caller().principal.as_ref().map(|it| it.as_str().to_owned());
        format!("{principal:?} {language:?} {tenant:?} {:?}", context.peer_addr())
    }

    fn is_ada(caller: &Caller) -> bool {
        caller.principal.as_ref().is_some_and(|it| it.as_str() == "ada")
    }

    fn server() -> Server {
        let limits = Limits { deadline: Duration::from_secs(30), ..Limits::default() };
        slow(limits)
            .with(Tool::new("seen", seen))
            .with(Tool::new("ask", ask))
            .with(Tool::new("secret", || async { "secret" }).visible_to(is_ada))
            .with(Tool::new("delete", || async { "deleted" }).scopes(["write", "admin"]))
    }

    fn ada() -> Principal {
        Principal::new("ada").with_scopes(["write", "admin"])
    }

    #[tokio::test]
    async fn a_client_is_who_the_test_says() {
        testing::each_revision(async |client| {
            let server = over_http(server())
                .principal(ada())
                .header("accept-language", "en")
                .extension(Tenant("blue"))
                .peer_addr(([192, 0, 2, 1], 7).into());
            let client = client.connect(server).await.unwrap();
            let seen = client.call_tool("seen", json!({})).text().await.unwrap();
            assert_eq!(seen, r#"Some("ada") Some("en") Some("blue") Some(192.0.2.1:7)"#);
            assert_eq!(client.list_tools().await.unwrap().len(), 5);
            assert_eq!(client.call_tool("delete", json!({})).text().await.unwrap(), "deleted");
        })
        .await;
    }

    #[tokio::test]
    async fn missing_scopes_are_refused_as_on_a_network() {
        testing::each_revision(async |client| {
            let bob = Principal::new("bob").with_scopes(["write"]);
            let client = client.connect(over_http(server()).principal(bob)).await.unwrap();
            assert_eq!(client.list_tools().await.unwrap().len(), 4);
            let error = client.call_tool("delete", json!({})).await.unwrap_err();
            let CallError::Unauthorized { status: 403, problem, .. } = &error else {
                panic!("{error:?}")
            };
            assert!(problem.contains("write admin"), "{problem}");
        })
        .await;
    }

    #[tokio::test]
    async fn without_a_principal_the_client_is_nobody() {
        testing::each_revision(async |client| {
            let client = client.connect(over_http(server())).await.unwrap();
            let seen = client.call_tool("seen", json!({})).text().await.unwrap();
            assert_eq!(seen, "None None None None");
            assert!(client.call_tool("secret", json!({})).await.is_err());
            assert!(client.call_tool("delete", json!({})).await.is_err());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_and_questions_work_there_too() {
        testing::each_revision(async |client| {
            let answer = |_| async { Ok(FormAnswer::accept(&json!({ "name": "Ada" }))) };
            let client = client.on_form(answer).connect(over_http(server())).await.unwrap();
            if client.peer().unwrap().revision >= Revision::V2025_06_18 {
                let name: Name = client.call_tool("ask", json!({})).structured().await.unwrap();
                assert_eq!(name.name, "Ada");
            }
            let call = client.call_tool("sleep", json!({})).idle_timeout(DAY).timeout(DAY);
            let error = call.await.unwrap_err();
            assert!(error.as_refusal().unwrap().message.contains("timed out"), "{error}");
        })
        .await;
    }

    #[tokio::test]
    async fn mistakes_are_reported_on_connecting() {
        let twice = server().with(Tool::new("seen", seen));
        let error = testing::connect(over_http(twice)).await.unwrap_err();
        assert!(error.to_string().contains("seen"), "{error}");
        let error = testing::connect(over_http(server()).header("x y", "")).await.unwrap_err();
        assert!(error.to_string().contains("x y"), "{error}");
    }
}
