//! OpenAPI documents as servers: each operation is a tool.
//!
//! [`Document`] is what was read, [`Api::build`] finds out what can be called, and [`Api::server`]
//! makes it a server in this process, so that everything else of the gateway applies to it. A
//! document is not trusted: it is bounded, its references stay within it, and where it says that
//! the API is, is reached only where the [`Web`] may. What it leaves to callers are values, which
//! never become another path, another header or another host.

mod answer;
mod call;
mod document;
mod operation;
mod parameter;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use bowline::model::ToolAnnotations;
use bowline::{Context, Json, Server, Tool, with_causes};
use bowline_web::{Authorize, Url, Web};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use self::call::Caller;
pub use self::document::{Document, LONGEST_DOCUMENT, OpenApiError};
use self::operation::{Found, Given, Operation};
use crate::bridge::ToolRules;

/// The most operations of one server.
const MOST: usize = 2_000;

/// The most schemas within all schemas of one server.
const MOST_SCHEMAS: usize = 200_000;

/// The most bytes of an answer that can be set: what the gateway's own messages have room for.
pub const LONGEST_ANSWER: usize = 4 << 20;

/// How an API is called.
pub struct ApiOptions {
    /// What the server is called.
    pub name: String,
    /// Where the API is. A query is a part of every request.
    pub base: Url,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// Gets tokens.
    pub authorize: Option<Arc<dyn Authorize>>,
    /// Sends requests. Its reach decides which hosts there are.
    pub web: Web,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many bytes of an answer are passed on at a time.
    pub output: usize,
    /// Which operations there are. Others are not looked at.
    pub tools: ToolRules,
}

/// An API that can be called.
pub struct Api {
    name: String,
    operations: Vec<Arc<Operation>>,
    labels: Vec<(String, String)>,
    left_out: Vec<String>,
    caller: Arc<Caller>,
}

impl Api {
    /// Finds out what can be called.
    ///
    /// # Errors
    /// When nothing can, or too much.
    pub fn build(document: &Document, options: ApiOptions) -> Result<Self, OpenApiError> {
        let headers = headers(&options.headers)?;
        let given = Given {
            headers: headers.keys().map(|it| it.as_str().to_owned()).collect(),
            query: names(options.base.query().unwrap_or_default()),
        };
        let found = document.operations();
        let found = found.map(|(method, path, item, operation)| {
            let found = Found { document, method, path, item, operation };
            (found.name(), found)
        });
        let chosen: Vec<_> = found.filter(|(name, _)| options.tools.name(name).is_some()).collect();
        if chosen.len() > MOST {
            return Err(OpenApiError::TooMany { count: chosen.len(), limit: MOST });
        }
        let caller = Caller {
            base: options.base,
            headers,
            authorize: options.authorize,
            web: options.web,
            timeout: options.timeout,
            output: options.output.min(LONGEST_ANSWER),
        };
        let mut api = Self {
            name: options.name,
            operations: Vec::new(),
            labels: Vec::new(),
            left_out: Vec::new(),
            caller: Arc::new(caller),
        };
        let mut size = 0;
        for (name, found) in chosen {
            match found.read(&given).and_then(|it| api.add(it, found.label())) {
                Ok(added) => size += added,
                Err(why) => api.left_out.push(format!("{} ({name}): {why}", found.label())),
            }
            if size > MOST_SCHEMAS {
                return Err(OpenApiError::TooComplex);
            }
        }
        if api.operations.is_empty() {
            let why = api.left_out.first().map(|it| format!("; the first: {it}"));
            return Err(OpenApiError::Empty(why.unwrap_or_default()));
        }
        Ok(api)
    }

    fn add(&mut self, operation: Operation, label: String) -> Result<usize, String> {
        if let Some((_, other)) = self.labels.iter().find(|(name, _)| *name == operation.name) {
            return Err(format!("{other} has the same name"));
        }
        let operation = Arc::new(operation);
        // Only to know whether its schemas can be used.
        let trial = Server::new("trial", "1").registry().set(self.tool(&operation));
        trial.map_err(|error| with_causes(&error))?;
        let size = operation.size;
        self.labels.push((operation.name.clone(), label));
        self.operations.push(operation);
        Ok(size)
    }

    /// The names of its tools, each with method and path.
    #[must_use]
    pub fn tools(&self) -> &[(String, String)] {
        &self.labels
    }

    /// The operations that cannot be called, and why.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// A server whose tools call the API.
    pub fn server(&self) -> Server {
        let server = Server::new(self.name.clone(), env!("CARGO_PKG_VERSION"));
        let server = server.limits(super::limits());
        self.operations.iter().fold(server, |server, operation| server.with(self.tool(operation)))
    }

    fn tool(&self, operation: &Arc<Operation>) -> Tool {
        let (caller, own) = (Arc::clone(&self.caller), Arc::clone(operation));
        let call = move |context: Context, arguments: Json| {
            let (caller, own) = (Arc::clone(&caller), Arc::clone(&own));
            async move { caller.call(&own, &arguments.to_value(), context.traceparent()).await }
        };
        let method = &operation.method;
        let annotations = ToolAnnotations {
            read_only_hint: Some(method.is_safe()),
            destructive_hint: (*method == Method::DELETE).then_some(true),
            idempotent_hint: matches!(*method, Method::PUT | Method::DELETE).then_some(true),
            ..ToolAnnotations::default()
        };
        let mut tool = Tool::raw(&operation.name, operation.input.clone(), call)
            .description(&operation.description)
            .annotations(annotations);
        if let Some(title) = &operation.title {
            tool = tool.title(title);
        }
        match &operation.output {
            Some(output) => tool.output_schema(output.schema.clone()),
            None => tool,
        }
    }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, OpenApiError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let wrong = || OpenApiError::Header(name.clone());
        let header = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// The names in a query.
fn names(query: &str) -> std::collections::BTreeSet<String> {
    let pairs = query.split('&').filter(|it| !it.is_empty());
    pairs.map(|it| it.split('=').next().unwrap_or_default().to_owned()).collect()
}
