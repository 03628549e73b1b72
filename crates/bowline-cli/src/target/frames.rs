//! What a frame-level client needs to reach a server: how to start it, what to send with each
//! request, and where to record its frames.

use std::sync::Arc;

use bowline_check::frames::{Direction, Recipe, Tap};
use bowline_web::Authorize;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Location, Resolved};
use crate::failure::Failure;
use crate::record::Way;
use crate::session::note;

impl Resolved {
    /// How to start it, if it is a command.
    pub(crate) fn recipe(&self) -> Option<Recipe> {
        let Location::Command { program, args, env, cwd } = &self.location else { return None };
        let (program, args, env) = (program.clone(), args.clone(), env.clone());
        Some(Recipe { program, args, env, directory: cwd.clone() })
    }

    /// The headers of each request to its URL.
    ///
    /// # Errors
    /// When one of them is not valid.
    pub(crate) fn header_map(&self) -> Result<HeaderMap, Failure> {
        let mut map = HeaderMap::new();
        if let Location::Url { headers, .. } = &self.location {
            for (name, value) in headers {
                let header = HeaderName::try_from(name.as_str()).ok();
                let header = header.zip(HeaderValue::from_str(value).ok());
                let invalid = || Failure::usage(format!("{name:?}: not a valid header"));
                let (name, value) = header.ok_or_else(invalid)?;
                map.append(name, value);
            }
        }
        Ok(map)
    }

    /// The stored login for its URL, to sign requests with.
    pub(crate) fn authorize(&self) -> Option<Arc<dyn Authorize>> {
        self.login().map(|login| Arc::new(login) as Arc<dyn Authorize>)
    }
}

/// Passes every frame to the session's journal.
pub(crate) fn tap() -> Tap {
    Tap::new(|direction, bytes, connection| {
        let way = match direction {
            Direction::Sent => Way::Sent,
            Direction::Received => Way::Received,
        };
        note(way, bytes, connection);
    })
}
