//! From a host name to a connection: DNS, then TCP.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::address::Address;
use super::report::{Diagnosis, Report, Step};
use super::seen::seconds;

/// Ports that development servers commonly use.
const USUAL_PORTS: [u16; 12] =
    [3000, 3001, 3333, 4000, 5000, 5173, 6277, 8000, 8080, 8081, 8787, 9000];

/// The addresses of the host; none if it cannot be resolved.
pub(crate) async fn resolve(
    report: &mut Report,
    address: &Address,
    patience: Duration,
) -> Vec<SocketAddr> {
    let began = Instant::now();
    let host = address.host.as_str();
    if let Ok(known) = host.parse::<IpAddr>() {
        report.push(Step::skipped("dns", "the host is an IP address"));
        return vec![SocketAddr::new(known, address.port)];
    }
    let found = timeout(patience, lookup_host((host, address.port))).await;
    let (seen, cause, fix) = match found.map(|found| found.map(Vec::from_iter)) {
        Ok(Ok(found)) if !found.is_empty() => {
            let ips: Vec<String> = found.iter().map(|it| it.ip().to_string()).collect();
            report.push(Step::ok("dns", ips.join(", "), began));
            return found;
        }
        Ok(Ok(_)) => (
            "no address".to_owned(),
            format!("the host {host} has no address"),
            "Check the spelling of the host.",
        ),
        Ok(Err(error)) => (
            error.to_string(),
            format!("the host {host} cannot be resolved"),
            "Check its spelling; a name in a private network needs its VPN or resolver.",
        ),
        Err(_) => (
            format!("no response in {}", seconds(patience)),
            format!("the lookup of {host} timed out"),
            "Check the network and this machine's resolver.",
        ),
    };
    report.push(Step::ok("dns", seen, began).fail(Diagnosis::unreachable(cause, fix)));
    Vec::new()
}

/// The result of connecting to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Dialled {
    Open,
    Refused,
    Silent,
    Other(String),
}

/// The first address that accepts a connection.
pub(crate) async fn connect(
    report: &mut Report,
    address: &Address,
    found: &[SocketAddr],
    patience: Duration,
) -> Option<SocketAddr> {
    let began = Instant::now();
    let deadline = began + patience;
    let mut tried = Vec::new();
    let mut open = None;
    for at in found.iter().take(8) {
        let dialled = dial(*at, deadline.saturating_duration_since(Instant::now())).await;
        open = (dialled == Dialled::Open).then_some(*at);
        tried.push((*at, dialled));
        if open.is_some() {
            break;
        }
    }
    let step = Step::ok("tcp", describe(&tried), began);
    let Some(open) = open else {
        let others = if address.is_loopback() { open_ports(address).await } else { Vec::new() };
        report.push(step.fail(closed(address, &tried, &others)));
        return None;
    };
    let warning = (tried.len() > 1).then(|| {
        Diagnosis::unreachable(
            format!("{} has several addresses, and the first does not respond", address.host),
            format!(
                "Clients that try only the first one fail: use {open} in the URL, or make the \
                 server listen on all of them."
            ),
        )
    });
    report.push(step.warn(warning));
    Some(open)
}

async fn dial(at: SocketAddr, patience: Duration) -> Dialled {
    match timeout(patience, TcpStream::connect(at)).await {
        Ok(Ok(_)) => Dialled::Open,
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Dialled::Refused,
        Ok(Err(error)) if error.kind() != ErrorKind::TimedOut => Dialled::Other(error.to_string()),
        Ok(Err(_)) | Err(_) => Dialled::Silent,
    }
}

fn describe(tried: &[(SocketAddr, Dialled)]) -> String {
    let one = |(at, dialled): &(SocketAddr, Dialled)| match dialled {
        Dialled::Open => format!("{at} connected"),
        Dialled::Refused => format!("{at} refused"),
        Dialled::Silent => format!("{at} did not respond"),
        Dialled::Other(error) => format!("{at}: {error}"),
    };
    tried.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Why no address accepts a connection.
fn closed(address: &Address, tried: &[(SocketAddr, Dialled)], others: &[u16]) -> Diagnosis {
    let (host, port) = (&address.host, address.port);
    let any = |wanted: Dialled| tried.iter().any(|(_, dialled)| *dialled == wanted);
    if any(Dialled::Refused) {
        let ports: Vec<String> = others.iter().map(u16::to_string).collect();
        let hint = match (ports.is_empty(), address.is_loopback()) {
            (false, _) => format!("On this machine, something listens on {}.", ports.join(", ")),
            (true, true) => "In a container, localhost is the container itself.".to_owned(),
            (true, false) => {
                "A server that listens on 127.0.0.1 accepts no connections from outside.".to_owned()
            }
        };
        return Diagnosis::unreachable(
            format!("nothing listens on port {port} of {host}"),
            format!("Start the server, or correct the port. {hint}"),
        );
    }
    if any(Dialled::Silent) {
        return Diagnosis::unreachable(
            format!("{host} does not respond on port {port}: packets are lost or dropped"),
            "Check firewalls, VPN and the port; a proxy may be needed (HTTPS_PROXY).",
        );
    }
    Diagnosis::unreachable(
        format!("{host} cannot be reached: {}", describe(tried)),
        "Check this machine's network.",
    )
}

/// Usual ports of this machine that something listens on.
async fn open_ports(address: &Address) -> Vec<u16> {
    let mut open = Vec::new();
    for port in USUAL_PORTS {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        if port != address.port && dial(at, Duration::from_millis(200)).await == Dialled::Open {
            open.push(port);
        }
    }
    open
}

/// What a port responds to plain HTTP.
pub(crate) async fn say_plainly(at: SocketAddr, host: &str, patience: Duration) -> Vec<u8> {
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
        for (url, dialled, others, cause, fix) in [
            (
                "http://localhost:3000/",
                Dialled::Refused,
                &[][..],
                "nothing listens on port 3000",
                "container",
            ),
            (
                "http://localhost:3000/",
                Dialled::Refused,
                &[8000],
                "nothing listens",
                "listens on 8000",
            ),
            ("https://a.example/", Dialled::Refused, &[], "port 443 of a.example", "127.0.0.1"),
            ("https://a.example/", Dialled::Silent, &[], "does not respond", "firewalls"),
            (
                "https://a.example/",
                Dialled::Other("no route".to_owned()),
                &[],
                "no route",
                "network",
            ),
        ] {
            let found = closed(&Address::parse(url).unwrap(), &[(at, dialled)], others);
            assert!(found.cause.contains(cause) && found.fix.contains(fix), "{url}: {found:?}");
        }
    }
}
