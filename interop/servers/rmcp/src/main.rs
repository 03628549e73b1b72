//! A server with the official Rust SDK, in both eras: `rmcp-server stdio`, or `rmcp-server http
//! <port>`. It offers the same things as the other servers here, under the same names.

// The SDK marks what 2026-07-28 deprecates as deprecated; it is walked nevertheless.
#![allow(deprecated)]

mod question;
mod state;
mod tools;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt};

use crate::state::{COUNTER, Change, Interop, State};

const USERS: [&str; 3] = ["ada", "alan", "grace"];
/// The number of tools per page.
const PAGE: usize = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let state = Arc::new(State::new());
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["http", port] => serve_http(state, port.parse()?).await,
        _ => {
            let running = Interop::new(state).serve(rmcp::transport::stdio()).await?;
            running.waiting().await?;
            Ok(())
        }
    }
}

async fn serve_http(state: Arc<State>, port: u16) -> Result<(), Box<dyn Error>> {
    let build = Arc::clone(&state);
    let service = StreamableHttpService::new(
        move || Ok(Interop::new(Arc::clone(&build))),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let service = TowerToHyperService::new(service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (service, state) = (service.clone(), Arc::clone(&state));
        let counted = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let is_end = request.method() == hyper::Method::DELETE;
            let (answer, state) = (service.call(request), Arc::clone(&state));
            async move {
                let answer = answer.await?;
                if is_end && answer.status().is_success() {
                    state.ended.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), counted);
        // A client that disconnects is not an error.
        tokio::spawn(async move { drop(connection.await) });
    }
}

impl ServerHandler for Interop {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tasks()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("interop", "1.0.0"))
            .with_instructions("Try every tool once.")
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = tools::list(self.state.has_extra.load(Ordering::Relaxed));
        let cursor = request.and_then(|request| request.cursor);
        let start = cursor.map_or(Ok(0), |cursor| cursor.parse::<usize>());
        let start = start.map_err(|_| ErrorData::invalid_params("no such cursor", None))?;
        let end = tools.len().min(start + PAGE);
        let mut page = ListToolsResult::with_all_items(tools[start.min(end)..end].to_vec());
        page.next_cursor = (end < tools.len()).then(|| end.to_string());
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.state.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.state.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.state.tasks.cancel_task(&request.task_id)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources =
            vec![Resource::new("test://static", "static"), Resource::new(COUNTER, "counter")];
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let users = ResourceTemplate::new("test://users/{name}", "users");
        Ok(ListResourceTemplatesResult::with_all_items(vec![users]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let text = match uri.as_str() {
            "test://static" => "always the same".to_owned(),
            COUNTER => self.state.touched.load(Ordering::Relaxed).to_string(),
            _ => match uri.strip_prefix("test://users/") {
                Some(name) => format!("user {name}"),
                None => return Err(ErrorData::resource_not_found("no such resource", None)),
            },
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = PromptArgument::new("name").with_required(true);
        let greet = Prompt::new("greet", None::<String>, Some(vec![name]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.arguments.as_ref().and_then(|it| it.get("name")?.as_str());
        let (true, Some(name)) = (request.name == "greet", name) else {
            return Err(ErrorData::invalid_params("there is only greet, with a name", None));
        };
        let message = PromptMessage::new_text(Role::User, format!("Greet {name}."));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let fits = |name: &&str| name.starts_with(&request.argument.value);
        let values = USERS.into_iter().filter(fits).map(str::to_owned).collect();
        let completion = CompletionInfo::new(values)
            .map_err(|problem| ErrorData::internal_error(problem, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.set_log_level(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.want(request.uri, true);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.want(request.uri, false);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.state.begin_listening();
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.state.listen();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            // Topics that were not requested are not accepted, and need not be.
            let _ = match change {
                Ok(Change::Counter) => context.sink().notify_resource_updated(COUNTER).await,
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }
}
