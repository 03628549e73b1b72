//! Issuers: keys to sign with, and a place to publish them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use bowline_auth::jws::{Jwk, JwkSet};
use bowline_auth::verify::{Denial, Guard, Identity, JwtVerifier};
use bowline_proto::base64::{STANDARD, URL};
use bowline_web::{Proxy, Web};
use http::request::Parts;
use http::{HeaderValue, Request};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
pub(crate) const ISSUER: &str = "https://login.example.com";

#[expect(clippy::disallowed_methods, reason = "tokens are about now")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A private key.
pub(crate) struct Signer {
    pub(crate) kid: &'static str,
    pub(crate) algorithm: &'static str,
    key: Key,
}

enum Key {
    Ec(EcdsaKeyPair, &'static str),
    Ed(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    pub(crate) fn new(kid: &'static str, algorithm: &'static str) -> Self {
        let random = SystemRandom::new();
        let ec = |algorithm, curve| {
            let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Key::Ec(EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap(), curve)
        };
        let key = match algorithm {
            "ES256" => ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"),
            "ES384" => ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"),
            "EdDSA" => {
                let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Key::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
            }
            _ => {
                let text: String = include_str!("../../testdata/rsa.txt").split('\n').collect();
                Key::Rsa(RsaKeyPair::from_pkcs8(&STANDARD.decode(&text).unwrap()).unwrap())
            }
        };
        Self { kid, algorithm, key }
    }

    /// The public half.
    pub(crate) fn jwk(&self) -> Value {
        match &self.key {
            Key::Ec(pair, curve) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let (x, y) = (URL.encode(x), URL.encode(y));
                json!({"kty": "EC", "crv": curve, "x": x, "y": y, "kid": self.kid})
            }
            Key::Ed(pair) => {
                let x = URL.encode(pair.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.kid})
            }
            Key::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (URL.encode(&public.n), URL.encode(&public.e));
                json!({"kty": "RSA", "n": n, "e": e, "kid": self.kid})
            }
        }
    }

    pub(crate) fn thumbprint(&self) -> String {
        Jwk::parse(self.jwk().to_string().as_bytes()).unwrap().thumbprint()
    }

    pub(crate) fn sign_bytes(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Ec(pair, _) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Key::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Key::Rsa(pair) => {
                let encoding: &dyn signature::RsaEncoding = match self.algorithm {
                    "RS256" => &signature::RSA_PKCS1_SHA256,
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    _ => &signature::RSA_PSS_SHA512,
                };
                let mut signed = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &random, message, &mut signed).unwrap();
                signed
            }
        }
    }

    /// A token with this header and these claims, as they are.
    pub(crate) fn sign_raw(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", URL.encode(header.as_bytes()), URL.encode(claims.as_bytes()));
        format!("{signed}.{}", URL.encode(&self.sign_bytes(signed.as_bytes())))
    }

    /// A token with the usual header.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm, "typ": "at+jwt", "kid": self.kid});
        self.sign_raw(&header.to_string(), &claims.to_string())
    }
}

pub(crate) fn key_set(signers: &[&Signer]) -> String {
    let keys: Vec<_> = signers.iter().map(|signer| signer.jwk()).collect();
    json!({ "keys": keys }).to_string()
}

/// Claims that are good.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "alice", "aud": RESOURCE, "client_id": "editor", "scope": "mcp read",
        "iat": now(), "exp": now() + 300, "jti": "1"
    })
}

/// The same with some of them changed; `null` takes one away.
pub(crate) fn with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            _ => claims[name] = value.clone(),
        }
    }
    claims
}

pub(crate) fn verifier(signers: &[&Signer]) -> JwtVerifier {
    let keys = JwkSet::parse(key_set(signers).as_bytes()).unwrap();
    JwtVerifier::new(ISSUER).unwrap().keys(keys)
}

/// The head of a request to the resource.
pub(crate) fn request(authorization: &[&str]) -> Parts {
    let mut request = Request::post("/mcp");
    for value in authorization {
        request = request.header("authorization", HeaderValue::from_str(value).unwrap());
    }
    request.body(()).unwrap().into_parts().0
}

pub(crate) async fn present(guard: &Guard, token: &str) -> Result<Identity, Denial> {
    guard.check(&request(&[&format!("Bearer {token}")])).await
}

/// The challenges of a denial.
pub(crate) fn challenges(denial: &Denial) -> Vec<&str> {
    let values = denial.headers.get_all("www-authenticate").iter();
    values.map(|value| value.to_str().unwrap()).collect()
}

/// A client for issuers on this machine.
pub(crate) fn web() -> Web {
    Web::builder().only_given_roots().proxy(Proxy::None).build().unwrap()
}

/// A server that answers by path, as it is told to.
pub(crate) struct Site {
    pub(crate) url: String,
    pages: Arc<Mutex<HashMap<String, (u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Site {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let pages: Arc<Mutex<HashMap<String, (u16, String)>>> = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut tasks = JoinSet::new();
        let (shown, seen) = (Arc::clone(&pages), Arc::clone(&asked));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(answer(stream, Arc::clone(&shown), Arc::clone(&seen)));
            }
        });
        Self { url, pages, asked, _tasks: tasks }
    }

    pub(crate) fn show(&self, path: &str, status: u16, body: impl ToString) {
        self.pages.lock().unwrap().insert(path.to_owned(), (status, body.to_string()));
    }

    /// The requests so far: head and body.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    pages: Arc<Mutex<HashMap<String, (u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let mut text = Vec::new();
    loop {
        let read = String::from_utf8_lossy(&text).to_ascii_lowercase();
        if let Some((head, body)) = read.split_once("\r\n\r\n") {
            let length = head
                .split_once("content-length: ")
                .map_or("0", |(_, rest)| rest.split("\r\n").next().unwrap_or("0"));
            if body.len() >= length.parse::<usize>().unwrap() {
                break;
            }
        }
        match stream.read_u8().await {
            Ok(byte) => text.push(byte),
            Err(_) => return,
        }
    }
    let text = String::from_utf8(text).unwrap();
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(text);
    let (status, body) = pages.lock().unwrap().get(&path).cloned().unwrap_or((404, String::new()));
    let answer = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
