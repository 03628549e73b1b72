//! The system's browser, and a loopback port for the redirect.

use std::fmt;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::loopback::Catcher;
use super::{AuthorizationUrl, Login, LoginError, Redirected, Visit, Waiting};

/// Opens the login page in a browser, and catches the redirect on a loopback port.
///
/// The browser is the one that the environment variable `BROWSER` names, or else the system's. The
/// URL is also printed on standard error, because only the user knows whether a browser opened.
#[derive(Clone)]
pub struct Browser {
    port: u16,
    opens: bool,
    show: Arc<dyn Fn(&AuthorizationUrl) + Send + Sync>,
}

impl Browser {
    /// Opens the browser, and listens on any free port.
    pub fn new() -> Self {
        Self { port: 0, opens: true, show: Arc::new(show_on_stderr) }
    }

    /// Only prints the URL; the user opens it.
    #[must_use]
    pub fn print(mut self) -> Self {
        self.opens = false;
        self
    }

    /// Listens on this port, for clients that are registered with it.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Shows URLs with this function instead of printing them on standard error.
    #[must_use]
    pub fn show(mut self, show: impl Fn(&AuthorizationUrl) + Send + Sync + 'static) -> Self {
        self.show = Arc::new(show);
        self
    }
}

impl Default for Browser {
    fn default() -> Self {
        Self::new()
    }
}

impl Login for Browser {
    fn begin(&self) -> Waiting<'_, Box<dyn Visit>> {
        Box::pin(async move {
            let catcher = Catcher::bind(self.port).await?;
            Ok(Box::new(BrowserVisit { catcher, browser: self.clone() }) as Box<dyn Visit>)
        })
    }
}

struct BrowserVisit {
    catcher: Catcher,
    browser: Browser,
}

impl Visit for BrowserVisit {
    fn redirect_uri(&self) -> &str {
        self.catcher.redirect_uri()
    }

    fn finish(self: Box<Self>, page: AuthorizationUrl) -> Waiting<'static, Redirected> {
        Box::pin(async move {
            (self.browser.show)(&page);
            if self.browser.opens && open_page(page.as_str()).is_err() {
                tracing::debug!("cannot open a browser");
            }
            let state =
                page.state().ok_or_else(|| LoginError::from("the login page has no state"))?;
            self.catcher.catch(state).await.map(Redirected::Query).map_err(Into::into)
        })
    }
}

fn show_on_stderr(page: &AuthorizationUrl) {
    let text = format!(
        "To log in, open this URL in a browser on this machine:\n\n  {}\n\n",
        page.as_str()
    );
    // Without standard error there is nobody to tell.
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Opens a page in the browser that `BROWSER` names, or in the system's: passes the URL to the
/// first one that starts, as one argument and without a shell.
///
/// # Errors
/// When none starts.
pub fn open_page(page: &str) -> io::Result<()> {
    // Paths of Windows have colons of their own.
    let named = if cfg!(windows) { None } else { std::env::var("BROWSER").ok() };
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for words in browsers(named.as_deref().unwrap_or_default(), page) {
        match start(&words) {
            Ok(mut child) => {
                // Some openers run as long as the browser, so a detached thread waits for them.
                std::thread::spawn(move || drop(child.wait()));
                return Ok(());
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The commands that may open a page: those in `BROWSER`, then the system's. Commands are separated
/// by colons; `%s` in one is replaced with the page, which otherwise comes last.
fn browsers(named: &str, page: &str) -> Vec<Vec<String>> {
    let system: &[&str] = if cfg!(target_os = "macos") {
        &["open"]
    } else if cfg!(windows) {
        &["rundll32", "url.dll,FileProtocolHandler"]
    } else {
        &["xdg-open"]
    };
    let named = named.split(':').map(|it| it.split_whitespace().collect::<Vec<_>>());
    let all = named.filter(|words| !words.is_empty()).chain([system.to_vec()]);
    all.map(|words| {
        let has_placeholder = words.iter().any(|word| word.contains("%s"));
        let end = if has_placeholder { None } else { Some(page.to_owned()) };
        words.iter().map(|word| word.replace("%s", page)).chain(end).collect()
    })
    .collect()
}

fn start(words: &[String]) -> io::Result<Child> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C in our terminal is not meant for the browser.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Browser");
        shown.field("port", &self.port).field("opens", &self.opens).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(windows))]
    fn the_environment_names_browsers_before_the_system() {
        let system = if cfg!(target_os = "macos") { "open P" } else { "xdg-open P" };
        for (named, expected) in [
            ("", &[system][..]),
            ("firefox", &["firefox P", system]),
            ("firefox --new-tab %s:w3m", &["firefox --new-tab P", "w3m P", system]),
            (": :env page=%s x:", &["env page=P x", system]),
        ] {
            let found: Vec<String> = browsers(named, "P").iter().map(|it| it.join(" ")).collect();
            assert_eq!(found, expected, "{named:?}");
        }
    }

    #[test]
    fn an_address_stays_one_word() {
        let page = "https://a.example/?a=1&b=%s $(x) 'y'";
        let all = browsers("b --at=%s", page);
        assert_eq!(all[0], ["b", "--at=https://a.example/?a=1&b=%s $(x) 'y'"]);
        assert_eq!(all.last().unwrap().last().unwrap(), page);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_interrupt_of_ours_does_not_reach_the_browser() {
        let mut child = start(&["sleep".to_owned(), "60".to_owned()]).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Of a group of its own it is the first.
        let group = stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap();
        assert_eq!(group, child.id().to_string());
    }
}
