//! The tools.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskExit, TaskOptions};
use serde_json::{Value, json};

use crate::question::{Question, is_modern};
use crate::state::{COUNTER, Change, Interop};

/// All tools, in order.
pub fn list(has_extra: bool) -> Vec<Tool> {
    let mut tools = vec![
        tool("echo", json!({ "message": { "type": "string" } })),
        sum(),
        tool("fail", json!({})),
        tool("slow", json!({ "steps": { "type": "integer" }, "ms": { "type": "integer" } })),
        tool("wait", json!({})),
        tool("abandoned", json!({})),
        tool("ended", json!({})),
        tool("log", json!({})),
        tool("touch", json!({})),
        tool("change_tools", json!({})),
        tool("ask", json!({})),
        tool("sample", json!({ "message": { "type": "string" } })),
        tool("roots", json!({})),
        tool("long", json!({ "ms": { "type": "integer" } })),
        tool("long_ask", json!({})),
    ];
    if has_extra {
        tools.push(tool("extra", json!({})));
    }
    tools
}

fn object(properties: Value) -> Arc<JsonObject> {
    let required: Vec<&String> =
        properties.as_object().into_iter().flatten().map(|it| it.0).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Arc::new(serde_json::from_value(schema).expect("an object"))
}

fn tool(name: &'static str, properties: Value) -> Tool {
    Tool::new_with_raw(name, None, object(properties))
}

fn sum() -> Tool {
    let mut sum = tool("sum", json!({ "a": { "type": "integer" }, "b": { "type": "integer" } }));
    sum.output_schema = Some(object(json!({ "total": { "type": "integer" } })));
    sum
}

/// Runs a tool.
pub async fn call(
    server: &Interop,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let message = || arguments["message"].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| arguments[name].as_i64().unwrap_or_default();
    let state = &server.state;
    let said = match &*request.name {
        "echo" => message(),
        "sum" => {
            let total = json!({ "total": number("a") + number("b") });
            return Ok(CallToolResult::structured(total).into());
        }
        "fail" => {
            let why = ContentBlock::text("there is no luck today");
            return Ok(CallToolResult::error(vec![why]).into());
        }
        "slow" => slow(&context, number("steps"), number("ms")).await,
        "wait" => wait(server, &context).await,
        "abandoned" => state.abandoned.load(Ordering::Relaxed).to_string(),
        "ended" => state.ended.load(Ordering::Relaxed).to_string(),
        "log" => log(server, &context).await,
        "touch" => touch(server, &context).await,
        "change_tools" => change_tools(server, &context).await,
        "extra" => "not always here".to_owned(),
        "ask" => return Question::Form.ask(request.input_responses, &context).await,
        "sample" => {
            return Question::Message(message()).ask(request.input_responses, &context).await;
        }
        "long" => return Ok(long(server, &context, number("ms")).await),
        "long_ask" if has_tasks(&context) => return Ok(long_ask(server)),
        "long_ask" => return Question::Form.ask(request.input_responses, &context).await,
        "roots" => return Question::Roots.ask(request.input_responses, &context).await,
        _ => return Err(ErrorData::invalid_params("no such tool", None)),
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
}

async fn report(context: &RequestContext<RoleServer>, progress: ProgressNotificationParam) {
    // A client that has disconnected gets nothing.
    let _ = context.peer.notify_progress(progress).await;
}

async fn slow(context: &RequestContext<RoleServer>, steps: i64, ms: i64) -> String {
    for step in 1..=steps {
        tokio::time::sleep(Duration::from_millis(ms.unsigned_abs())).await;
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, step as f64)
                .with_total(steps as f64)
                .with_message(format!("step {step}"));
            report(context, progress).await;
        }
    }
    format!("{steps} steps")
}

async fn wait(server: &Interop, context: &RequestContext<RoleServer>) -> String {
    if let Some(token) = context.meta.get_progress_token() {
        report(context, ProgressNotificationParam::new(token, 1.0)).await;
    }
    tokio::select! {
        () = context.ct.cancelled() => {
            server.state.abandoned.fetch_add(1, Ordering::Relaxed);
            "stopped".to_owned()
        }
        () = tokio::time::sleep(Duration::from_secs(60)) => "nobody stopped it".to_owned(),
    }
}

async fn log(server: &Interop, context: &RequestContext<RoleServer>) -> String {
    let least =
        if is_modern(context) { context.meta.log_level() } else { Some(server.log_level()) };
    for level in [LoggingLevel::Info, LoggingLevel::Warning, LoggingLevel::Error] {
        if least.is_some_and(|least| level as u8 >= least as u8) {
            let name = format!("{level:?}").to_lowercase();
            let data = json!(format!("a message of level {name}"));
            let message = LoggingMessageNotificationParam::new(level, data);
            let _ = context.peer.notify_logging_message(message).await;
        }
    }
    "logged".to_owned()
}

async fn touch(server: &Interop, context: &RequestContext<RoleServer>) -> String {
    let touched = server.state.touched.fetch_add(1, Ordering::Relaxed) + 1;
    // There may be no listeners.
    let _ = server.state.changes.send(Change::Counter);
    if server.wants(COUNTER) {
        let updated = ResourceUpdatedNotificationParam::new(COUNTER);
        let _ = context.peer.notify_resource_updated(updated).await;
    }
    touched.to_string()
}

async fn change_tools(server: &Interop, context: &RequestContext<RoleServer>) -> String {
    server.state.has_extra.fetch_xor(true, Ordering::Relaxed);
    let _ = server.state.changes.send(Change::Tools);
    if !is_modern(context) {
        let _ = context.peer.notify_tool_list_changed().await;
    }
    "changed".to_owned()
}

fn has_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// Asks in a task.
fn long_ask(server: &Interop) -> CallToolResponse {
    let options = TaskOptions::new().with_poll_interval_ms(50);
    let task = server.state.tasks.spawn(options, |task| {
        Box::pin(async move {
            let answer = task.request_input("answer", Question::Form.embed()).await?;
            let said = Question::Form.tell(&answer);
            Ok(CallToolResult::success(vec![ContentBlock::text(said)]))
        })
    });
    CallToolResponse::Task(CreateTaskResult::new(task))
}

/// Takes a while: as a task for clients that can wait for one.
async fn long(server: &Interop, context: &RequestContext<RoleServer>, ms: i64) -> CallToolResponse {
    let pause = Duration::from_millis(ms.unsigned_abs());
    let done = || CallToolResult::success(vec![ContentBlock::text("long enough")]);
    if !has_tasks(context) {
        tokio::time::sleep(pause).await;
        return done().into();
    }
    let options = TaskOptions::new().with_poll_interval_ms(50).with_status_message("busy");
    let task = server.state.tasks.spawn(options, move |task| {
        Box::pin(async move {
            tokio::select! {
                () = task.cancelled() => Err(TaskExit::Cancelled),
                () = tokio::time::sleep(pause) => Ok(done()),
            }
        })
    });
    CallToolResponse::Task(CreateTaskResult::new(task))
}
