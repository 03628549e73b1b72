//! Servers that OpenAPI documents describe.
//!
//! A mistake in a file is a mistake of the configuration. A document at a URL that cannot be had is
//! a server that is down: it is fetched again whenever the gateway tries to connect.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::client::Target;
use bowline::with_causes;
use bowline_gateway::bridge::ToolRules;
use bowline_gateway::gateway::{Api, ApiOptions, Document, LONGEST_ANSWER, LONGEST_DOCUMENT};
use bowline_web::{Authorize, FetchLimits, Reach, Url, Web};
use http::header::LOCATION;
use tokio::task::spawn_blocking;

use super::plan::{filled_in, tokens};
use super::{Entry, Read, duration};
use crate::gateway::file::{self, Credentials};
use crate::gateway::secret::{filled, home};
use crate::target::{Location, Resolved};

/// How long a call may take that has no limit of its own.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes of an answer are passed on at a time.
const OUTPUT: usize = 256 << 10;

/// What an entry's document says.
pub(super) struct Described {
    source: Arc<Source>,
    state: Arc<Mutex<State>>,
}

enum State {
    Ready(Arc<Api>, String),
    /// It cannot be had, for this reason.
    Missing(String),
    /// The same, and it is being fetched again.
    Fetching(String),
}

/// Where a document is, and how its API is called.
struct Source {
    key: String,
    from: At,
    resolved: Resolved,
    base: Option<String>,
    auth: Option<Credentials>,
    may_be_exposed: bool,
    timeout: Duration,
    output: usize,
    tools: ToolRules,
}

#[derive(Clone)]
enum At {
    File(PathBuf),
    Url(Url),
}

/// Where the document of a server is, for `url` of its entry; `None` if it has none.
pub(super) fn place(server: &file::Server, near: &Path) -> Option<Result<String, String>> {
    let place = server.openapi.as_ref()?;
    let entry = server.entry();
    let mut others = ["command", "args", "env", "cwd", "url", "type"].into_iter();
    let other = others.find(|it| entry.contains_key(*it));
    let other = other.or_else(|| server.era.as_ref().map(|_| "era"));
    let other = other.or_else(|| server.login.map(|_| "login"));
    let other = other.or_else(|| (!server.inherit.is_empty()).then_some("inherit"));
    Some(match other {
        Some(other) => Err(format!("{other} has no meaning beside openapi; help: remove it")),
        None if place.contains("://") => Ok(place.clone()),
        None => Ok(near.join(home(Path::new(place))).to_string_lossy().into_owned()),
    })
}

impl Read {
    /// Reads the documents that the files name.
    ///
    /// # Errors
    /// All mistakes, one per line.
    pub(in crate::gateway) async fn describe(&mut self) -> Result<(), String> {
        let (mut loading, mut problems) = (Vec::new(), Vec::new());
        for (at, entry) in self.servers.iter().enumerate() {
            match Source::of(entry, &self.secrets).transpose() {
                Some(Ok(source)) => {
                    let source = Arc::new(source);
                    loading.push((at, tokio::spawn(Arc::clone(&source).load()), source));
                }
                Some(Err(why)) => problems.push(entry.problem(&why)),
                None => {}
            }
        }
        for (at, loaded, source) in loading {
            let entry = &mut self.servers[at];
            let loaded = loaded.await.unwrap_or_else(|error| Err(error.to_string()));
            let state = match (loaded, &source.from) {
                (Ok((api, digest, resolved)), _) => {
                    entry.resolved = resolved;
                    let count = api.left_out().len();
                    if count > 0 {
                        let what = "operations left out; `bowline gateway check` says why";
                        self.notes.push(format!("{}: {count} {what}", entry.key));
                    }
                    State::Ready(api, digest)
                }
                (Err(why), At::Url(_)) => {
                    if let (Some(base), Location::Url { url, .. }) =
                        (&source.base, &mut entry.resolved.location)
                    {
                        url.clone_from(base);
                    }
                    State::Missing(why)
                }
                (Err(why), At::File(_)) => {
                    problems.push(entry.problem(&why));
                    continue;
                }
            };
            entry.api = Some(Described { source, state: Arc::new(Mutex::new(state)) });
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    /// Why a document at a URL cannot be had, if one cannot.
    pub(in crate::gateway) fn missing(&self) -> Option<String> {
        let missing =
            self.servers.iter().filter_map(|entry| match &*lock(&entry.api.as_ref()?.state) {
                State::Missing(why) | State::Fetching(why) => Some(entry.problem(why)),
                State::Ready(..) => None,
            });
        let missing: Vec<_> = missing.collect();
        (!missing.is_empty()).then(|| missing.join("\n"))
    }
}

impl Entry {
    fn problem(&self, why: &str) -> String {
        format!("{}: servers.{}: {why}", self.file.display(), self.key)
    }
}

impl Described {
    /// What a gateway connects to.
    pub(super) fn target(&self) -> Arc<dyn Fn() -> Result<Target, String> + Send + Sync> {
        let (source, state) = (Arc::clone(&self.source), Arc::clone(&self.state));
        Arc::new(move || {
            let mut now = lock(&state);
            let why = match &*now {
                State::Ready(api, _) => return Ok(Target::from(api.server())),
                State::Fetching(why) => return Err(why.clone()),
                State::Missing(why) => why.clone(),
            };
            *now = State::Fetching(why.clone());
            let (source, state) = (Arc::clone(&source), Arc::clone(&state));
            tokio::spawn(async move {
                let loaded = source.load().await;
                *lock(&state) = match loaded {
                    Ok((api, digest, _)) => State::Ready(api, digest),
                    Err(why) => State::Missing(why),
                };
            });
            Err(why)
        })
    }

    /// What decides whether a reload makes another server of it. Holds secrets.
    pub(super) fn fingerprint(&self, own: &file::Server) -> String {
        let digest = match &*lock(&self.state) {
            State::Ready(_, digest) => digest.clone(),
            _ => "missing".to_owned(),
        };
        let Source { base, timeout, output, .. } = &*self.source;
        format!(
            " {digest} {base:?} {timeout:?} {output} {:?} {:?}",
            own.tools.allow, own.tools.deny
        )
    }

    /// Its operations, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let State::Ready(api, _) = &*lock(&self.state) else { return Vec::new() };
        let tools = api.tools().iter().map(|(name, what)| format!("tool {name}: {what}"));
        let left_out = api.left_out().iter().map(|why| format!("left out: {why}"));
        tools.chain(left_out).collect()
    }
}

type Loaded = (Arc<Api>, String, Resolved);

impl Source {
    /// `None` if an entry is not described by a document.
    fn of(entry: &Entry, secrets: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let own = &entry.own;
        let Location::Url { url, .. } = &entry.resolved.location else { return Ok(None) };
        if own.openapi.is_none() {
            let members = [("base", own.base.is_some()), ("output", own.output.is_some())];
            let stray = members.into_iter().find(|(_, is_there)| *is_there);
            return match stray {
                Some((name, _)) => Err(format!("{name} is for servers with openapi")),
                None => Ok(None),
            };
        }
        let from = match url.contains("://") {
            true => At::Url(Url::parse(url).map_err(|why| format!("openapi: expected {why}"))?),
            false => At::File(PathBuf::from(url)),
        };
        let output = own.output.unwrap_or(OUTPUT);
        if !(1..=LONGEST_ANSWER).contains(&output) {
            return Err(format!("output: expected 1 to {LONGEST_ANSWER} bytes, found {output}"));
        }
        Ok(Some(Self {
            key: entry.key.clone(),
            from,
            resolved: entry.resolved.clone(),
            base: own.base.as_ref().map(|it| filled(it, secrets)).transpose()?,
            auth: own.auth.as_ref().map(|it| filled_in(it, secrets)).transpose()?,
            may_be_exposed: own.insecure_http.unwrap_or_default(),
            timeout: duration(own.limits.timeout.as_deref(), TIMEOUT)?,
            output,
            tools: entry.tools(),
        }))
    }

    /// Reads the document, and finds out what it says.
    async fn load(self: Arc<Self>) -> Result<Loaded, String> {
        let bytes = match &self.from {
            At::File(_) => None,
            At::Url(url) => Some(self.fetch(url).await.map_err(|why| format!("{url}: {why}"))?),
        };
        let read = spawn_blocking(move || self.read(bytes)).await;
        read.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Without the headers and tokens for the API.
    async fn fetch(&self, url: &Url) -> Result<Vec<u8>, String> {
        let limits = FetchLimits { bytes: LONGEST_DOCUMENT, ..FetchLimits::default() };
        let web = self.resolved.web().map_err(|failure| failure.what)?.fetch_limits(limits);
        let web = web.build().map_err(|error| with_causes(&error))?;
        let request = http::Request::get(url.uri()).body(Default::default());
        let request = request.map_err(|error| error.to_string())?;
        let response = web.fetch(request).await.map_err(|error| with_causes(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response.into_body().to_vec());
        }
        let to = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let to = to.map(|to| format!("; help: it is at {to}, say so")).unwrap_or_default();
        Err(format!("the document cannot be fetched: HTTP {status}{to}"))
    }

    fn read(&self, bytes: Option<Vec<u8>>) -> Result<Loaded, String> {
        let place = match &self.from {
            At::File(file) => file.display().to_string(),
            At::Url(url) => url.to_string(),
        };
        let wrong = |why: &dyn std::fmt::Display| format!("{place}: {why}");
        let bytes = match (bytes, &self.from) {
            (None, At::File(file)) => contents(file).map_err(|error| wrong(&error))?,
            (bytes, _) => bytes.unwrap_or_default(),
        };
        let document = Document::parse(&bytes).map_err(|error| wrong(&error))?;
        let from = match &self.from {
            At::Url(url) => Some(url),
            At::File(_) => None,
        };
        let mut resolved = self.resolved.clone();
        if let Location::Url { url, .. } = &mut resolved.location {
            *url = match &self.base {
                Some(base) => base.clone(),
                None => document.server(from).map_err(|error| wrong(&error))?.as_str().to_owned(),
            };
        }
        resolved.protect(self.may_be_exposed).map_err(|failure| {
            format!("{}; help: use https, or insecure_http = true", failure.what)
        })?;
        let (base, headers) = match resolved.location.clone() {
            Location::Url { url, headers } => (url, headers),
            Location::Command { .. } => return Err("openapi is not for commands".to_owned()),
        };
        let base = Url::parse(&base).map_err(|why| format!("base: expected {why}"))?;
        let named = if self.base.is_some() { Some(&base) } else { from };
        let web = self.web(named)?;
        let tokens = self.auth.as_ref().map(|auth| tokens(&resolved, auth)).transpose()?;
        let options = ApiOptions {
            name: self.key.clone(),
            base,
            headers,
            authorize: tokens.map(|it| Arc::new(it) as Arc<dyn Authorize>),
            web,
            timeout: self.timeout,
            output: self.output,
            tools: self.tools.clone(),
        };
        let api = Api::build(&document, options).map_err(|error| wrong(&error))?;
        Ok((Arc::new(api), document.digest().to_owned(), resolved))
    }

    /// Reaches the public internet, and the host that the configuration names, wherever it is: a
    /// document may name no other.
    fn web(&self, named: Option<&Url>) -> Result<Web, String> {
        let also = named.and_then(|url| url.uri().authority().cloned());
        let reach = Reach::Public { also: also.into_iter().collect() };
        let web = self.resolved.web().map_err(|failure| failure.what)?;
        web.header_timeout(None).reach(reach).build().map_err(|error| with_causes(&error))
    }
}

fn contents(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(LONGEST_DOCUMENT).unwrap_or(u64::MAX);
    std::fs::File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
