//! An MCP server with its guards. What they do differently is said in [`Rules`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bowline_auth::client::{AuthError, Login, OAuth, OAuthBuilder};
use bowline_proto::base64::URL;
use http::StatusCode;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::browse::{call_with, person, web};
use crate::site::{Asked, Reply, Site};

type Edit = Box<dyn Fn(&mut Value) + Send + Sync>;
type Answer = Box<dyn Fn(&Asked) -> Option<Reply> + Send + Sync>;

/// Where the server says what guards it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prm {
    /// At the address in the challenge.
    Named(&'static str),
    /// At the well-known address with this path, and the challenge does not say so.
    WellKnown(&'static str),
    Missing,
}

/// What `iss` a redirect carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Iss {
    Right,
    Missing,
    Other(&'static str),
    WithSlash,
}

/// What is different from a plain and honest world.
pub(crate) struct Rules {
    pub(crate) prm: Prm,
    pub(crate) edit_prm: Edit,
    /// The path of issuers, and where their metadata is.
    pub(crate) issuer_path: &'static str,
    pub(crate) metadata_at: Option<&'static str>,
    pub(crate) edit_metadata: Edit,
    pub(crate) edit_registration: Edit,
    pub(crate) edit_token: Edit,
    pub(crate) methods: &'static [&'static str],
    pub(crate) iss: Iss,
    /// Answers that go before everything else, of any site.
    pub(crate) first: Answer,
    /// Which guard the metadata names.
    pub(crate) guard: usize,
    /// The scope in the challenge of a 401.
    pub(crate) scope: Option<&'static str>,
    /// What an operation needs: `(operation, scope)`.
    pub(crate) needs: &'static [(&'static str, &'static str)],
    /// What a challenge of a 403 says instead of all that is needed.
    pub(crate) says: Option<&'static str>,
    /// Scopes that are never given.
    pub(crate) withheld: &'static str,
    pub(crate) expires_in: u64,
    /// Whether refresh tokens are given, each good once.
    pub(crate) refreshes: bool,
    /// The clients that are known from the beginning, as `id:secret`.
    pub(crate) known: &'static str,
    pub(crate) dpop: bool,
    /// Whether proofs need a nonce; a new one each time if it is `Some(true)`.
    pub(crate) nonce: Option<bool>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            prm: Prm::Named("/.well-known/oauth-protected-resource/mcp"),
            edit_prm: Box::new(|_| {}),
            issuer_path: "",
            metadata_at: Some("/.well-known/oauth-authorization-server"),
            edit_metadata: Box::new(|_| {}),
            edit_registration: Box::new(|_| {}),
            edit_token: Box::new(|_| {}),
            methods: &["none"],
            iss: Iss::Right,
            first: Box::new(|_| None),
            guard: 0,
            scope: None,
            needs: &[],
            says: None,
            withheld: "",
            expires_in: 3600,
            refreshes: true,
            known: "",
            dpop: false,
            nonce: None,
        }
    }
}

/// A token that was given out.
#[derive(Debug, Clone)]
struct Given {
    guard: usize,
    scope: String,
    resource: Option<String>,
    key: Option<String>,
}

#[derive(Default)]
struct Book {
    tokens: HashMap<String, Given>,
    /// Code to (challenge, client, redirect, what a token will be).
    codes: HashMap<String, (String, String, String, Given)>,
    refresh: HashMap<String, (String, Given)>,
    /// By guard: id to secret.
    clients: [HashMap<String, Option<String>>; 2],
    proofs: Vec<String>,
    nonces: u64,
    /// Complaints of the world itself: what a client must not do.
    wrongs: Vec<String>,
}

/// The world: one server, two guards, and a place where nothing should ever arrive.
pub(crate) struct World {
    pub(crate) server: Site,
    pub(crate) guards: [Site; 2],
    pub(crate) canary: Site,
    state: Arc<State>,
}

pub(crate) struct State {
    rules: Mutex<Rules>,
    book: Mutex<Book>,
    server: String,
    guards: [String; 2],
    count: AtomicU64,
}

impl World {
    pub(crate) async fn new(rules: Rules) -> Self {
        let server = Site::bind().await;
        let guards = [Site::bind().await, Site::bind().await];
        let mut book = Book::default();
        if let Some((id, secret)) = rules.known.split_once(':') {
            let secret = Some(secret.to_owned()).filter(|secret| !secret.is_empty());
            book.clients[0].insert(id.to_owned(), secret);
        }
        let state = Arc::new(State {
            rules: Mutex::new(rules),
            book: Mutex::new(book),
            server: server.1.clone(),
            guards: [guards[0].1.clone(), guards[1].1.clone()],
            count: AtomicU64::new(0),
        });
        let of = |state: &Arc<State>| Arc::clone(state);
        let (at_server, at_first, at_second) = (of(&state), of(&state), of(&state));
        let [first, second] = guards;
        let server = Site::serve(server, move |asked| at_server.serve_resource(asked));
        let first = Site::serve(first, move |asked| at_first.serve_guard(0, asked));
        let second = Site::serve(second, move |asked| at_second.serve_guard(1, asked));
        Self { server, guards: [first, second], canary: Site::canary().await, state }
    }

    pub(crate) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.state.rules.lock().unwrap()
    }

    pub(crate) fn mcp(&self) -> String {
        format!("{}/mcp", self.server.url)
    }

    pub(crate) fn login_with(&self, login: impl Login + 'static) -> OAuthBuilder {
        OAuth::login(self.mcp(), login).client_name("A test").web(web())
    }

    pub(crate) fn login(&self) -> OAuth {
        self.login_with(person()).build().unwrap()
    }

    pub(crate) async fn call(
        &self,
        auth: &OAuth,
        operation: &str,
    ) -> Result<StatusCode, AuthError> {
        call_with(auth, &self.mcp(), operation).await
    }

    /// How many people were asked.
    pub(crate) fn logins(&self) -> usize {
        self.guards.iter().map(|guard| guard.below("/authorize").len()).sum()
    }

    pub(crate) fn token_requests(&self) -> Vec<Asked> {
        self.guards.iter().flat_map(|guard| guard.below("/token")).collect()
    }

    pub(crate) fn issuer(&self, guard: usize) -> String {
        format!("{}{}", self.guards[guard].url, self.rules().issuer_path)
    }

    /// Takes every token back.
    pub(crate) fn revoke(&self) {
        self.state.book.lock().unwrap().tokens.clear();
    }

    /// Takes every refresh token back.
    pub(crate) fn revoke_refresh(&self) {
        self.state.book.lock().unwrap().refresh.clear();
    }

    /// What the world has to complain about, and whether somebody went where nobody should.
    pub(crate) fn check(&self) {
        let book = self.state.book.lock().unwrap();
        assert_eq!(book.wrongs, Vec::<String>::new());
        assert_eq!(self.canary.connections(), 0, "{:?}", self.canary.log());
        // Tokens are shown to the server alone.
        for guard in &self.guards {
            for asked in guard.log() {
                let shown = asked.header("authorization").unwrap_or_default();
                assert!(shown.is_empty() || shown.starts_with("Basic "), "{shown}");
                let is_shown = |token: &String| asked.all().contains(token.as_str());
                assert!(!book.tokens.keys().any(is_shown), "{}", asked.all());
            }
        }
    }
}

impl State {
    fn next(&self, what: &str) -> String {
        format!("{what}-{}-s3cr3t", self.count.fetch_add(1, Ordering::SeqCst))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap()
    }

    fn issuer(&self, guard: usize) -> String {
        format!("{}{}", self.guards[guard], self.rules().issuer_path)
    }

    fn serve_resource(&self, asked: &Asked) -> Reply {
        if let Some(reply) = (self.rules().first)(asked) {
            return reply;
        }
        let prm = self.rules().prm;
        let prm_path = match prm {
            Prm::Named(path) | Prm::WellKnown(path) => Some(path),
            Prm::Missing => None,
        };
        if Some(asked.path.as_str()) == prm_path {
            return self.prm(prm);
        }
        match (asked.path.as_str(), prm) {
            ("/mcp", _) => self.operate(asked, prm_path),
            (_, Prm::Missing) => self.serve_guard(0, asked),
            _ => Reply::status(404),
        }
    }

    fn prm(&self, prm: Prm) -> Reply {
        let is_root = prm == Prm::WellKnown("/.well-known/oauth-protected-resource");
        let resource = if is_root { self.server.clone() } else { format!("{}/mcp", self.server) };
        let guard = self.rules().guard;
        let mut document =
            json!({"resource": resource, "authorization_servers": [self.issuer(guard)]});
        (self.rules().edit_prm)(&mut document);
        Reply::json(&document)
    }

    fn operate(&self, asked: &Asked, prm_path: Option<&str>) -> Reply {
        let operation = asked.header("x-operation").unwrap_or_default().to_owned();
        if operation == "open" {
            return Reply::status(200);
        }
        let rules = self.rules();
        let named = match rules.prm {
            Prm::Named(_) => {
                prm_path.map(|path| format!(r#"resource_metadata="{}{path}""#, self.server))
            }
            _ => None,
        };
        let scheme = if rules.dpop { "DPoP" } else { "Bearer" };
        let challenge = |more: Option<String>| {
            let more: Vec<_> = named.clone().into_iter().chain(more).collect();
            format!("{scheme} {}", more.join(", "))
        };
        let refuse =
            |status, more| Reply::status(status).with("www-authenticate", &challenge(more));
        let scope = rules.scope.map(|scope| format!(r#"scope="{scope}""#));
        let shown = asked.header("authorization").and_then(|text| text.split_once(' '));
        let given = shown.and_then(|(_, token)| self.book().tokens.get(token).cloned());
        let Some(given) = given.filter(|given| given.guard == rules.guard) else {
            return refuse(401, scope);
        };
        let nonce = rules.nonce;
        let needs = rules.needs.iter().find(|(known, _)| *known == operation);
        let (needs, says) = (needs.map(|(_, scope)| *scope), rules.says);
        drop(rules);
        if let Some(key) = &given.key {
            let (kind, token) = shown.unwrap();
            assert_eq!(kind, "DPoP");
            let url = format!("{}/mcp", self.server);
            if let Err(value) = self.check_proof(asked, &url, Some((key, token)), nonce) {
                let error = refuse(401, Some(r#"error="use_dpop_nonce""#.to_owned()));
                return error.with("dpop-nonce", &value);
            }
        }
        let has = |scope: &str| given.scope.split(' ').any(|known| known == scope);
        match needs {
            Some(needs) if !needs.split(' ').all(has) => {
                let says = says.unwrap_or(needs);
                let more = format!(r#"error="insufficient_scope", scope="{says}""#);
                refuse(403, Some(more))
            }
            _ => Reply::status(200),
        }
    }

    fn serve_guard(&self, guard: usize, asked: &Asked) -> Reply {
        if let Some(reply) = (self.rules().first)(asked) {
            return reply;
        }
        let (path, metadata_at) = (asked.path.clone(), self.rules().metadata_at);
        if Some(path.as_str()) == metadata_at {
            return self.metadata(guard);
        }
        let path = path.strip_prefix(self.rules().issuer_path).unwrap_or(&path).to_owned();
        match path.as_str() {
            "/authorize" => self.authorize(guard, asked),
            "/register" => self.register(guard, asked),
            "/token" => self.token(guard, asked),
            _ => Reply::status(404),
        }
    }

    fn is_own_guard(&self) -> bool {
        self.rules().prm == Prm::Missing
    }

    fn metadata(&self, guard: usize) -> Reply {
        let is_own = self.is_own_guard();
        let issuer = if is_own { self.server.clone() } else { self.issuer(guard) };
        let rules = self.rules();
        let base = if is_own { format!("{issuer}{}", rules.issuer_path) } else { issuer.clone() };
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "token_endpoint_auth_methods_supported": rules.methods,
        });
        if rules.dpop {
            document["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        }
        (rules.edit_metadata)(&mut document);
        Reply::json(&document)
    }

    fn register(&self, guard: usize, asked: &Asked) -> Reply {
        let document = asked.json();
        let kind = document["application_type"].as_str().unwrap_or_default();
        if !["native", "web"].contains(&kind) {
            self.wrong("registration without application_type");
        }
        let id = format!("client{guard}-{}", self.count.fetch_add(1, Ordering::SeqCst));
        let method = document["token_endpoint_auth_method"].as_str().unwrap().to_owned();
        let secret = (method != "none").then(|| self.next("secret"));
        self.book().clients[guard].insert(id.clone(), secret.clone());
        let mut answer = json!({"client_id": id, "token_endpoint_auth_method": method});
        if let Some(secret) = secret {
            answer["client_secret"] = secret.into();
        }
        (self.rules().edit_registration)(&mut answer);
        Reply { status: StatusCode::CREATED, ..Reply::json(&answer) }
    }

    fn authorize(&self, guard: usize, asked: &Asked) -> Reply {
        let of = |name: &str| asked.query(name);
        let client = of("client_id").unwrap_or_default();
        let is_known = self.book().clients[guard].contains_key(&client);
        if !is_known && !client.starts_with("https://") && self.rules().metadata_at.is_some() {
            self.wrong(&format!("unknown client {client}"));
        }
        if of("code_challenge_method").as_deref() != Some("S256") {
            self.wrong("no S256");
        }
        let asked_for = of("scope").unwrap_or_default();
        let withheld = self.rules().withheld;
        let scopes: Vec<_> = asked_for.split(' ').filter(|scope| *scope != withheld).collect();
        let given = Given { guard, scope: scopes.join(" "), resource: of("resource"), key: None };
        let code = self.next("code");
        let redirect = of("redirect_uri").unwrap();
        let challenge = of("code_challenge").unwrap();
        let entry = (challenge, client, redirect.clone(), given);
        self.book().codes.insert(code.clone(), entry);
        let state = of("state").unwrap();
        let issuer = if self.is_own_guard() { self.server.clone() } else { self.issuer(guard) };
        let iss = match self.rules().iss {
            Iss::Right => format!("&iss={issuer}"),
            Iss::Missing => String::new(),
            Iss::Other(other) => format!("&iss={other}"),
            Iss::WithSlash => format!("&iss={issuer}/"),
        };
        Reply::redirect(302, &format!("{redirect}?code={code}&state={state}{iss}"))
    }

    pub(crate) fn wrong(&self, what: &str) {
        self.book().wrongs.push(what.to_owned());
    }

    fn token(&self, guard: usize, asked: &Asked) -> Reply {
        let Some(client) = self.client(guard, asked) else {
            return Reply::error(401, "invalid_client");
        };
        let is_dpop = self.rules().dpop;
        let nonce = self.rules().nonce;
        let mut key = None;
        if is_dpop {
            let url = format!("{}{}", self.guards[guard], asked.path);
            if let Err(value) = self.check_proof(asked, &url, None, nonce) {
                return Reply::error(400, "use_dpop_nonce").with("dpop-nonce", &value);
            }
            key = Some(proof_key(asked));
        }
        let of = |name: &str| asked.form(name);
        let grant_type = of("grant_type").unwrap_or_default();
        let given = match grant_type.as_str() {
            "authorization_code" => self.redeem(&client, asked),
            "refresh_token" => {
                let entry = self.book().refresh.remove(&of("refresh_token").unwrap_or_default());
                entry.filter(|(known, _)| *known == client).map(|(_, given)| given)
            }
            _ => {
                let (scope, resource) = (of("scope").unwrap_or_default(), of("resource"));
                Some(Given { guard, scope, resource, key: None })
            }
        };
        let Some(given) = given else {
            return Reply::error(400, "invalid_grant");
        };
        if given.resource != of("resource") {
            self.wrong("another resource in the token request");
        }
        let token = self.next("token");
        let kind = if is_dpop { "DPoP" } else { "Bearer" };
        let rules = self.rules();
        let mut answer = json!({
            "access_token": token, "token_type": kind, "expires_in": rules.expires_in,
            "scope": given.scope,
        });
        let given = Given { key, ..given };
        if rules.refreshes {
            let refresh = self.next("refresh");
            answer["refresh_token"] = refresh.as_str().into();
            self.book().refresh.insert(refresh, (client, given.clone()));
        }
        self.book().tokens.insert(token, given);
        (rules.edit_token)(&mut answer);
        Reply::json(&answer)
    }

    fn redeem(&self, client: &str, asked: &Asked) -> Option<Given> {
        let entry = self.book().codes.remove(&asked.form("code")?);
        let (challenge, known, redirect, given) = entry?;
        let verifier = asked.form("code_verifier").unwrap_or_default();
        if URL.encode(digest(&SHA256, verifier.as_bytes()).as_ref()) != challenge {
            self.wrong("a verifier of something else");
        }
        if known != client || Some(redirect) != asked.form("redirect_uri") {
            self.wrong("a code of somebody else");
        }
        Some(given)
    }

    /// Who asks, by one of the methods that are taken.
    fn client(&self, guard: usize, asked: &Asked) -> Option<String> {
        let basic = asked.header("authorization").and_then(|text| text.strip_prefix("Basic "));
        let (method, id, secret) = if let Some(basic) = basic {
            let pair = bowline_proto::base64::STANDARD.decode(basic)?;
            let pair = String::from_utf8(pair).ok()?;
            let (id, secret) = pair.split_once(':')?;
            ("client_secret_basic", crate::site::decode(id), Some(crate::site::decode(secret)))
        } else if let Some(secret) = asked.form("client_secret") {
            ("client_secret_post", asked.form("client_id")?, Some(secret))
        } else if asked.form("client_assertion").is_some() {
            ("private_key_jwt", asked.form("client_id")?, None)
        } else {
            ("none", asked.form("client_id")?, None)
        };
        if !self.rules().methods.contains(&method) {
            self.wrong(&format!("client proves itself by {method}"));
            return None;
        }
        let known = self.book().clients[guard].get(&id).cloned();
        let is_document = id.starts_with("https://");
        let is_right = known.is_some_and(|known| method == "private_key_jwt" || known == secret);
        let is_assumed = self.rules().metadata_at.is_none();
        (is_document || is_right || is_assumed).then_some(id)
    }

    /// Checks a proof; the error is a nonce to use.
    fn check_proof(
        &self,
        asked: &Asked,
        url: &str,
        bound: Option<(&String, &str)>,
        nonce: Option<bool>,
    ) -> Result<(), String> {
        let proofs: Vec<_> = asked.headers.get_all("dpop").iter().collect();
        assert_eq!(proofs.len(), 1, "{}", asked.all());
        let proof = proofs[0].to_str().unwrap().to_owned();
        let part = |at: usize| -> Value {
            let text = URL.decode(proof.split('.').nth(at).unwrap()).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let (header, claims) = (part(0), part(1));
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!(url)));
        assert!(header["jwk"].get("d").is_none());
        let mut book = self.book();
        let id = claims["jti"].as_str().unwrap().to_owned();
        assert!(!book.proofs.contains(&id), "a proof twice");
        book.proofs.push(id);
        if let Some((key, token)) = bound {
            assert_eq!(&header["jwk"].to_string(), key, "another key");
            let hash = URL.encode(digest(&SHA256, token.as_bytes()).as_ref());
            assert_eq!(claims["ath"], hash);
        }
        let is_current = claims["nonce"] == format!("nonce-{}", book.nonces);
        match nonce {
            Some(true) => {
                book.nonces += 1;
                Err(format!("nonce-{}", book.nonces))
            }
            Some(false) if !is_current => Err(format!("nonce-{}", book.nonces)),
            _ => Ok(()),
        }
    }
}

fn proof_key(asked: &Asked) -> String {
    let header = asked.header("dpop").unwrap().split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL.decode(header).unwrap()).unwrap();
    header["jwk"].to_string()
}
