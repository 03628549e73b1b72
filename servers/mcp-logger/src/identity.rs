//! Who called, as records say it: written by the server, and never by the caller.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bowline::{Context, Transport};
use serde::Deserialize;

use crate::structured_data::StructuredData;

/// When records say who called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Identify {
    /// When the caller is authenticated.
    #[default]
    Principal,
    /// Always, with what is known about the caller.
    Always,
    /// Never.
    Never,
}

/// The caller of a tool.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The name that it is authenticated by.
    pub principal: Option<String>,
    /// How its program introduces itself, which nobody verifies.
    pub client: Option<String>,
    /// The address that its request came from.
    pub address: Option<IpAddr>,
    /// How its request came.
    pub via: &'static str,
}

/// The longest part of a client's name that a record has, in characters.
const MAX_CLIENT: usize = 64;

impl Identity {
    /// The caller of a request.
    pub fn of(context: &Context) -> Self {
        let caller = context.caller();
        let client = caller.info.as_ref().map(|it| format!("{}/{}", it.name, it.version));
        Self {
            principal: caller.principal.as_ref().map(|it| it.as_str().to_owned()),
            client: client.map(|it| it.chars().take(MAX_CLIENT).collect()),
            address: context.peer_addr().map(|it| it.ip()),
            via: match context.transport() {
                Transport::Stdio => "stdio",
                Transport::Http => "http",
                Transport::Memory => "memory",
                _ => "stream",
            },
        }
    }

    /// The element that says so, under this name; nothing if records are not to say it.
    pub fn element(&self, identify: Identify, name: &str) -> StructuredData {
        let is_wanted = match identify {
            Identify::Principal => self.principal.is_some(),
            Identify::Always => true,
            Identify::Never => false,
        };
        if !is_wanted {
            return StructuredData::new();
        }
        let address = self.address.map(|it| it.to_string());
        let parameters: BTreeMap<String, String> = [
            ("principal", self.principal.clone()),
            ("client", self.client.clone()),
            ("address", address),
            ("via", Some(self.via.to_owned())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
        [(name.to_owned(), parameters)].into()
    }
}
