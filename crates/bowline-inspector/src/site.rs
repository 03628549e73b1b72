//! The server of the page: what is at which path, and under which headers.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::app::Apps;
use crate::asset;
use crate::body::{self, Body};
use crate::feed::Feed;
use crate::gate::{self, Denied, Gate};
use crate::key::Keys;
use crate::protocol::{Action, Problem};

/// The largest request of a page, in bytes.
pub const LARGEST_REQUEST: usize = 64 << 20;
/// The most connections of an origin at a time; more wait.
const MOST_CONNECTIONS: usize = 128;
/// How long the address in the command line of a browser works.
const BRIEF: Duration = Duration::from_secs(120);

/// A page on loopback, and the second origin for its apps. Nothing is served before
/// [`serve`](Self::serve).
pub struct Site {
    page: TcpListener,
    apps: TcpListener,
    shared: Rc<Shared>,
}

struct Shared {
    gate: Gate,
    app_gate: Gate,
    keys: Keys,
    feed: Feed,
    documents: Apps,
    policy: HeaderValue,
}

impl Site {
    /// Listens on two ports of 127.0.0.1, for the page and for its apps: the given ones, or any if
    /// they are 0 or in use.
    ///
    /// # Errors
    /// When there is no port to listen on.
    pub async fn bind(port: u16, app_port: u16, feed: Feed) -> io::Result<Self> {
        let (page, apps) = (listen(port).await?, listen(app_port).await?);
        let app_port = apps.local_addr()?.port();
        let documents = Apps::new(app_port, page.local_addr()?.port());
        let policy = format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
             media-src data: blob:; connect-src 'self'; frame-src {}; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
             trusted-types 'none'",
            documents.origin()
        );
        let policy = policy.try_into().map_err(io::Error::other)?;
        let gate = Gate::new(page.local_addr()?.port());
        let (app_gate, keys) = (Gate::new(app_port), Keys::default());
        let shared = Shared { gate, app_gate, keys, feed, documents, policy };
        Ok(Self { page, apps, shared: Rc::new(shared) })
    }

    /// The address that opens the page, once: its fragment holds a ticket.
    #[must_use]
    pub fn address(&self) -> String {
        let ticket = self.shared.keys.issue(None).unwrap_or_default();
        format!("{}/#ticket={ticket}", self.shared.gate.origin())
    }

    /// The same, for the command line of a browser, which all users of the machine can read: it
    /// works for two minutes only.
    #[must_use]
    pub fn brief_address(&self) -> String {
        let ticket = self.shared.keys.issue(Some(BRIEF)).unwrap_or_default();
        format!("{}/#ticket={ticket}", self.shared.gate.origin())
    }

    /// The origin of the page.
    #[must_use]
    pub fn origin(&self) -> String {
        self.shared.gate.origin().to_owned()
    }

    /// Where to put apps.
    #[must_use]
    pub fn apps(&self) -> Apps {
        self.shared.documents.clone()
    }

    /// Serves pages until it is dropped; `act` carries out what they ask. Needs a
    /// [`LocalSet`](tokio::task::LocalSet).
    ///
    /// # Cancel safety
    /// Connections end, and with them what `act` has not finished.
    pub async fn serve(self, act: impl AsyncFn(Action) -> Result<Value, Problem> + 'static) {
        let Self { page, apps, shared } = self;
        let (act, views) = (Rc::new(act), Rc::clone(&shared));
        let of_page = service_fn(move |request: Request<Incoming>| {
            let (shared, act) = (Rc::clone(&shared), Rc::clone(&act));
            async move { Ok::<_, Infallible>(shared.answer(request, &*act).await) }
        });
        let of_apps = service_fn(move |request: Request<Incoming>| {
            std::future::ready(Ok::<_, Infallible>(views.show(&request)))
        });
        tokio::join!(accept(&page, of_page), accept(&apps, of_apps));
    }
}

async fn listen(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(("127.0.0.1", port)).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            TcpListener::bind(("127.0.0.1", 0)).await
        }
        bound => bound,
    }
}

/// Serves connections side by side; while there are too many, new ones wait.
async fn accept<S>(listener: &TcpListener, service: S)
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => {
                let Ok((stream, _)) = accepted else {
                    // Out of files: some are given back before long.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let service = service.clone();
                connections.spawn_local(async move {
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(stream), service);
                    // A page that goes away breaks its connection: nobody needs to know.
                    let _ = connection.await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

#[derive(Deserialize)]
struct Opening {
    ticket: String,
}

#[derive(Deserialize)]
struct Position {
    after: u64,
}

impl Shared {
    /// Answers a request for the page.
    async fn answer(
        &self,
        request: Request<Incoming>,
        act: &impl AsyncFn(Action) -> Result<Value, Problem>,
    ) -> Response<Body> {
        let mut response = match self.route(request, act).await {
            Ok(response) => response,
            Err((status, what)) => json_response(status, &json!({ "what": what })),
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        harden(response)
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        act: &impl AsyncFn(Action) -> Result<Value, Problem>,
    ) -> Result<Response<Body>, Denied> {
        let (head, body) = request.into_parts();
        self.gate.check(&head)?;
        if head.method == Method::GET {
            let found = asset::find(head.uri.path());
            let asset = found.ok_or_else(|| (StatusCode::NOT_FOUND, "no such file".to_owned()))?;
            let mut response = Response::new(Body::whole(asset.text));
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media));
            return Ok(response);
        }
        if head.method != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and POST".to_owned()));
        }
        if !gate::is_json(&head.headers) {
            let what = "expected Content-Type: application/json".to_owned();
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
        }
        let path = head.uri.path();
        if path != "/api/open"
            && !gate::bearer(&head.headers).is_some_and(|it| self.keys.is_key(it))
        {
            let what = "the key is missing or of an earlier run; open the address that `bowline \
                        inspect` printed";
            return Err((StatusCode::UNAUTHORIZED, what.to_owned()));
        }
        let limit = if path == "/api/do" { LARGEST_REQUEST } else { 1024 };
        let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, format!("more than {limit} bytes"));
        let body = body::read(body, limit).await.ok_or_else(too_large)?;
        match path {
            "/api/open" => {
                let Opening { ticket } = parse(&body)?;
                let used = "this address has been used; run `bowline inspect` again, or copy \
                            another address from the page that is open";
                let key = self.keys.redeem(&ticket);
                let key = key.ok_or_else(|| (StatusCode::UNAUTHORIZED, used.to_owned()))?;
                Ok(json_response(StatusCode::OK, &json!({ "key": key })))
            }
            "/api/ticket" => {
                let full = || (StatusCode::TOO_MANY_REQUESTS, "too many addresses".to_owned());
                let ticket = self.keys.issue(None).ok_or_else(full)?;
                let address = format!("{}/#ticket={ticket}", self.gate.origin());
                Ok(json_response(StatusCode::OK, &json!({ "address": address })))
            }
            "/api/events" => {
                let Position { after } = parse(&body)?;
                let mut response = Response::new(Body::feed(&self.feed, after));
                let media = HeaderValue::from_static("application/x-ndjson");
                response.headers_mut().insert(header::CONTENT_TYPE, media);
                Ok(response)
            }
            "/api/do" => Ok(match act(parse(&body)?).await {
                Ok(value) => json_response(StatusCode::OK, &value),
                Err(problem) => json_response(StatusCode::UNPROCESSABLE_ENTITY, &json!(problem)),
            }),
            _ => Err((StatusCode::NOT_FOUND, format!("nothing is at {path}"))),
        }
    }

    /// Answers a request for the document of an app.
    fn show(&self, request: &Request<Incoming>) -> Response<Body> {
        let host = request.headers().get(header::HOST).map(HeaderValue::as_bytes);
        let own = self.app_gate.origin().strip_prefix("http://").map(str::as_bytes);
        // The page of the first origin embeds it, so it is a request of another origin.
        let document = (host == own && request.method() == Method::GET)
            .then(|| self.documents.find(request.uri().path()))
            .flatten();
        let Some((document, policy)) =
            document.and_then(|it| Some((it.clone(), HeaderValue::try_from(it.policy).ok()?)))
        else {
            return harden(json_response(StatusCode::NOT_FOUND, &json!({ "what": "no such app" })));
        };
        let mut response = Response::new(Body::whole(document.html));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        let media = HeaderValue::from_static("text/html; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, media);
        harden(response)
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Denied> {
    serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::whole(value.to_string()));
    *response.status_mut() = status;
    let media = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

/// What every response says.
fn harden(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
