//! Names in nested servers: with a prefix for clients, without it for the handlers.

use std::borrow::Cow;
use std::sync::Arc;

/// The prefixes before a name, innermost first. There is rarely one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nest(Option<Arc<[String]>>);

impl Nest {
    /// The same, nested in one more server.
    pub(crate) fn within(&self, prefix: &str) -> Self {
        let prefixes = self.prefixes().iter().cloned().chain([prefix.to_owned()]);
        Self(Some(prefixes.collect()))
    }

    pub(crate) fn prefixes(&self) -> &[String] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The name with its prefixes.
    pub(crate) fn name<'a>(&self, own: &'a str) -> Cow<'a, str> {
        let mut name = Cow::Borrowed(own);
        for prefix in self.prefixes() {
            name = prefixed(prefix, name);
        }
        name
    }
}

/// `search` becomes `files_search`, and `files_list` stays as it is.
pub(crate) fn prefixed<'a>(prefix: &str, name: Cow<'a, str>) -> Cow<'a, str> {
    let has_it = name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'));
    if has_it { name } else { Cow::Owned(format!("{prefix}_{name}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_each_prefix_once() {
        let files = Nest::default().within("files");
        assert_eq!(Nest::default().name("search"), "search");
        assert_eq!(files.name("search"), "files_search");
        assert_eq!(files.name("files_list"), "files_list");
        assert_eq!(files.name("filesystem"), "files_filesystem");
        assert_eq!(files.within("my").name("search"), "my_files_search");
    }
}
