//! What every client can do, over every transport in every revision.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::client::{CallError, Change, Client, Phase, Wanted};
use bowline::model::LoggingLevel;
use bowline::{Revision, Server, Tool};
use serde_json::json;

use super::world::{Total, Via, builder, connect, everywhere, server};

#[tokio::test]
async fn the_newest_common_revision_is_spoken() {
    let client = Client::connect(server()).await.unwrap();
    let peer = client.peer().unwrap();
    assert_eq!(peer.revision, Revision::LATEST);
    assert_eq!(peer.info.as_ref().unwrap().name, "everything");
    assert_eq!(client.state().phase, Phase::Ready);
    let watch = client.watch();
    client.close().await;
    assert_eq!(watch.state().phase, Phase::Closed);
}

#[tokio::test]
async fn lists_and_calls() {
    everywhere(|revision, client| async move {
        assert_eq!(client.peer().unwrap().revision, revision);
        let tools = client.list_tools().await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "sum"));
        let sum = client.call_tool("sum", json!({ "a": 1, "b": 2 }));
        if revision >= Revision::V2025_06_18 {
            assert_eq!(sum.structured::<Total>().await.unwrap().total, 3);
        } else {
            assert!(sum.text().await.unwrap().contains('3'));
        }
        let prompts = client.list_prompts().await.unwrap();
        assert_eq!(prompts.len(), 1);
        assert_eq!(client.get_prompt("hello", &[]).await.unwrap().messages.len(), 1);
        assert_eq!(client.list_resources().await.unwrap().len(), 1);
        assert!(client.list_resource_templates().await.unwrap().is_empty());
        let read = client.read_resource("test://static").await.unwrap();
        assert_eq!(read.contents[0].as_text(), Some("some text"));
        client.ping().await.unwrap();
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn progress_is_told_before_the_answer() {
    everywhere(|_, client| async move {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&seen);
        let call = client
            .call_tool("count", json!({}))
            .on_progress(move |report| hear.lock().unwrap().push(report.progress));
        assert_eq!(call.text().await.unwrap(), "counted");
        assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0]);
        let (call, mut progress) = client.call_tool("count", json!({})).with_progress();
        let reports = tokio::spawn(async move {
            let mut count = 0;
            while progress.next().await.is_some() {
                count += 1;
            }
            count
        });
        call.await.unwrap();
        assert_eq!(reports.await.unwrap(), 3);
    })
    .await;
}

#[tokio::test]
async fn the_server_asks_the_user() {
    everywhere(|revision, client| async move {
        let said = client.call_tool("ask", json!({})).text().await;
        match revision >= Revision::V2025_06_18 {
            true => assert_eq!(said.unwrap(), "hello, Ada"),
            // These revisions cannot ask.
            false => assert!(said.is_err()),
        }
    })
    .await;
}

#[tokio::test]
async fn changes_are_told() {
    everywhere(|_, client| async move {
        let wanted = Wanted::all_lists().resource("test://static");
        let mut changes = client.changes(wanted).await.unwrap();
        client.call_tool("grow", json!({})).await.unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Tools);
        client.call_tool("touch", json!({})).await.unwrap();
        let uri = "test://static".to_owned();
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resource(uri));
        client.close().await;
        assert!(changes.next().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn logs_come_in_order() {
    everywhere(|_, client| async move {
        client.set_log_level(Some(LoggingLevel::Info)).await.unwrap();
        let mut heard = client.notifications();
        client.call_tool("log", json!({})).await.unwrap();
        let logged = heard.next_of("notifications/message").await.unwrap();
        assert!(logged.params.as_str().contains("careful"));
    })
    .await;
}

#[tokio::test]
async fn what_the_server_lacks_is_named_before_anything_is_sent() {
    let server = Server::new("bare", "1.0.0").with(Tool::new("t", || async { "t" }));
    let client = Client::connect(server).await.unwrap();
    let error = client.list_prompts().await.unwrap_err();
    let expected = r#"prompts/list: the server does not declare "prompts", which this call needs"#;
    assert_eq!(error.to_string(), expected);
    assert!(client.pending().is_empty());
}

#[tokio::test]
async fn a_call_times_out() {
    everywhere(|_, client| async move {
        let call = client.call_tool("sleep", json!({})).timeout(Duration::from_millis(50));
        let error = call.await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
        assert!(client.pending().is_empty());
        client.close().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_is_told_that_time_is_up() {
    for revision in Revision::ALL {
        let client = connect(Via::Memory, builder(revision)).await;
        let call = client.call_tool("sleep", json!({})).timeout(Duration::from_secs(5));
        assert!(matches!(call.await, Err(CallError::TimedOut { .. })));
        // Closing at once means that the handler was stopped.
        let begun = tokio::time::Instant::now();
        client.close().await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{revision}");
    }
}

#[tokio::test]
async fn the_server_asks_for_roots() {
    everywhere(|_, client| async move {
        assert_eq!(client.call_tool("roots", json!({})).text().await.unwrap(), "file:///a");
    })
    .await;
}

#[tokio::test]
async fn calls_carry_the_current_span() {
    let subscriber = tracing_subscriber::registry();
    let _guard = tracing::subscriber::set_default(subscriber);
    let client = Client::connect(server()).await.unwrap();
    assert_eq!(client.call_tool("trace", json!({})).text().await.unwrap(), "none");
    let span = tracing::info_span!("work");
    let call = tracing::Instrument::instrument(client.call_tool("trace", json!({})).text(), span);
    let parent = call.await.unwrap();
    assert_eq!(parent.len(), 55, "{parent}");
    assert!(parent.starts_with("00-") && parent.ends_with("-01"), "{parent}");
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    everywhere(|_, client| async move {
        let sleeping = tokio::spawn({
            let client = client.clone();
            async move { client.call_tool("sleep", json!({})).await }
        });
        while client.pending().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.pending()[0].method, "tools/call");
        sleeping.abort();
        let _ = sleeping.await;
        assert!(client.pending().is_empty());
        client.ping().await.unwrap();
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn calls_end_with_the_connection() {
    everywhere(|_, client| async move {
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call_tool("sleep", json!({})).await }
        });
        while client.pending().is_empty() {
            tokio::task::yield_now().await;
        }
        client.clone().close().await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the connection ended: the client closed it");
        let error = client.ping().await.unwrap_err();
        assert!(matches!(error, CallError::Closed(_)), "{error}");
    })
    .await;
}
