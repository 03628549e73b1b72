//! Apps: HTML documents that hosts show beside the results of tools. The extension
//! `io.modelcontextprotocol/ui`, which is metadata of tools and resources, and nothing else.

use std::sync::Arc;

use bowline_proto::json::Extra;
use bowline_proto::model::ui::{ID, META_KEY, MIME_TYPE, SCHEME, UiCsp, UiResourceMeta};
use bowline_proto::model::{Meta, ResourceContents, Settings};

use super::Server;
use super::caller::Caller;
use super::error::{BuildError, HandlerError};
use super::registry::Tables;
use super::resource::{self, Resource, ResourceOutcome, ResourceOutput};
use super::tool::{self, Tool, Visible, brings_schema};
use crate::uri_template::Match;

/// An app: an HTML document, and what it needs from the host that shows it.
///
/// ```
/// use bowline::{App, Resource, Server, Tool};
///
/// let map = App::new("<!doctype html><title>Map</title>…")
///     .resource_domain("https://tiles.example.com")
///     .geolocation()
///     .prefers_border(false);
/// let server = Server::new("maps", "1.0.0")
///     .with(Resource::app("ui://maps/map", map))
///     .with(Tool::new("show_map", || async { "a map of Berlin" }).ui("ui://maps/map"));
/// ```
///
/// Without a word here, hosts let an app reach nothing but the tools and resources of its server.
/// Handlers of resources may return one, too. See [`guide::apps`](crate::guide::apps).
#[derive(Debug, Clone)]
#[must_use = "an app does nothing until it is the content of a resource"]
pub struct App {
    html: Arc<str>,
    ui: UiResourceMeta,
}

impl App {
    /// Creates an app from a complete HTML document.
    pub fn new(html: impl Into<Arc<str>>) -> Self {
        Self { html: html.into(), ui: UiResourceMeta::default() }
    }

    /// Lets it send requests to an origin, by `fetch`, `XMLHttpRequest` or `WebSocket`.
    ///
    /// Here and below, an origin is a scheme, a host and optionally a port:
    /// `https://api.example.com`, or `https://*.example.com` for all subdomains.
    pub fn connect_domain(self, origin: impl Into<String>) -> Self {
        self.allow(|csp| &mut csp.connect_domains, origin)
    }

    /// Lets it load scripts, styles, images, fonts and media from an origin.
    pub fn resource_domain(self, origin: impl Into<String>) -> Self {
        self.allow(|csp| &mut csp.resource_domains, origin)
    }

    /// Lets it show frames of an origin.
    pub fn frame_domain(self, origin: impl Into<String>) -> Self {
        self.allow(|csp| &mut csp.frame_domains, origin)
    }

    /// Lets it have an origin in its `<base>`.
    pub fn base_uri_domain(self, origin: impl Into<String>) -> Self {
        self.allow(|csp| &mut csp.base_uri_domains, origin)
    }

    fn allow(
        mut self,
        list: impl FnOnce(&mut UiCsp) -> &mut Option<Vec<String>>,
        origin: impl Into<String>,
    ) -> Self {
        list(self.ui.csp.get_or_insert_default()).get_or_insert_default().push(origin.into());
        self
    }

    /// Asks for the camera.
    pub fn camera(mut self) -> Self {
        self.ui.permissions.get_or_insert_default().camera = Some(Extra::new());
        self
    }

    /// Asks for the microphone.
    pub fn microphone(mut self) -> Self {
        self.ui.permissions.get_or_insert_default().microphone = Some(Extra::new());
        self
    }

    /// Asks for the place where the user is.
    pub fn geolocation(mut self) -> Self {
        self.ui.permissions.get_or_insert_default().geolocation = Some(Extra::new());
        self
    }

    /// Asks for the right to write to the clipboard.
    pub fn clipboard_write(mut self) -> Self {
        self.ui.permissions.get_or_insert_default().clipboard_write = Some(Extra::new());
        self
    }

    /// Declares whether it wants a border around it. The host decides if it does not say.
    pub fn prefers_border(mut self, prefers_border: bool) -> Self {
        self.ui.prefers_border = Some(prefers_border);
        self
    }

    /// Asks the host for an origin of its own, which requests of the app then come from. Every host
    /// has its own form of it, and some show nothing if it is wrong.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.ui.domain = Some(domain.into());
        self
    }

    fn has_settings(&self) -> bool {
        self.ui != UiResourceMeta::default()
    }
}

impl From<&str> for App {
    fn from(html: &str) -> Self {
        Self::new(html)
    }
}

impl From<String> for App {
    fn from(html: String) -> Self {
        Self::new(html)
    }
}

impl ResourceOutput for App {
    fn into_contents(self, uri: &str) -> ResourceOutcome {
        if let Some(problem) = self.ui.csp.as_ref().and_then(UiCsp::problem) {
            return Err(HandlerError::failed(format!("{uri}: {problem}")));
        }
        let mut contents = ResourceContents::text(uri, &*self.html).with_mime_type(MIME_TYPE);
        if self.has_settings() {
            contents.meta.get_or_insert_with(Meta::default).set(META_KEY, &self.ui);
        }
        contents.into_contents(uri)
    }
}

impl Resource {
    /// Creates an [app](App) with a URI that begins with `ui://`. A tool shows it with
    /// [`Tool::ui`].
    pub fn app(uri: impl Into<String>, app: impl Into<App>) -> Self {
        let (uri, app) = (uri.into(), app.into());
        let name = uri.strip_prefix(SCHEME).unwrap_or(&uri).to_owned();
        let (size, ui) = (app.html.len(), app.has_settings().then(|| app.ui.clone()));
        let resource = Self::new(uri, name, move || std::future::ready(app.clone()))
            .mime_type(MIME_TYPE)
            .size(size);
        match ui {
            Some(ui) => resource.meta(META_KEY, ui),
            None => resource,
        }
    }
}

impl Tool {
    /// Lets hosts show its results in an [app](App): the resource with this URI. A server without
    /// such a resource cannot be built.
    ///
    /// The result must make sense without the app, which many clients do not show.
    pub fn ui(mut self, uri: impl Into<String>) -> Self {
        let mut ui = self.definition.ui().unwrap_or_default();
        ui.resource_uri = Some(uri.into());
        self.definition.set_ui(&ui);
        self
    }

    /// Declares that it is for apps of the same server, and not for the model. Hosts that show apps
    /// hide it from the model; see also [`Server::hide_unusable_apps`].
    pub fn app_only(self) -> Self {
        self.ui_visibility("app")
    }

    /// Declares that it is for the model, and that apps may not call it.
    pub fn model_only(self) -> Self {
        self.ui_visibility("model")
    }

    fn ui_visibility(mut self, who: &str) -> Self {
        let mut ui = self.definition.ui().unwrap_or_default();
        ui.visibility = Some(vec![who.to_owned()]);
        self.definition.set_ui(&ui);
        self
    }
}

impl Server {
    /// Hides what only apps can use from clients that do not declare that they show any: tools with
    /// [`Tool::app_only`], and the apps themselves. Lists then depend on the caller, so they are
    /// not cached for others.
    ///
    /// By default everyone sees everything, because many hosts that show apps forget to declare it.
    pub fn hide_unusable_apps(self) -> Self {
        self.registry.hide_apps();
        self
    }
}

/// Checks the settings of a resource that is an app.
///
/// # Errors
/// When a host would not show it.
pub(super) fn check_resource(
    definition: &bowline_proto::model::Resource,
) -> Result<(), BuildError> {
    let uri = &definition.uri;
    let refused =
        |reason: String| Err(BuildError::App { kind: "resource", name: uri.clone(), reason });
    if !definition.is_app() {
        return Ok(());
    }
    if !uri.starts_with(SCHEME) {
        return refused(format!("the URI of an app must begin with {SCHEME}"));
    }
    match definition.ui().and_then(|ui| ui.csp?.problem()) {
        Some(problem) => refused(problem),
        None => Ok(()),
    }
}

/// Checks that each tool with an app has one. Tools that another server defined are its business.
///
/// # Errors
/// When the resource is missing, or not an app.
pub(super) fn check_tools(tables: &Tables) -> Result<(), BuildError> {
    for tool in tables.tools.iter().filter(|it| !brings_schema(&it.definition)) {
        let Some(uri) = tool.definition.ui().and_then(|it| it.resource_uri) else { continue };
        if let Some(reason) = problem_of_app(tables, &uri) {
            let name = tool.definition.name.clone();
            return Err(BuildError::App { kind: "tool", name, reason });
        }
    }
    Ok(())
}

fn problem_of_app(tables: &Tables, uri: &str) -> Option<String> {
    if !uri.starts_with(SCHEME) {
        return Some(format!("the URI of its app, {uri:?}, must begin with {SCHEME}"));
    }
    let is_it = |it: &&Arc<resource::Entry>| {
        let template = it.template.as_ref();
        template.is_some_and(|it| matches!(it.matches(uri), Match::Values(_)))
    };
    let found = tables.resources.get(uri).or_else(|| tables.templates.iter().find(is_it));
    let Some(found) = found else {
        return Some(format!(
            "its app {uri:?} is not a resource of the server; help: add \
             `Resource::app({uri:?}, html)`"
        ));
    };
    if found.definition.is_app() {
        return None;
    }
    let actual = found.definition.mime_type.as_deref().unwrap_or("none");
    Some(format!(
        "its app {uri:?} must have the type {MIME_TYPE:?}, and has {actual:?}; help: create it with \
         `Resource::app`"
    ))
}

/// What a server with apps declares.
pub(super) fn declare(declared: Option<Settings>) -> Settings {
    let mut declared = declared.unwrap_or_default();
    if declared.get(ID).is_none() {
        declared.insert(ID, Extra::new());
    }
    declared
}

/// Hides a tool that only apps can call from clients that do not show any.
pub(super) fn restrict_tool(entry: &mut tool::Entry) {
    if entry.definition.ui().is_some_and(|it| it.is_for_app() && !it.is_for_model()) {
        restrict(&mut entry.visible);
    }
}

/// Hides an app from clients that do not show any.
pub(super) fn restrict_resource(entry: &mut resource::Entry) {
    if entry.definition.is_app() {
        restrict(&mut entry.visible);
    }
}

fn restrict(visible: &mut Option<Visible>) {
    let own = visible.take();
    let rule =
        move |caller: &Caller| caller.shows_apps() && own.as_ref().is_none_or(|rule| rule(caller));
    *visible = Some(Arc::new(rule));
}
