//! The files of the page, as they are in `web/`.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path: `/page.js`.
    pub path: &'static str,
    /// Its media type.
    pub media: &'static str,
    /// What is in it.
    pub text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($name:literal, $media:expr) => {
        Asset {
            path: concat!("/", $name),
            media: $media,
            text: include_str!(concat!("../web/", $name)),
        }
    };
}

const ASSETS: &[Asset] = &[
    file!("index.html", "text/html; charset=utf-8"),
    file!("style.css", "text/css; charset=utf-8"),
    file!("icon.svg", "image/svg+xml"),
    file!("page.js", SCRIPT),
    file!("program.js", SCRIPT),
    file!("store.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("json.js", SCRIPT),
    file!("schema.js", SCRIPT),
    file!("field.js", SCRIPT),
    file!("form.js", SCRIPT),
    file!("content.js", SCRIPT),
    file!("markdown.js", SCRIPT),
    file!("connect.js", SCRIPT),
    file!("catalog.js", SCRIPT),
    file!("call.js", SCRIPT),
    file!("ask.js", SCRIPT),
    file!("copies.js", SCRIPT),
    file!("question.js", SCRIPT),
    file!("session.js", SCRIPT),
    file!("wire.js", SCRIPT),
    file!("logs.js", SCRIPT),
    file!("check.js", SCRIPT),
    file!("login.js", SCRIPT),
    file!("task.js", SCRIPT),
    file!("skill.js", SCRIPT),
    file!("recorded.js", SCRIPT),
    file!("rules.js", SCRIPT),
    file!("app.js", SCRIPT),
    file!("palette.js", SCRIPT),
    file!("uri.js", SCRIPT),
];

/// All files of the page.
#[must_use]
pub fn assets() -> &'static [Asset] {
    ASSETS
}

pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    let path = if path == "/" { "/index.html" } else { path };
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        let total: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(total < 300_000, "{total} bytes");
        for asset in ASSETS {
            for call in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!asset.text.contains(call), "{}: {call}", asset.path);
            }
        }
        let html = find("/").unwrap().text;
        assert!(!html.contains("style=") && !html.contains("http"), "{html}");
        // Modules that are named here are fetched side by side, not one after the other.
        for asset in ASSETS.iter().filter(|asset| asset.media == SCRIPT) {
            assert!(html.contains(&format!("=\"{}\"", asset.path)), "{}", asset.path);
        }
    }

    #[test]
    fn nothing_but_the_files_is_found() {
        for path in ["", "/../Cargo.toml", "/index", "//", "/page.js/"] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
