//! Servers in memory behind a gateway, and its clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bowline::client::{Client, Preference, Target};
use bowline::{Principal, Server, Tool};
use bowline_gateway::bridge::ToolRules;
use bowline_gateway::gateway::{Gateway, Plan, Policy, Rule, ServerPlan};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// A guard against hanging; nothing else depends on time.
pub(crate) async fn soon<T>(what: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what.into_future())
        .await
        .expect("it never happens")
}

/// Waits until something is the case.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    soon(async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A server behind the gateway that `make` starts anew for each connection.
pub(crate) fn server(
    key: &str,
    make: impl Fn() -> Result<Server, String> + Send + Sync + 'static,
) -> ServerPlan {
    ServerPlan {
        key: key.to_owned(),
        alias: None,
        fingerprint: "1".to_owned(),
        target: Arc::new(move || make().map(Target::from)),
        client: Arc::new(|| Client::builder("gateway", "1").without_cache()),
        preference: Preference::Auto,
        tools: ToolRules::default(),
        rate: None,
        running: None,
        timeout: None,
    }
}

/// A server with tools that return their server and name.
pub(crate) fn simple(key: &'static str, tools: &'static [&'static str]) -> ServerPlan {
    server(key, move || {
        let tool =
            |name: &'static str| Tool::new(name, move || async move { format!("{key} {name}") });
        Ok(tools.iter().fold(Server::new(key, "1"), |server, name| server.with(tool(name))))
    })
}

/// A server that does not start.
pub(crate) fn dead(key: &str) -> ServerPlan {
    server(key, || Err("it is broken".to_owned()))
}

pub(crate) fn plan(servers: Vec<ServerPlan>) -> Plan {
    Plan {
        name: "gateway".to_owned(),
        has_prefixes: true,
        servers,
        commands: Vec::new(),
        policy: Policy { is_open: true, ..Policy::default() },
        audit: None,
        telemetry: None,
        grace: Duration::from_secs(600),
        start: Duration::from_secs(20),
        report: Arc::new(|_| {}),
        redactor: Arc::default(),
        has_one_caller: false,
    }
}

pub(crate) fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

pub(crate) fn rule(name: &str, groups: &[&str], allow: &[&str], deny: &[&str]) -> Rule {
    let [groups, allow, deny] = [groups, allow, deny].map(texts);
    Rule { name: name.to_owned(), groups, allow, deny, ..Rule::default() }
}

pub(crate) async fn start(plan: Plan) -> (Gateway, Server) {
    let started = Gateway::start(plan, Box::new(|server, _| server.http().into_service()));
    soon(started).await.unwrap()
}

/// A gateway, and a client of it.
pub(crate) async fn connect(plan: Plan) -> (Gateway, Client) {
    let (gateway, server) = start(plan).await;
    (gateway, Client::connect(server).await.unwrap())
}

pub(crate) async fn names(client: &Client) -> Vec<String> {
    let tools = soon(client.list_tools().without_cache()).await.unwrap();
    tools.into_iter().map(|it| it.name).collect()
}

pub(crate) async fn call(client: &Client, tool: &str) -> Result<String, String> {
    soon(client.call_tool(tool, json!({})).text()).await.map_err(|error| error.to_string())
}

/// A client of a gateway over HTTP that is known by name, in a group.
pub(crate) async fn known(server: Server, name: &str, group: &str) -> Client {
    let claims = Map::from_iter([("groups".to_owned(), json!([group]))]);
    let principal = Principal::new(name).with_claims(claims);
    let http = server.http().identify(move |_| Some(principal.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(http.serve_on(listener));
    Client::connect(url).await.unwrap()
}

/// The path of a file that does not exist yet.
pub(crate) fn log(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("bowline-gateway-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// What an audit log says.
pub(crate) fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asks a server over HTTP for a path, with further headers. Returns what it says.
pub(crate) async fn get(url: &str, path: &str, headers: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    soon(stream.read_to_string(&mut text)).await.unwrap();
    text
}

/// Serves a gateway over HTTP, with the endpoints of its servers. Returns its URL.
pub(crate) async fn serve(gateway: &Gateway, server: Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let gateway = gateway.clone();
    let http = server.http().mount(move |path| gateway.mounted(path));
    tokio::spawn(http.serve_on(listener));
    url
}
