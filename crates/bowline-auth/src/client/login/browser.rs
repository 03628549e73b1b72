//! The system's browser, and a port of this machine to come back to.

use std::fmt;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::loopback::Catcher;
use super::{AuthorizationUrl, Login, LoginError, Redirected, Visit, Waiting};

/// Opens the login page in the system's browser, and catches the redirect on a loopback port.
///
/// The address is shown on standard error as well: whether a browser came up, only the person
/// knows.
#[derive(Clone)]
pub struct Browser {
    port: u16,
    opens: bool,
    show: Arc<dyn Fn(&AuthorizationUrl) + Send + Sync>,
}

impl Browser {
    /// Opens the browser; comes back to any free port.
    pub fn new() -> Self {
        Self { port: 0, opens: true, show: Arc::new(show_on_stderr) }
    }

    /// Only shows the address, and leaves the opening to the person.
    #[must_use]
    pub fn print(mut self) -> Self {
        self.opens = false;
        self
    }

    /// Comes back to this port, for clients that are registered with it.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Shows addresses with this function instead of standard error.
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
            if self.browser.opens && open(page.as_str()).is_err() {
                tracing::debug!("no browser could be opened");
            }
            let state = page.state().ok_or_else(|| LoginError::from("a page without a state"))?;
            self.catcher.catch(state).await.map(Redirected::Query).map_err(Into::into)
        })
    }
}

fn show_on_stderr(page: &AuthorizationUrl) {
    let text = format!(
        "To log in, go to this address in a browser on this machine:\n\n  {}\n\n",
        page.as_str()
    );
    // If nobody can read it, there is nobody to tell.
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Hands the address to the system as one argument; no shell sees it.
fn open(page: &str) -> io::Result<()> {
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(first).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // Some openers stay as long as the browser: their end is awaited by a thread that may outlive
    // everything else.
    std::thread::spawn(move || drop(child.wait()));
    Ok(())
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Browser");
        shown.field("port", &self.port).field("opens", &self.opens).finish_non_exhaustive()
    }
}
