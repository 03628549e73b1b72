//! The parameters of the redirect: the state, the issuer (RFC 9207), and a code or an error.

use super::error::{AuthError, Reason, Step, quote};
use super::form;
use super::login::Redirected;
use super::secret::Secret;

/// A login that has started. Its callback consumes it: a state is valid once.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) state: Secret,
    /// Recorded before the user is sent anywhere.
    pub(super) issuer: String,
    /// Whether the server promised to name itself in every redirect.
    pub(super) names_issuer: bool,
}

impl Pending {
    /// Returns the code if the callback is valid.
    ///
    /// The issuer is checked before an error is reported: a stranger's text is not passed on.
    pub(super) fn accept(self, redirected: &Redirected) -> Result<Secret, AuthError> {
        let query = match redirected {
            Redirected::Code(code) => return self.accept_code(code.clone()),
            Redirected::Query(query) => query,
        };
        let params = CallbackParams::parse(query)?;
        if params.state.as_deref() != Some(self.state.expose()) {
            let received = params.state.map_or("no state", |_| "another state");
            let expected = "the state that this login started with";
            return Err(failure(Reason::Unsafe, received, expected));
        }
        self.check_issuer(params.iss.as_deref())?;
        match (params.code, params.error) {
            (Some(code), None) if !code.is_empty() => Ok(Secret::new(code)),
            (_, Some(error)) => {
                let text = params.description.map(|text| format!(", {}", quote(&text)));
                let received = format!("error {}{}", quote(&error), text.unwrap_or_default());
                let is_denied = error == "access_denied";
                let reason = if is_denied { Reason::Abandoned } else { Reason::Refused };
                Err(failure(reason, received, "a code").with_code(&error))
            }
            _ => Err(failure(Reason::Broken, "neither a code nor an error", "a code")),
        }
    }

    /// Accepts a code that a user copied by hand: it has neither state nor issuer, and is worthless
    /// without the verifier.
    fn accept_code(self, code: Secret) -> Result<Secret, AuthError> {
        if self.names_issuer {
            let expected = "the whole URL of the page after the login, with `iss`";
            return Err(failure(Reason::Unsafe, "a code alone", expected));
        }
        if code.expose().is_empty() {
            return Err(failure(Reason::Abandoned, "an empty code", "a code"));
        }
        Ok(code)
    }

    fn check_issuer(&self, iss: Option<&str>) -> Result<(), AuthError> {
        let expected = format!("`iss` {}", quote(&self.issuer));
        match iss {
            Some(iss) if iss == self.issuer => Ok(()),
            Some(iss) => Err(failure(Reason::Unsafe, format!("`iss` {}", quote(iss)), expected)),
            None if self.names_issuer => Err(failure(Reason::Unsafe, "no `iss`", expected)),
            None => Ok(()),
        }
    }
}

fn failure(reason: Reason, received: impl Into<String>, expected: impl Into<String>) -> AuthError {
    AuthError::new(Step::Callback, reason, received, expected)
}

#[derive(Default)]
struct CallbackParams {
    state: Option<String>,
    iss: Option<String>,
    code: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl CallbackParams {
    fn parse(query: &str) -> Result<Self, AuthError> {
        let broken = |received| failure(Reason::Broken, received, "a query of names and values");
        let pairs = form::decode(query).ok_or_else(|| broken("a query that cannot be decoded"))?;
        let mut params = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in pairs {
            let slot = match name.as_str() {
                "state" => &mut params.state,
                "iss" => &mut params.iss,
                "error" => &mut params.error,
                "error_description" => &mut params.description,
                "code" => &mut params.code,
                _ => continue,
            };
            *slot = Some(value);
            if seen.contains(&name) {
                return Err(broken("a repeated parameter"));
            }
            seen.push(name);
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://as.example/t";

    fn accept(names_issuer: bool, query: &str) -> Result<Secret, AuthError> {
        let pending = Pending { state: Secret::new("s1"), issuer: ISSUER.to_owned(), names_issuer };
        pending.accept(&Redirected::Query(query.to_owned()))
    }

    #[test]
    fn the_table_of_rfc_9207() {
        fn check(names_issuer: bool, query: &str, expected: Result<&str, &str>) {
            let outcome = accept(names_issuer, query).map_err(|error| error.to_string());
            match (&outcome, expected) {
                (Ok(code), Ok(expected)) => assert_eq!(code.expose(), expected, "{query}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{query}: {error}"),
                _ => panic!("{query}: {outcome:?}"),
            }
        }
        let iss = "iss=https%3A%2F%2Fas.example%2Ft";
        check(true, &format!("code=c&state=s1&{iss}"), Ok("c"));
        check(false, &format!("code=c&state=s1&{iss}"), Ok("c"));
        check(false, "code=c&state=s1", Ok("c"));
        check(true, "code=c&state=s1", Err("received no `iss`"));
        for names in [true, false] {
            check(names, "code=c&state=s1&iss=https://evil.example", Err("https://evil.example"));
            check(names, &format!("code=c&state=s1&{iss}/"), Err("as.example/t/"));
            check(names, "code=c&state=s1&iss=HTTPS://as.example/t", Err("HTTPS"));
            check(names, "code=c&state=s1&iss=", Err("`iss` \"\""));
        }
    }

    #[test]
    fn states_and_errors() {
        fn check(query: &str, reason: Reason, part: &str) {
            let error = accept(false, query).unwrap_err();
            assert_eq!(error.reason(), reason, "{query}");
            assert!(error.to_string().contains(part), "{query}: {error}");
            assert_eq!(error.step(), Step::Callback);
        }
        check("code=c", Reason::Unsafe, "no state");
        check("code=c&state=s2", Reason::Unsafe, "another state");
        check("code=c&state=S1", Reason::Unsafe, "another state");
        check("code=c&state=s1%20", Reason::Unsafe, "another state");
        check("code=c&state=s1&state=s1", Reason::Broken, "repeated");
        check("code=c&code=d&state=s1", Reason::Broken, "repeated");
        check("code=c&state=%zz", Reason::Broken, "cannot be decoded");
        check("state=s1", Reason::Broken, "neither");
        check("state=s1&code=", Reason::Broken, "neither");
        check("state=s1&error=access_denied", Reason::Abandoned, "access_denied");
        check("state=s1&error=server_error&error_description=why", Reason::Refused, "\"why\"");
        check("state=s1&error=x&code=c", Reason::Refused, "error \"x\"");
        check("error=x&error_description=injected", Reason::Unsafe, "no state");
    }

    #[test]
    fn a_stranger_is_not_quoted() {
        let error = accept(false, "state=s1&iss=https://evil&error=x&error_description=call+me");
        assert!(!error.unwrap_err().to_string().contains("call me"));
    }

    #[test]
    fn codes_by_hand() {
        let accept = |names_issuer, code: &str| {
            let pending =
                Pending { state: Secret::new("s"), issuer: ISSUER.to_owned(), names_issuer };
            pending.accept(&Redirected::Code(Secret::new(code)))
        };
        assert_eq!(accept(false, "c").unwrap().expose(), "c");
        assert!(accept(false, "").is_err());
        assert!(accept(true, "c").unwrap_err().to_string().contains("whole URL"));
    }
}
