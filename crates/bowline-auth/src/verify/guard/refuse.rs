//! The responses to rejected requests (RFC 6750, RFC 9449, RFC 9728).

use http::StatusCode;

use super::super::challenge::{Challenge, Denial};
use super::super::dpop;
use super::{Guard, Scheme, WELL_KNOWN};

impl Guard {
    /// The response to a token that lacks scopes. It lists all scopes that the request needs.
    pub fn insufficient_scope(&self, needed: &[String]) -> Denial {
        let mut all: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        for scope in needed {
            if !all.contains(&scope.as_str()) {
                all.push(scope);
            }
        }
        let all = all.join(" ");
        let challenge = |scheme: &str| {
            Challenge::new(scheme)
                .with("error", "insufficient_scope")
                .with("scope", &all)
                .maybe("resource_metadata", self.metadata_url().as_deref())
                .with("error_description", "the token does not allow this")
        };
        let message = format!("the token does not allow this; required scopes: {all}");
        self.challenged(Denial::new(StatusCode::FORBIDDEN, message), challenge)
    }

    pub(super) fn no_token(&self) -> Denial {
        let denial = Denial::new(StatusCode::UNAUTHORIZED, "a token is required");
        self.challenged(denial, |scheme| self.hints(Challenge::new(scheme)))
    }

    pub(super) fn invalid_token(&self, scheme: Scheme, why: &'static str) -> Denial {
        tracing::debug!(why, "token rejected");
        let denial = Denial::new(StatusCode::UNAUTHORIZED, why);
        let explained = |challenge: Challenge| {
            challenge.with("error", "invalid_token").with("error_description", why)
        };
        match scheme {
            Scheme::Dpop => denial.challenge(&self.hints(explained(dpop_challenge()))),
            Scheme::Bearer => {
                self.challenged(denial, |name| self.hints(explained(Challenge::new(name))))
            }
        }
    }

    pub(super) fn invalid_proof(&self, why: &'static str) -> Denial {
        tracing::debug!(why, "proof rejected");
        let challenge = dpop_challenge().with("error", "invalid_dpop_proof");
        let challenge = challenge.with("error_description", why);
        Denial::new(StatusCode::UNAUTHORIZED, why).challenge(&self.hints(challenge))
    }

    pub(super) fn bad_request(&self, why: &'static str) -> Denial {
        let denial = Denial::new(StatusCode::BAD_REQUEST, why);
        self.challenged(denial, |scheme| {
            let challenge = Challenge::new(scheme).with("error", "invalid_request");
            challenge.with("error_description", why)
        })
    }

    /// Adds a challenge for each advertised scheme.
    fn challenged(&self, mut denial: Denial, challenge: impl Fn(&str) -> Challenge) -> Denial {
        if !self.requires_dpop {
            denial = denial.challenge(&challenge("Bearer"));
        }
        if self.offers_dpop {
            let algorithms = dpop::algorithms().join(" ");
            denial = denial.challenge(&challenge("DPoP").with("algs", &algorithms));
        }
        denial
    }

    /// Where to get a token, and for what.
    fn hints(&self, challenge: Challenge) -> Challenge {
        let scopes = self.scopes.join(" ");
        challenge
            .maybe("resource_metadata", self.metadata_url().as_deref())
            .maybe("scope", Some(scopes.as_str()).filter(|scopes| !scopes.is_empty()))
    }

    pub(super) fn wants_nonce(&self) -> Denial {
        let why = "the proof must contain the nonce from DPoP-Nonce";
        let challenge = dpop_challenge().with("error", "use_dpop_nonce");
        let challenge = challenge.with("error_description", why);
        Denial::new(StatusCode::UNAUTHORIZED, why).challenge(&challenge).nonce(&self.dpop.nonce())
    }

    fn metadata_url(&self) -> Option<String> {
        let exists = !self.authorization_servers.is_empty();
        exists.then(|| format!("{}{WELL_KNOWN}{}", self.origin, self.path))
    }
}

fn dpop_challenge() -> Challenge {
    Challenge::new("DPoP").with("algs", &dpop::algorithms().join(" "))
}
