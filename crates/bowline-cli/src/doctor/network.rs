//! From a host name to a connection: DNS, then TCP.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use bowline_web::{Host, Url};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::report::{Diagnosis, Step, unreachable};
use super::seen::seconds;

/// Ports that development servers commonly use.
const USUAL_PORTS: [u16; 12] =
    [3000, 3001, 3333, 4000, 5000, 5173, 6277, 8000, 8080, 8081, 8787, 9000];

/// Resolves the host.
pub(crate) async fn resolve(
    url: &Url,
    patience: Duration,
) -> Result<(Step, Vec<SocketAddr>), Step> {
    let began = Instant::now();
    let name = match url.host() {
        Host::Name(name) => name.as_str(),
        Host::Address(address) => {
            let step = Step::skipped("dns", "the host is an IP address");
            return Ok((step, vec![SocketAddr::new(*address, url.port())]));
        }
    };
    let found = timeout(patience, lookup_host((name, url.port()))).await;
    let (seen, diagnosis) = match found.map(|found| found.map(Vec::from_iter)) {
        Ok(Ok(found)) if !found.is_empty() => {
            let ips: Vec<String> = found.iter().map(|it| it.ip().to_string()).collect();
            return Ok((Step::ok("dns", ips.join(", "), began), found));
        }
        Ok(Ok(_)) => (
            "no address".to_owned(),
            unreachable(format!("the host {name} has no address")).fix("Check its spelling."),
        ),
        Ok(Err(error)) => (
            error.to_string(),
            unreachable(format!("the host {name} cannot be resolved"))
                .fix("Check its spelling; a name in a private network needs its VPN or resolver."),
        ),
        Err(_) => (
            format!("no response in {}", seconds(patience)),
            unreachable(format!("the lookup of {name} timed out"))
                .fix("Check the network and this machine's resolver."),
        ),
    };
    Err(Step::ok("dns", seen, began).fail(diagnosis))
}

/// Connects to the first address that accepts.
pub(crate) async fn connect(
    url: &Url,
    found: &[SocketAddr],
    patience: Duration,
) -> Result<(Step, SocketAddr), Step> {
    let began = Instant::now();
    let deadline = began + patience;
    let mut tried = Vec::new();
    for at in found.iter().take(8) {
        let dialled = dial(*at, deadline.saturating_duration_since(Instant::now())).await;
        let is_open = dialled.is_ok();
        tried.push((*at, dialled));
        if is_open {
            let warning = (tried.len() > 1).then(|| {
                unreachable(format!("the first address of {} does not respond", url.host())).fix(
                    format!(
                        "Clients that try only that one fail: use {at} in the URL, or make the \
                         server listen on all of them."
                    ),
                )
            });
            return Ok((Step::ok("tcp", describe(&tried), began).warn(warning), *at));
        }
    }
    let step = Step::ok("tcp", describe(&tried), began);
    let others = if url.is_loopback() { open_ports(url.port()).await } else { Vec::new() };
    Err(step.fail(closed(url, &tried, &others)))
}

/// An address, and whether it accepted a connection.
type Dialled = (SocketAddr, io::Result<()>);

async fn dial(at: SocketAddr, patience: Duration) -> io::Result<()> {
    timeout(patience, TcpStream::connect(at)).await?.map(drop)
}

fn describe(tried: &[Dialled]) -> String {
    let one = |(at, dialled): &Dialled| match dialled {
        Ok(()) => format!("{at} connected"),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => format!("{at} refused"),
        Err(error) if error.kind() == ErrorKind::TimedOut => format!("{at} did not respond"),
        Err(error) => format!("{at}: {error}"),
    };
    tried.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Why no address accepts a connection.
fn closed(url: &Url, tried: &[Dialled], others: &[u16]) -> Diagnosis {
    let (host, port) = (url.host(), url.port());
    let any =
        |kind| tried.iter().any(|(_, dialled)| dialled.as_ref().is_err_and(|it| it.kind() == kind));
    if any(ErrorKind::ConnectionRefused) {
        let ports: Vec<String> = others.iter().map(u16::to_string).collect();
        let hint = if !ports.is_empty() {
            format!("On this machine, something listens on {}.", ports.join(", "))
        } else if url.is_loopback() {
            "In a container, localhost is the container itself.".to_owned()
        } else {
            "A server that listens on 127.0.0.1 accepts no connections from outside.".to_owned()
        };
        return unreachable(format!("nothing listens on port {port} of {host}"))
            .fix(format!("Start the server, or correct the port. {hint}"));
    }
    if any(ErrorKind::TimedOut) {
        return unreachable(format!(
            "{host} does not respond on port {port}: packets are lost or dropped"
        ))
        .fix("Check firewalls, VPN and the port; a proxy may be needed (HTTPS_PROXY).");
    }
    unreachable(format!("{host} cannot be reached: {}", describe(tried)))
        .fix("Check this machine's network.")
}

/// Other usual ports of this machine that something listens on.
async fn open_ports(port: u16) -> Vec<u16> {
    let mut open = Vec::new();
    for other in USUAL_PORTS.into_iter().filter(|other| *other != port) {
        let at = SocketAddr::from(([127, 0, 0, 1], other));
        if dial(at, Duration::from_millis(200)).await.is_ok() {
            open.push(other);
        }
    }
    open
}

/// What a port responds to plain HTTP.
pub(crate) async fn say_plainly(at: SocketAddr, host: &Host, patience: Duration) -> Vec<u8> {
    let mut said = Vec::new();
    let exchange = async {
        let mut stream = TcpStream::connect(at).await?;
        let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.take(512).read_to_end(&mut said).await
    };
    // Whatever arrived by then counts.
    let _ = timeout(patience, exchange).await;
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_ports_have_causes() {
        let at: SocketAddr = "127.0.0.1:3000".parse().unwrap();
        let (here, there) = ("http://localhost:3000/", "https://a.example/");
        let refused = ErrorKind::ConnectionRefused;
        for (url, kind, others, cause, fix) in [
            (here, refused, &[][..], "nothing listens on port 3000", "container"),
            (here, refused, &[8000], "nothing listens", "listens on 8000"),
            (there, refused, &[], "port 443 of a.example", "127.0.0.1"),
            (there, ErrorKind::TimedOut, &[], "does not respond", "firewalls"),
            (there, ErrorKind::NetworkUnreachable, &[], "network unreachable", "network"),
        ] {
            let found = closed(&Url::parse(url).unwrap(), &[(at, Err(kind.into()))], others);
            assert!(found.cause.contains(cause) && found.fix.contains(fix), "{url}: {found:?}");
        }
    }
}
