//! Scopes, as far as a server reveals them: in its 401, in its metadata, and in rejections of a
//! token that lacks some.

use bowline::Revision::V2025_11_25;
use bowline::client::auth::{Challenge, is_scope};
use http::{HeaderMap, StatusCode};

use super::auth::{Gate, knock, shut};
use super::watch::none;
use crate::discovery::wants_token;
use crate::observed::Sight;
use crate::probe::{NotPassed, Outcome, Probe, Received, all_good, ensure, skip};
use crate::rule::{Rule, Transport, table};
use crate::text::shorten;

/// Since 2025-11-25, challenges name scopes.
const SCOPES: Rule =
    Rule::group("basic/authorization").since(V2025_11_25).on(&[Transport::Http, Transport::Sse]);

table! { |probe| SCOPES;
    Must "auth.scope-syntax" => syntax(probe),
        "scopes are words separated by single blanks",
        "Write scope=\"one two\" in WWW-Authenticate and [\"one\", \"two\"] in scopes_supported: visible ASCII except \" and \\ (RFC 6749).";
    Info "auth.scope-hint" => hint(probe),
        "the 401 names the scopes to request",
        "Add scope=\"…\" with what a first login needs to WWW-Authenticate: otherwise clients request everything in scopes_supported.";
    Info "auth.scope-listed" => listed(probe),
        "scopes in the 401 are in the metadata, too",
        "Name them in scopes_supported, too, unless they are secret on purpose: some clients and people look only there.";
    Should "auth.offline-access" [.modern()] => offline_access(probe),
        "clients are not told to request offline_access",
        "Leave offline_access out of scope and scopes_supported: it is a matter between client and authorization server.";
}

/// The challenge for an MCP token.
fn bearer(headers: &HeaderMap) -> Option<Challenge> {
    Challenge::all(headers).into_iter().find(wants_token)
}

/// The scopes that a server reveals without a token.
struct Revealed {
    /// In the challenge.
    requested: Option<String>,
    /// In the metadata.
    listed: Vec<String>,
}

async fn revealed(probe: &mut Probe) -> Result<Revealed, NotPassed> {
    let gate = shut(probe).await?;
    probe.evidence.extend(gate.evidence.iter().cloned());
    let Gate { headers, discovery, .. } = &*gate;
    let requested = bearer(headers).and_then(|it| it.parameter("scope").map(str::to_owned));
    let listed = discovery.scopes.clone();
    if requested.is_none() && listed.is_empty() {
        return skip("the server names no scopes");
    }
    Ok(Revealed { requested, listed })
}

async fn syntax(probe: &mut Probe) -> Outcome {
    let Revealed { requested, listed } = revealed(probe).await?;
    let mut problems = Vec::new();
    if let Some(scope) = requested.filter(|it| !it.split(' ').all(is_scope)) {
        problems.push(format!("scope in WWW-Authenticate is {:?}", shorten(&scope, 160)));
    }
    let bad = listed.iter().filter(|it| !is_scope(it));
    problems.extend(bad.map(|it| format!("scopes_supported has {:?}", shorten(it, 160))));
    all_good(problems)
}

async fn hint(probe: &mut Probe) -> Outcome {
    ensure(revealed(probe).await?.requested.is_some(), || {
        "scopes_supported has entries, but WWW-Authenticate has no scope".to_owned()
    })
}

async fn listed(probe: &mut Probe) -> Outcome {
    let Revealed { requested, listed } = revealed(probe).await?;
    let Some(requested) = requested else { return skip("the 401 names no scope") };
    if listed.is_empty() {
        return skip("the metadata lists no scopes");
    }
    let missing = requested.split(' ').filter(|word| !listed.iter().any(|it| it == word));
    all_good(missing.map(|it| format!("{:?} is not in scopes_supported", shorten(it, 80))))
}

async fn offline_access(probe: &mut Probe) -> Outcome {
    let Revealed { requested, listed } = revealed(probe).await?;
    let requested = requested.as_deref().unwrap_or_default();
    let is_there = requested.split(' ').any(|it| it == "offline_access")
        || listed.iter().any(|it| it == "offline_access");
    ensure(!is_there, || "offline_access is among the scopes".to_owned())
}

/// Run by the checks that watch.
pub(super) async fn insufficient(probe: &mut Probe) -> Outcome {
    if probe.settings.is_barred && probe.settings.has_credentials {
        let received = knock(probe, &[]).await?;
        probe.observed.rejection(&received);
    }
    if probe.observed.scope_rejections == 0 {
        return skip("no request was rejected for lack of a scope");
    }
    none(probe, Sight::Scopes, "rejections do not say so").await
}

/// What is wrong with a rejection for lack of scopes; `None` if it is for another reason.
pub(crate) fn problems_of_rejection(received: &Received) -> Option<Vec<String>> {
    if received.status != Some(StatusCode::FORBIDDEN) {
        return None;
    }
    let challenge = bearer(&received.headers)?;
    let mut problems = Vec::new();
    let mut check = |name: &str, is_good: &dyn Fn(&str) -> bool| match challenge.parameter(name) {
        Some(value) if is_good(value) => {}
        Some(other) => problems.push(format!("{name} is {:?}", shorten(other, 160))),
        None => problems.push(format!("{name} is missing")),
    };
    check("error", &|value| value == "insufficient_scope");
    check("scope", &|value| value.split(' ').all(is_scope));
    check("resource_metadata", &|_| true);
    Some(problems)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::WWW_AUTHENTICATE;

    use super::*;

    fn check(status: u16, challenge: &'static str, expected: Option<&[&str]>) {
        let status = StatusCode::from_u16(status).ok();
        let mut received = Received { status, ..Received::default() };
        received.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        let expected = expected.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(problems_of_rejection(&received), expected, "{challenge}");
    }

    #[test]
    fn rejections_for_lack_of_a_scope() {
        let good = "Bearer error=\"insufficient_scope\", scope=\"a b:c\", resource_metadata=\"x\"";
        check(403, good, Some(&[]));
        check(401, good, None);
        check(403, "Basic realm=\"x\"", None);
        check(
            403,
            "DPoP error=\"invalid_token\", scope=\"a\", resource_metadata=\"x\"",
            Some(&["error is \"invalid_token\""]),
        );
        check(
            403,
            "Bearer error=\"insufficient_scope\", scope=\"a, b\\\\\", resource_metadata=\"x\"",
            Some(&["scope is \"a, b\\\\\""]),
        );
        check(
            403,
            "Bearer",
            Some(&["error is missing", "scope is missing", "resource_metadata is missing"]),
        );
    }
}
