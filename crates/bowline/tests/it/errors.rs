//! Errors keep what they say: those of handlers on their way to the client, and those of `main`.

use anyhow::Context as _;
use bowline::{
    AskError, BuildError, Context, ErrorObject, HandlerError, Revision, ServeError, Server, Tool,
    testing,
};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Empty {}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the question failed")]
    Ask(#[from] AskError),
    #[error("the disk failed")]
    Disk(#[source] std::io::Error),
    #[error("refused")]
    Refused(#[source] ErrorObject),
}

async fn ask(context: &Context) -> Result<String, AskError> {
    Ok(context.confirm("Sure?").await?.to_string())
}

async fn bare(context: Context, _: Empty) -> Result<String, AskError> {
    ask(&context).await
}

async fn converted(context: Context, _: Empty) -> Result<String, HandlerError> {
    Ok(ask(&context).await?)
}

async fn boxed(
    context: Context,
    _: Empty,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    Ok(ask(&context).await?)
}

async fn in_enum(context: Context, _: Empty) -> Result<String, Broken> {
    Ok(ask(&context).await?)
}

async fn in_anyhow(context: Context, _: Empty) -> anyhow::Result<String> {
    Ok(ask(&context).await?)
}

async fn in_anyhow_with_context(context: Context, _: Empty) -> anyhow::Result<String> {
    ask(&context).await.context("while asking")
}

async fn enum_in_anyhow(context: Context, _: Empty) -> anyhow::Result<String> {
    Ok(ask(&context).await.map_err(Broken::from)?)
}

fn asking() -> Server {
    Server::new("asking", "1.0.0")
        .with(Tool::new("bare", bare))
        .with(Tool::new("converted", converted))
        .with(Tool::new("boxed", boxed))
        .with(Tool::new("enum", in_enum))
        .with(Tool::new("anyhow", in_anyhow))
        .with(Tool::new("context", in_anyhow_with_context))
        .with(Tool::new("enum in anyhow", enum_in_anyhow))
}

#[tokio::test]
async fn a_missing_capability_stays_one_however_it_is_returned() {
    for revision in Revision::ALL {
        let client = testing::connect_in(asking(), revision).await.unwrap();
        for tool in client.list_tools().await.unwrap() {
            let error = client.call_tool(&tool.name, json!({})).await.unwrap_err();
            let error = error.as_refusal().unwrap();
            let code = if revision.is_modern() { "-32021" } else { "-32600" };
            assert_eq!(error.code.to_string(), code, "{revision}: {}: {error}", tool.name);
            assert!(error.message.contains("forms for its user"), "{}: {error}", tool.name);
        }
    }
}

fn failing() -> Server {
    let disk = || Broken::Disk(std::io::Error::other("no space"));
    let refuse = || Broken::Refused(ErrorObject::invalid_params("not today"));
    Server::new("failing", "1.0.0")
        .with(Tool::new("text", || async { Err::<String, _>("no luck") }))
        .with(Tool::new("disk", move || async move { Err::<String, _>(disk()) }))
        .with(Tool::new("anyhow", move || async move {
            Err::<String, _>(anyhow::Error::new(disk()).context("cannot save"))
        }))
        .with(Tool::new("question mark", || async {
            let number: u8 = "x".parse()?;
            Ok::<_, HandlerError>(number)
        }))
        .with(Tool::new("refused", move || async move { Err::<String, _>(refuse()) }))
        .with(Tool::new("object", || async {
            Err::<String, _>(ErrorObject::invalid_params("not today"))
        }))
}

#[tokio::test]
async fn other_errors_are_sentences_for_the_model() {
    for revision in Revision::ALL {
        let client = testing::connect_in(failing(), revision).await.unwrap();
        for (tool, expected) in [
            ("text", "no luck"),
            ("disk", "the disk failed: no space"),
            ("anyhow", "cannot save: the disk failed: no space"),
            ("question mark", "invalid digit found in string"),
        ] {
            let result = client.call_tool(tool, json!({})).await.unwrap();
            assert_eq!(result.is_error, Some(true), "{revision}: {tool}");
            assert_eq!(result.content[0].as_text(), Some(expected), "{revision}: {tool}");
        }
        for tool in ["refused", "object"] {
            let error = client.call_tool(tool, json!({})).await.unwrap_err();
            assert_eq!(error.as_refusal().unwrap().message, "not today", "{revision}: {tool}");
        }
    }
}

/// What the standard library prints when `main` returns this.
fn printed(error: &impl std::fmt::Debug) -> String {
    format!("Error: {error:?}")
}

#[tokio::test]
async fn a_main_prints_sentences() {
    let twice = || Tool::new("a", || async { "" });
    let (_ours, theirs) = tokio::io::duplex(64);
    let error = Server::new("x", "1").with((twice(), twice())).serve(theirs).await.unwrap_err();
    let expected = r#"Error: the server cannot be built: two tools have the name "a""#;
    assert_eq!(printed(&error), expected);
    let unguarded = BuildError::Unguarded { kind: "tool", name: "delete".to_owned() };
    assert!(printed(&unguarded).starts_with(r#"Error: tool "delete" needs scopes"#));
    let error = bowline::Client::connect(bowline::client::Command::new("/no/such/program"))
        .await
        .unwrap_err();
    assert!(printed(&error).starts_with(r#"Error: cannot start "/no/such/program": "#));
    assert_eq!(printed(&AskError::TimedOut), "Error: the client did not answer in time");
    assert_eq!(printed(&HandlerError::failed("no luck")), "Error: no luck");
}

#[cfg(feature = "http")]
#[tokio::test]
async fn an_address_in_use_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let error = Server::new("x", "1").serve_http(&address).await.unwrap_err();
    assert!(matches!(error, ServeError::Listen { .. }));
    let expected = format!("Error: cannot listen on {address}: ");
    assert!(printed(&error).starts_with(&expected), "{error:?}");
}

/// Text that a subscriber writes.
#[cfg(feature = "http")]
#[derive(Clone, Default)]
struct Written(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(feature = "http")]
impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_server_over_http_logs_where_it_listens() {
    let written = Written::default();
    let sink = written.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || sink.clone()).with_ansi(false);
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    Server::new("x", "1").http().serve_until(listener, async {}).await.unwrap();
    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains(&format!("listening on http://{address}/mcp")), "{log}");
}
