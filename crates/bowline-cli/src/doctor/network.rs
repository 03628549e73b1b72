//! From a name to a connection: DNS and TCP, one at a time.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::address::Address;
use super::ending::seconds;
use super::report::{Diagnosis, Report, Step};

/// Ports that development servers like.
const USUAL_PORTS: [u16; 12] =
    [3000, 3001, 3333, 4000, 5000, 5173, 6277, 8000, 8080, 8081, 8787, 9000];

/// The addresses of the host; nothing when there is none, which has been told.
pub(crate) async fn resolve(
    report: &mut Report,
    address: &Address,
    patience: Duration,
) -> Vec<SocketAddr> {
    let began = Instant::now();
    if let Ok(known) = address.host.parse::<IpAddr>() {
        report.push(Step::skipped("dns", "the host is an address"));
        return vec![SocketAddr::new(known, address.port)];
    }
    let looked = timeout(patience, lookup_host((address.host.as_str(), address.port))).await;
    let host = &address.host;
    let (seen, cause, fix) = match looked {
        Ok(Ok(found)) => {
            let found: Vec<SocketAddr> = found.collect();
            if !found.is_empty() {
                let texts: Vec<String> = found.iter().map(|it| it.ip().to_string()).collect();
                report.push(Step::ok("dns", texts.join(", "), began));
                return found;
            }
            (
                "no address".to_owned(),
                format!("the name {host} has no address"),
                "Check the spelling of the host.",
            )
        }
        Ok(Err(error)) => (
            error.to_string(),
            format!("the name {host} cannot be resolved"),
            "Check its spelling; a name of a private network needs its VPN or resolver.",
        ),
        Err(_) => (
            format!("no answer in {}", seconds(patience)),
            format!("nobody answers the question for the name {host}"),
            "Check the network and the resolver of this machine.",
        ),
    };
    report.push(Step::ok("dns", seen, began).fail(Diagnosis::unreachable(cause, fix)));
    Vec::new()
}

/// What became of one address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Dialled {
    Open,
    Refused,
    Silent,
    Other(String),
}

/// The first address that takes a connection.
pub(crate) async fn connect(
    report: &mut Report,
    address: &Address,
    found: &[SocketAddr],
    patience: Duration,
) -> Option<SocketAddr> {
    let began = Instant::now();
    let deadline = began + patience;
    let mut tried = Vec::new();
    for at in found.iter().take(8) {
        let left = deadline.saturating_duration_since(Instant::now());
        let dialled = dial(*at, left).await;
        tried.push((*at, dialled.clone()));
        if dialled == Dialled::Open {
            break;
        }
    }
    let open = tried.iter().find(|(_, dialled)| *dialled == Dialled::Open).map(|(at, _)| *at);
    let step = Step::ok("tcp", tell(&tried), began);
    let Some(open) = open else {
        let others = match address.is_loopback() {
            true => open_ports(address).await,
            false => Vec::new(),
        };
        report.push(step.fail(closed(address, &tried, &others)));
        return None;
    };
    report.push(match tried.as_slice() {
        [_] => step,
        _ => step.warn(Diagnosis::unreachable(
            format!("{} stands for several addresses, and the first does not answer", address.host),
            format!("Clients that try only the first fail: use {open} in the URL, or let the server listen on all of them."),
        )),
    });
    Some(open)
}

async fn dial(at: SocketAddr, patience: Duration) -> Dialled {
    match timeout(patience, TcpStream::connect(at)).await {
        Ok(Ok(_)) => Dialled::Open,
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Dialled::Refused,
        Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => Dialled::Silent,
        Ok(Err(error)) => Dialled::Other(error.to_string()),
        Err(_) => Dialled::Silent,
    }
}

fn tell(tried: &[(SocketAddr, Dialled)]) -> String {
    let one = |(at, dialled): &(SocketAddr, Dialled)| match dialled {
        Dialled::Open => format!("{at} connected"),
        Dialled::Refused => format!("{at} refused"),
        Dialled::Silent => format!("{at} did not answer"),
        Dialled::Other(error) => format!("{at}: {error}"),
    };
    tried.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Why no address takes a connection.
fn closed(address: &Address, tried: &[(SocketAddr, Dialled)], others: &[u16]) -> Diagnosis {
    let (host, port) = (&address.host, address.port);
    let refused = tried.iter().any(|(_, dialled)| *dialled == Dialled::Refused);
    let silent = tried.iter().any(|(_, dialled)| *dialled == Dialled::Silent);
    if refused {
        let ports: Vec<String> = others.iter().map(u16::to_string).collect();
        let fix = match (ports.is_empty(), address.is_loopback()) {
            (false, _) => format!("Start the server, or correct the port: on this machine something listens on {}.", ports.join(", ")),
            (true, true) => "Start the server, or correct the port. In a container, localhost is the container itself.".to_owned(),
            (true, false) => "Start the server, or correct the port; a server that listens on 127.0.0.1 takes no connections from outside.".to_owned(),
        };
        return Diagnosis::unreachable(format!("nothing listens on port {port} of {host}"), fix);
    }
    if silent {
        return Diagnosis::unreachable(
            format!("{host} does not answer on port {port}: packets get lost or are dropped"),
            "Check firewalls, VPN and the port; a proxy may be needed (HTTPS_PROXY).",
        );
    }
    Diagnosis::unreachable(
        format!("there is no way to {host}: {}", tell(tried)),
        "Check the network of this machine.",
    )
}

/// Usual ports of this machine that something listens on.
async fn open_ports(address: &Address) -> Vec<u16> {
    let mut open = Vec::new();
    for port in USUAL_PORTS {
        let at = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port);
        if port != address.port && dial(at, Duration::from_millis(200)).await == Dialled::Open {
            open.push(port);
        }
    }
    open
}

/// What a port says to a request in the clear.
pub(crate) async fn say_plainly(at: SocketAddr, host: &str, patience: Duration) -> Vec<u8> {
    let mut said = Vec::new();
    let talk = async {
        let mut stream = TcpStream::connect(at).await?;
        let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.take(512).read_to_end(&mut said).await
    };
    // What came until then is what is looked at.
    let _ = timeout(patience, talk).await;
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_doors_have_reasons() {
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
            ("https://a.example/", Dialled::Silent, &[], "does not answer", "firewalls"),
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
