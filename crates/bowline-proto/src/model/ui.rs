//! Apps, as defined by the extension `io.modelcontextprotocol/ui`: HTML documents that a server has
//! as resources, and that a host shows beside the results of tools. All of it is metadata.

mod source;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::source::check_source;
use super::{ClientCapabilities, Meta, Resource, ResourceContents, Tool};
use crate::json::{Extra, Sparse};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/ui";

/// The MIME type of an app, to the letter: hosts compare it as text.
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// What the URI of an app begins with.
pub const SCHEME: &str = "ui://";

/// The member of `_meta` that has all of it.
pub const META_KEY: &str = "ui";

/// The member of a tool's `_meta` that hosts read before there was [`META_KEY`].
pub const FLAT_META_KEY: &str = "ui/resourceUri";

/// What a client that shows apps declares as the settings of the extension.
pub fn client_settings() -> Extra {
    Extra::from_iter([("mimeTypes".to_owned(), json!([MIME_TYPE]))])
}

impl ClientCapabilities {
    /// Whether the client shows apps: it declares the extension, with the type of documents that
    /// servers have today, or without types.
    pub fn shows_apps(&self) -> bool {
        let Some(settings) = self.extensions.as_ref().and_then(|it| it.get(ID)) else {
            return false;
        };
        match settings.get("mimeTypes").and_then(|it| it.as_array()) {
            Some(types) => types.iter().any(|it| it == MIME_TYPE),
            None => true,
        }
    }
}

/// What a tool says about its app: `_meta.ui`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UiToolMeta {
    /// The app that shows its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_uri: Option<String>,
    /// Who may call it: `model`, `app`, or both, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Vec<String>>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

impl UiToolMeta {
    /// Whether the model may call the tool.
    pub fn is_for_model(&self) -> bool {
        self.is_for("model")
    }

    /// Whether apps of the same server may call the tool.
    pub fn is_for_app(&self) -> bool {
        self.is_for("app")
    }

    fn is_for(&self, who: &str) -> bool {
        self.visibility.as_ref().is_none_or(|all| all.iter().any(|it| it == who))
    }
}

impl Tool {
    /// What the tool says about its app, in either spelling; `None` if it says nothing.
    pub fn ui(&self) -> Option<UiToolMeta> {
        let meta = self.meta.as_ref()?;
        let flat = || meta.read::<String>(FLAT_META_KEY);
        match meta.read::<UiToolMeta>(META_KEY) {
            Some(mut ui) => {
                ui.resource_uri = ui.resource_uri.or_else(flat);
                Some(ui)
            }
            None => flat().map(|uri| UiToolMeta { resource_uri: Some(uri), ..Default::default() }),
        }
    }

    /// Sets what the tool says about its app, in both spellings.
    pub fn set_ui(&mut self, ui: &UiToolMeta) {
        let meta = self.meta.get_or_insert_default();
        meta.set(META_KEY, ui);
        if let Some(uri) = &ui.resource_uri {
            meta.set(FLAT_META_KEY, uri);
        }
    }
}

/// What an app needs from its host: `_meta.ui` of the resource and of its contents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UiResourceMeta {
    /// The origins that it uses. Hosts block all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csp: Option<UiCsp>,
    /// What it may do besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<UiPermissions>,
    /// The origin that the host should give it. What is valid depends on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Whether it wants a border around it; the host decides if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefers_border: Option<bool>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

/// The origins that an app uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UiCsp {
    /// For `fetch`, `XMLHttpRequest` and `WebSocket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_domains: Option<Vec<String>>,
    /// For scripts, styles, images, fonts and media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_domains: Option<Vec<String>>,
    /// For frames within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_domains: Option<Vec<String>>,
    /// For `<base>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_uri_domains: Option<Vec<String>>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

impl UiCsp {
    /// All origins, each with the name of its list.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let lists = [
            ("connectDomains", &self.connect_domains),
            ("resourceDomains", &self.resource_domains),
            ("frameDomains", &self.frame_domains),
            ("baseUriDomains", &self.base_uri_domains),
        ];
        lists
            .into_iter()
            .flat_map(|(name, list)| list.iter().flatten().map(move |it| (name, it.as_str())))
    }

    /// What is wrong with the first origin that is not one.
    pub fn problem(&self) -> Option<String> {
        self.problems().next()
    }

    /// What is wrong with each origin that is not one.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.sources().filter_map(|(list, source)| {
            let reason = check_source(source).err()?;
            Some(format!("csp.{list}: {source:?} {reason}"))
        })
    }
}

/// What an app may do if the user and the host permit it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UiPermissions {
    /// Use the camera.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera: Option<Extra>,
    /// Use the microphone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microphone: Option<Extra>,
    /// Know where the user is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geolocation: Option<Extra>,
    /// Write to the clipboard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipboard_write: Option<Extra>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

fn resource_ui(meta: Option<&Meta>) -> Option<UiResourceMeta> {
    meta?.read(META_KEY)
}

impl Resource {
    /// Whether it is an app, by its type.
    pub fn is_app(&self) -> bool {
        self.mime_type.as_deref() == Some(MIME_TYPE)
    }

    /// What the app needs from its host, as listed. What its contents say takes precedence.
    pub fn ui(&self) -> Option<UiResourceMeta> {
        resource_ui(self.meta.as_ref())
    }
}

impl ResourceContents {
    /// What the app needs from its host.
    pub fn ui(&self) -> Option<UiResourceMeta> {
        resource_ui(self.meta.as_ref())
    }
}

impl fmt::Display for UiCsp {
    /// One list per word, for people: `connect https://a.example, frame https://b.example`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (list, source)) in self.sources().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}{} {source}", list.trim_end_matches("Domains"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tool(meta: &Value) -> Tool {
        let tool = json!({ "name": "t", "inputSchema": { "type": "object" }, "_meta": meta });
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn both_spellings_are_read_and_the_nested_one_takes_precedence() {
        for (meta, expected) in [
            (json!({}), None),
            (json!({ "ui": {} }), Some(None)),
            (json!({ "ui": { "resourceUri": "ui://a" } }), Some(Some("ui://a"))),
            (json!({ "ui/resourceUri": "ui://b" }), Some(Some("ui://b"))),
            (json!({ "ui": {}, "ui/resourceUri": "ui://b" }), Some(Some("ui://b"))),
            (
                json!({ "ui": { "resourceUri": "ui://a" }, "ui/resourceUri": "ui://b" }),
                Some(Some("ui://a")),
            ),
            (json!({ "ui": 3, "ui/resourceUri": "ui://b" }), Some(Some("ui://b"))),
            (json!({ "ui": { "resourceUri": 3 } }), None),
        ] {
            let ui = tool(&meta).ui();
            let uri = ui.as_ref().map(|it| it.resource_uri.as_deref());
            assert_eq!(uri, expected, "{meta}");
        }
    }

    #[test]
    fn both_spellings_are_written() {
        let mut own = tool(&json!({}));
        let ui = UiToolMeta { resource_uri: Some("ui://a".to_owned()), ..Default::default() };
        own.set_ui(&ui);
        let meta = serde_json::to_value(own.meta.as_ref().unwrap()).unwrap();
        let expected = json!({ "ui": { "resourceUri": "ui://a" }, "ui/resourceUri": "ui://a" });
        assert_eq!(meta, expected);
        assert_eq!(own.ui(), Some(ui));
    }

    #[test]
    fn a_tool_is_for_both_unless_it_says_otherwise() {
        for (ui, for_model, for_app) in [
            (json!({}), true, true),
            (json!({ "visibility": ["model", "app"] }), true, true),
            (json!({ "visibility": ["app"] }), false, true),
            (json!({ "visibility": ["model"] }), true, false),
            (json!({ "visibility": [] }), false, false),
        ] {
            let read = tool(&json!({ "ui": ui })).ui().unwrap();
            assert_eq!((read.is_for_model(), read.is_for_app()), (for_model, for_app), "{ui}");
        }
    }

    #[test]
    fn clients_show_apps_if_they_declare_the_extension_with_the_type() {
        for (capabilities, shows) in [
            (json!({}), false),
            (json!({ "extensions": { "com.example/ui": {} } }), false),
            (json!({ "extensions": { ID: {} } }), true),
            (json!({ "extensions": { ID: client_settings() } }), true),
            (json!({ "extensions": { ID: { "mimeTypes": [] } } }), false),
            (json!({ "extensions": { ID: { "mimeTypes": ["text/html"] } } }), false),
        ] {
            let read: ClientCapabilities = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(read.shows_apps(), shows, "{capabilities}");
        }
    }

    #[test]
    fn a_policy_names_each_source_that_is_wrong() {
        let csp: UiCsp = serde_json::from_value(json!({
            "connectDomains": ["https://a.example", "b.example"],
            "frameDomains": ["https://c.example/path"],
        }))
        .unwrap();
        let problems: Vec<_> = csp.problems().collect();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("csp.connectDomains: \"b.example\" "), "{problems:?}");
        assert!(problems[1].starts_with("csp.frameDomains: "), "{problems:?}");
        let shown = "connect https://a.example, connect b.example, frame https://c.example/path";
        assert_eq!(csp.to_string(), shown);
    }
}
