//! A client that vanishes: its host is unreachable, and no packet says so.
//!
//! Needs `ip` and permission to create a network namespace; otherwise it passes with a note.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::http::HttpLimits;
use bowline::{Server, Tool};
use tokio::net::TcpListener;

use super::client::{call, soon};
use super::socket::wire;

/// A second host on a virtual link that can be cut. What was made of it is removed when it is
/// dropped.
struct Host {
    namespace: Option<String>,
    cable: Option<String>,
    /// The address of this side.
    address: Ipv4Addr,
    client: Option<Child>,
}

impl Host {
    /// `None` if this machine does not let us.
    fn new() -> Option<Self> {
        let number = std::process::id();
        // Four addresses of those for experiments; other runs have other ones.
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + number % (1 << 15) * 4;
        let [address, theirs] = [first + 1, first + 2].map(Ipv4Addr::from);
        let (namespace, cable) = (format!("bowline-{number}"), format!("bow{number}"));
        let mut host = Self { namespace: None, cable: None, address, client: None };
        ip(&format!("netns add {namespace}")).then_some(())?;
        host.namespace = Some(namespace.clone());
        ip(&format!("link add {cable} type veth peer name far netns {namespace}")).then_some(())?;
        host.cable = Some(cable.clone());
        let is_up = ip(&format!("addr add {address}/30 dev {cable}"))
            && ip(&format!("link set {cable} up"))
            && ip(&format!("-n {namespace} addr add {theirs}/30 dev far"))
            && ip(&format!("-n {namespace} link set far up"));
        is_up.then_some(host)
    }

    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap()
    }

    /// Sends a request from there and keeps the connection.
    fn send(&mut self, port: u16, request: &str) {
        let to = format!("{}/{port}", self.address);
        // Exactly the request: a connection with unread bytes is not watched for its end.
        let script = format!("exec 3<>/dev/tcp/{to} && printf %s \"$REQUEST\" >&3; exec sleep 600");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespace(), "bash", "-c", &script]);
        command.env("REQUEST", request);
        self.client = Some(command.stdout(Stdio::null()).spawn().unwrap());
    }

    /// Cuts the link: packets to the host are sent, and nothing comes back. A link that is down on
    /// this side would not do, since the kernel ignores its own failures to send.
    fn cut(&self) {
        assert!(ip(&format!("-n {} addr flush dev far", self.namespace())));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(client) = &mut self.client {
            let _ = client.kill();
            let _ = client.wait();
        }
        if let Some(cable) = &self.cable {
            ip(&format!("link delete {cable}"));
        }
        if let Some(namespace) = &self.namespace {
            ip(&format!("netns delete {namespace}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split(' ')).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Counts the handlers that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_peer_that_vanishes_frees_its_place_and_its_handler() {
    let Some(mut host) = Host::new() else {
        println!("skipped: this needs `ip` and the right to make a network namespace");
        return;
    };
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    // It sends nothing at all, so only the kernel can find out that it is gone.
    let wait = Tool::new("work", move || {
        let alive = Alive::new(&counted);
        async move {
            let _alive = alive;
            std::future::pending::<String>().await
        }
    });
    let limits = HttpLimits { unread: Duration::from_secs(3), ..HttpLimits::default() };
    let listener = TcpListener::bind((host.address, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let http = Server::new("waits", "1.0.0").with(wait).http().limits(limits);
    let http = http.allow_host(&host.address.to_string()).unwrap();
    let serving = tokio::spawn(http.serve_until(listener, std::future::pending()));

    let request =
        wire(&call(1, "work")).replace("host: localhost", &format!("host: {}", host.address));
    host.send(port, &request);
    soon("the handler to start", until(&alive, 1)).await;
    host.cut();
    soon("the handler to be dropped", until(&alive, 0)).await;
    serving.abort();
}

async fn until(alive: &AtomicUsize, wanted: usize) {
    while alive.load(Ordering::SeqCst) != wanted {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
