//! Addresses that a server of the internet names, and that its clients must not go to.

use bowline_auth::client::{OAuth, Reason};
use serde_json::json;

use crate::browse::{person, refuse, web};
use crate::site::{Reply, Site};

const HOME: &str = "https://mcp.example.com/mcp";

/// Ways to say this machine, its neighbours, and the clouds' insides.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "127.0.0.2",
    "127.255.255.254",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[100::1]",
    "[2001:db8::1]",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "100.64.0.1",
    "100.127.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::ffff:169.254.169.254]",
    "[::ffff:10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
    "metadata.google.internal",
    "printer.local",
];

fn urls(canary: &Site) -> Vec<String> {
    let port = canary.url.rsplit(':').next().unwrap();
    let of = |scheme: &str| -> Vec<_> {
        HOSTS.iter().map(|host| format!("{scheme}://{host}:{port}/x")).collect()
    };
    let mut urls = [of("https"), of("http")].concat();
    let port_free = ["https://169.254.169.254/latest/meta-data/", "https://localhost/"];
    urls.extend(port_free.map(str::to_owned));
    let odd = [
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "ftp://127.0.0.1/",
        "data:,x",
        "javascript:x",
        "//127.0.0.1/",
        "/x",
        "https://user@127.0.0.1/",
        "https://127.0.0.1#@example.com/",
        "https://example.com\\@127.0.0.1/",
        "http://example.com/",
    ];
    urls.extend(odd.map(str::to_owned));
    urls
}

#[tokio::test]
async fn metadata_of_the_resource() {
    let canary = Site::canary().await;
    for url in urls(&canary) {
        let auth = OAuth::login(HOME, person()).web(web()).build().unwrap();
        let challenge = format!(r#"Bearer resource_metadata="{}""#, url.replace('\\', "\\\\"));
        let error = refuse(&auth, HOME, &challenge).await.unwrap_err();
        assert_eq!(error.reason(), Reason::Unsafe, "{url}: {error}");
    }
    assert_eq!(canary.connections(), 0);
}

/// A place that is trusted, and what it says.
struct Trusted {
    site: Site,
    auth: OAuth,
}

impl Trusted {
    async fn new(issuer: Option<String>, endpoint: Option<String>) -> Self {
        let (listener, base) = Site::bind().await;
        let own = base.clone();
        let site = Site::serve((listener, base.clone()), move |asked| match asked.path.as_str() {
            "/prm" => {
                let issuer = issuer.clone().unwrap_or_else(|| own.clone());
                Reply::json(&json!({"resource": HOME, "authorization_servers": [issuer]}))
            }
            "/.well-known/oauth-authorization-server" => {
                let endpoint = endpoint.clone().unwrap_or_default();
                Reply::json(&json!({
                    "issuer": own, "authorization_endpoint": format!("{own}/authorize"),
                    "token_endpoint": format!("{own}/token"), "registration_endpoint": endpoint,
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                }))
            }
            "/elsewhere" => Reply::redirect(302, &endpoint.clone().unwrap_or_default()),
            _ => Reply::status(404),
        });
        let host = base.strip_prefix("http://").unwrap();
        let auth = OAuth::login(HOME, person()).web(web()).trust(host).build().unwrap();
        Self { site, auth }
    }

    async fn check(&self, path: &str, what: &str) {
        let challenge = format!(r#"Bearer resource_metadata="{}{path}""#, self.site.url);
        let error = refuse(&self.auth, HOME, &challenge).await.unwrap_err();
        assert_eq!(error.reason(), Reason::Unsafe, "{what}: {error}");
    }
}

#[tokio::test]
async fn issuers() {
    let canary = Site::canary().await;
    for url in urls(&canary) {
        Trusted::new(Some(url.clone()), None).await.check("/prm", &url).await;
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn endpoints() {
    let canary = Site::canary().await;
    for url in urls(&canary) {
        Trusted::new(None, Some(url.clone())).await.check("/prm", &url).await;
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn redirects() {
    let canary = Site::canary().await;
    for url in urls(&canary).into_iter().filter(|url| url.contains("://") && !url.contains('\\')) {
        Trusted::new(None, Some(url.clone())).await.check("/elsewhere", &url).await;
    }
    assert_eq!(canary.connections(), 0);
}

/// A server on this machine may have its guards here; one of the internet may not.
#[tokio::test]
async fn private_only_for_the_private() {
    let canary = Site::canary().await;
    let challenge = format!(r#"Bearer resource_metadata="{}/prm""#, canary.url);
    let auth = OAuth::login("http://localhost:1/mcp", person()).web(web()).build().unwrap();
    assert!(refuse(&auth, "http://localhost:1/mcp", &challenge).await.is_err());
    assert_eq!(canary.asked("/prm").len(), 1);
}
