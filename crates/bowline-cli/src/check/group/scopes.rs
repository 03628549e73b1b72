//! Scopes, as far as a server tells of them: to who brings no token, in its metadata, and to who
//! brings a token that is not good for everything.

use bowline::Revision;
use bowline::client::auth::{Challenge, is_scope};
use http::{HeaderMap, StatusCode};

use super::auth::{Gate, knock_as_we_are, shut};
use super::watch::none;
use crate::check::evidence::shorten;
use crate::check::probe::{Outcome, PASS, Probe, Trouble, all_good, broken, skip};
use crate::check::table::Check;
use crate::check::wire::Heard;
use crate::doctor::wants_token;

/// A check of scopes: since challenges name them.
const fn of(check: Check) -> Check {
    check.since(Revision::V2025_11_25).web().page("basic/authorization")
}

pub(super) const CHECKS: &[Check] = &[
    of(Check::must("auth.scope-syntax", "scopes are words with blanks between them", |probe| {
        Box::pin(syntax(probe))
    }))
    .fix("Write scope=\"one two\" in WWW-Authenticate and [\"one\", \"two\"] in scopes_supported: visible ASCII but for \" and \\ (RFC 6749)."),
    of(Check::info("auth.scope-hint", "the 401 says which scopes to ask for", |probe| {
        Box::pin(hint(probe))
    }))
    .fix("Add scope=\"…\" with what a first login needs to WWW-Authenticate: otherwise clients ask for everything in scopes_supported."),
    of(Check::info("auth.scope-listed", "scopes that the 401 asks for are in the metadata", |probe| {
        Box::pin(listed(probe))
    }))
    .fix("Name them in scopes_supported, too, unless they are deliberately not told: some clients and people look only there."),
    of(Check::should("auth.offline-access", "nobody is told to ask for offline_access", |probe| {
        Box::pin(offline_access(probe))
    }))
    .modern()
    .fix("Leave offline_access out of scope and scopes_supported: it is between a client and the authorization server."),
];

/// Told by who watches.
pub(super) const INSUFFICIENT: Check = of(Check::should(
    "auth.insufficient-scope",
    "a token that is not enough is told what is",
    |probe| Box::pin(insufficient(probe)),
))
.fix("Send WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"…\", resource_metadata=\"…\" with the 403, with all scopes that the request needs: clients log in again for them.");

/// The challenge for a token of ours.
fn bearer(headers: &HeaderMap) -> Option<Challenge> {
    Challenge::all(headers).into_iter().find(wants_token)
}

/// What a server tells of scopes to who brings no token.
struct Told {
    /// The parameter of the challenge.
    asked: Option<String>,
    /// What the metadata lists.
    listed: Vec<String>,
}

impl Told {
    /// All of them, the challenge's first.
    fn all(&self) -> impl Iterator<Item = &str> {
        let asked = self.asked.iter().flat_map(|it| it.split(' '));
        asked.chain(self.listed.iter().map(String::as_str))
    }
}

async fn told(probe: &mut Probe) -> Result<Told, Trouble> {
    let gate = shut(probe).await?;
    probe.evidence.extend(gate.evidence.iter().cloned());
    let Gate { headers, discovery, .. } = &*gate;
    let asked = bearer(headers).and_then(|it| it.parameter("scope").map(str::to_owned));
    let listed = discovery.scopes.clone();
    match asked.is_none() && listed.is_empty() {
        true => skip("the server names no scopes"),
        false => Ok(Told { asked, listed }),
    }
}

async fn syntax(probe: &mut Probe) -> Outcome {
    let told = told(probe).await?;
    let mut problems = Vec::new();
    if let Some(asked) = told.asked.filter(|it| !it.split(' ').all(is_scope)) {
        problems.push(format!("scope in WWW-Authenticate is {:?}", shorten(&asked, 160)));
    }
    for scope in told.listed.iter().filter(|it| !is_scope(it)) {
        problems.push(format!("scopes_supported has {:?}", shorten(scope, 160)));
    }
    all_good(problems)
}

async fn hint(probe: &mut Probe) -> Outcome {
    match told(probe).await?.asked {
        Some(_) => PASS,
        None => broken("scopes_supported has entries, and WWW-Authenticate has no scope"),
    }
}

async fn listed(probe: &mut Probe) -> Outcome {
    let Told { asked, listed } = told(probe).await?;
    let Some(asked) = asked else { return skip("the 401 asks for no scope") };
    if listed.is_empty() {
        return skip("the metadata lists no scopes");
    }
    let is_missing = |word: &&str| !listed.iter().any(|it| it == word);
    let missing = asked.split(' ').filter(is_missing);
    all_good(
        missing.map(|it| format!("{:?} is not in scopes_supported", shorten(it, 80))).collect(),
    )
}

async fn offline_access(probe: &mut Probe) -> Outcome {
    match told(probe).await?.all().any(|it| it == "offline_access") {
        true => broken("offline_access is among the scopes"),
        false => PASS,
    }
}

async fn insufficient(probe: &mut Probe) -> Outcome {
    if probe.settings.is_barred && probe.settings.has_credentials {
        let heard = knock_as_we_are(probe).await?;
        probe.seen.refusal(&heard);
    }
    match &probe.seen.scopes {
        None => skip("no request was refused for want of a scope"),
        Some(problems) => none(problems, "refusals do not say it"),
    }
}

/// What is wrong with a refusal for want of a scope; `None` if it is another one.
pub(in crate::check) fn problem_of(heard: &Heard) -> Option<Result<(), String>> {
    if heard.status != Some(StatusCode::FORBIDDEN) {
        return None;
    }
    let challenge = bearer(&heard.headers)?;
    let mut problems = Vec::new();
    match challenge.parameter("error") {
        Some("insufficient_scope") => {}
        Some(other) => problems.push(format!("error is {:?}", shorten(other, 80))),
        None => problems.push("error is missing".to_owned()),
    }
    match challenge.parameter("scope") {
        Some(scope) if scope.split(' ').all(is_scope) => {}
        Some(other) => problems.push(format!("scope is {:?}", shorten(other, 160))),
        None => problems.push("scope is missing".to_owned()),
    }
    if challenge.parameter("resource_metadata").is_none() {
        problems.push("resource_metadata is missing".to_owned());
    }
    Some(if problems.is_empty() { Ok(()) } else { Err(problems.join(", ")) })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::WWW_AUTHENTICATE;

    use super::*;

    fn check(status: u16, challenge: &'static str, expected: Option<Result<(), &str>>) {
        let mut heard = Heard { status: StatusCode::from_u16(status).ok(), ..Heard::default() };
        heard.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        let expected = expected.map(|it| it.map_err(str::to_owned));
        assert_eq!(problem_of(&heard), expected, "{challenge}");
    }

    #[test]
    fn refusals_for_want_of_a_scope() {
        let good = "Bearer error=\"insufficient_scope\", scope=\"a b:c\", resource_metadata=\"x\"";
        check(403, good, Some(Ok(())));
        check(401, good, None);
        check(403, "Basic realm=\"x\"", None);
        check(
            403,
            "DPoP error=\"invalid_token\", scope=\"a\", resource_metadata=\"x\"",
            Some(Err("error is \"invalid_token\"")),
        );
        check(
            403,
            "Bearer error=\"insufficient_scope\", scope=\"a, b\\\\\", resource_metadata=\"x\"",
            Some(Err("scope is \"a, b\\\\\"")),
        );
        check(
            403,
            "Bearer",
            Some(Err("error is missing, scope is missing, resource_metadata is missing")),
        );
    }
}
