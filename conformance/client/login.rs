//! What a user would configure to log in to a protected server: credentials, and how to open the
//! login page. The library does the rest.

use std::error::Error;

use bowline::client::auth::{
    AssertionSource, AuthorizationUrl, Client, Enterprise, Hook, LoginError, OAuth, Redirected,
    SigningKey,
};
use bowline_web::Web;
use serde::Deserialize;

/// The redirect URI that the suite's authorization servers accept.
const REDIRECT: &str = "http://localhost:3000/callback";

/// The URL of this client's metadata document, as the suite knows it.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Credentials that the suite provides for some scenarios.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Given {
    client_id: String,
    client_secret: String,
    private_key_pem: String,
    idp_client_id: String,
    idp_id_token: String,
    idp_token_endpoint: String,
    valid_jwt: String,
}

/// The authorization for a scenario.
pub(super) fn authorization(
    scenario: &str,
    url: &str,
    given: &str,
) -> Result<OAuth, Box<dyn Error>> {
    let given: Given = match given {
        "" => Given::default(),
        given => serde_json::from_str(given)?,
    };
    let client = || Client::new(&given.client_id);
    let oauth = match scenario {
        "auth/client-credentials-jwt" => {
            let key = SigningKey::from_pem(&given.private_key_pem)?;
            OAuth::client_credentials(url, client().private_key(key))
        }
        "auth/client-credentials-basic" => {
            OAuth::client_credentials(url, client().secret(given.client_secret.clone()))
        }
        "auth/enterprise-managed-authorization" => {
            let id_token = AssertionSource::fixed(given.idp_id_token.clone());
            let idp_client = Client::new(&given.idp_client_id);
            let enterprise = Enterprise::new(&given.idp_token_endpoint, idp_client, id_token);
            OAuth::enterprise(url, client().secret(given.client_secret.clone()), enterprise)
        }
        "auth/wif-jwt-bearer" => {
            OAuth::workload(url, client(), AssertionSource::fixed(given.valid_jwt.clone()))
        }
        "auth/pre-registration" => {
            let client = client().secret(given.client_secret.clone());
            OAuth::login(url, Hook::new(REDIRECT, visit)).client(client)
        }
        _ => OAuth::login(url, Hook::new(REDIRECT, visit)).client_id_document(DOCUMENT),
    };
    Ok(oauth.client_name("Bowline conformance").build()?)
}

/// A user who consents to everything: the page redirects immediately.
async fn visit(page: AuthorizationUrl) -> Result<Redirected, LoginError> {
    let request = http::Request::get(page.as_str()).body(bytes::Bytes::new())?;
    let answer = Web::builder().build()?.fetch(request).await?;
    let back =
        answer.headers().get(http::header::LOCATION).ok_or("the login page did not redirect")?;
    Ok(Redirected::at(back.to_str()?))
}
