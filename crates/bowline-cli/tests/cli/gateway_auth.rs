//! Tokens on both sides of the gateway: those of callers, and its own.

use std::io::BufReader;
use std::process::{Child, Stdio};

use bowline::base64;
use bowline_serve::testing::{HttpReply, Service};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

use crate::authority::{TOKEN, parameter, protected};
use crate::fixture::{Folder, program, said, until, wait_for};

/// An authorization server that signs tokens, and gives our client [`TOKEN`] for its secret.
struct Issuer {
    service: Service,
    key: EcdsaKeyPair,
}

const RESOURCE: &str = "https://gateway.example/mcp";

impl Issuer {
    fn start() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let (x, y) = key.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|it| base64::URL.encode(it));
        let service = Service::start(move |asked| {
            let issuer = asked.base();
            match asked.path() {
                "/.well-known/oauth-authorization-server" => HttpReply::json(&json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "jwks_uri": format!("{issuer}/keys"),
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["client_credentials"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["client_secret_post"],
                })),
                "/keys" => HttpReply::json(&json!({ "keys": [{
                    "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k",
                    "x": x, "y": y,
                }]})),
                "/token" => {
                    let is =
                        |name, value: &str| parameter(&asked.body, name).as_deref() == Some(value);
                    match is("grant_type", "client_credentials")
                        && is("client_id", "gateway")
                        && is("client_secret", "gateways-own-secret")
                    {
                        true => HttpReply::json(&json!({
                            "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600,
                        })),
                        false => HttpReply::error(400, "invalid_client"),
                    }
                }
                _ => HttpReply::error(404, "nothing here"),
            }
        });
        Self { service, key }
    }

    fn sign(&self, subject: &str, client: &str, resource: &str) -> String {
        let now = jiff::Timestamp::now().as_second();
        let head = json!({ "alg": "ES256", "typ": "at+jwt", "kid": "k" });
        let claims = json!({
            "iss": self.service.url(), "aud": resource, "sub": subject, "client_id": client,
            "iat": now, "exp": now + 600, "jti": format!("{subject}-{client}"),
        });
        let part = |value: &Value| base64::URL.encode(value.to_string().as_bytes());
        let text = format!("{}.{}", part(&head), part(&claims));
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", base64::URL.encode(signature.as_ref()))
    }
}

struct Gateway {
    home: Folder,
    url: String,
    child: Child,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(issuer: &Issuer) -> Gateway {
    let home = Folder::new();
    home.write("secret", "gateways-own-secret\n");
    let own = format!(
        "
[gateway]
listen = \"127.0.0.1:0\"
auth = {{ issuer = {:?}, resource = {RESOURCE:?} }}
[servers.notes]
url = {:?}
auth = {{ client_id = \"gateway\", client_secret = \"${{SECRET}}\" }}
[secrets]
SECRET = {{ file = \"secret\" }}
[[access]]
name = \"ann\"
who = {{ subject = \"ann\" }}
allow = [\"notes/*\"]
[[access]]
name = \"robot\"
who = {{ client = \"robot\" }}
allow = [\"notes/hello\"]
[telemetry]
audit = \"audit\"
",
        issuer.service.url(),
        protected(&issuer.service.url()),
    );
    let file = home.write("gateway.toml", &own);
    let mut child = program(&home)
        .arg("gateway")
        .arg(file)
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let line = wait_for(&mut told, "the gateway is at");
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let url = line.trim().rsplit(' ').next().unwrap().to_owned();
    Gateway { home, url, child }
}

#[test]
fn f_tokens_of_callers_are_for_the_gateway_and_its_own_are_for_its_servers() {
    let issuer = Issuer::start();
    let gateway = start(&issuer);
    let call = |token: Option<&str>| {
        let mut command = program(&gateway.home);
        command.args(["call", &gateway.url, "notes__hello"]);
        if let Some(token) = token {
            command.env("CALLER", token).args(["--token-env", "CALLER"]);
        }
        said(&mut command)
    };
    // The gateway serves before slow servers have answered.
    until(|| call(Some(&issuer.sign("ann", "laptop", RESOURCE))).code == Some(0));
    // The server accepts one token only, and that is not the caller's.
    for (subject, client) in [("ann", "laptop"), ("somebody", "robot")] {
        let told = call(Some(&issuer.sign(subject, client, RESOURCE)));
        assert_eq!(told.out, "let in\n", "{subject} {client}: {}", told.err);
    }
    let told = call(Some(&issuer.sign("bob", "laptop", RESOURCE)));
    assert!(told.err.contains("there is no tool"), "{} {}", told.out, told.err);
    for token in [
        None,
        Some(TOKEN.to_owned()),
        Some(issuer.sign("ann", "laptop", "https://other.example/mcp")),
        Some(issuer.sign("ann", "laptop", RESOURCE) + "x"),
    ] {
        let told = call(token.as_deref());
        assert_eq!(told.code, Some(3), "{token:?}: {} {}", told.out, told.err);
    }
    let audit = std::fs::read_to_string(gateway.home.path().join("audit")).unwrap();
    for part in ["\"subject\":\"ann\"", "\"rule\":\"robot\""] {
        assert!(audit.contains(part), "{part}: {audit}");
    }
    assert!(!audit.contains(TOKEN) && !audit.contains("gateways-own-secret"));
}
