//! Tokens that were agreed upon.

use bowline_auth::verify::{Guard, Identity, StaticTokens, Verify, VerifyError};

use crate::world::{RESOURCE, challenges, present};

#[tokio::test]
async fn only_the_very_token_is_good() {
    let tokens = StaticTokens::new()
        .token("first-secret", Identity::new("ci").scope("deploy"))
        .token("second-secret", Identity::new("cron"));
    assert_eq!(tokens.verify("first-secret").await.unwrap().subject, "ci");
    assert_eq!(tokens.verify("second-secret").await.unwrap().subject, "cron");
    for wrong in ["", "first", "first-secret2", "First-secret", "second-secreT", "first-secret "] {
        let error = tokens.verify(wrong).await.unwrap_err();
        assert!(matches!(error, VerifyError::Invalid("the token is unknown")), "{wrong}");
    }
    assert!(StaticTokens::new().verify("").await.is_err());
}

#[tokio::test]
async fn without_an_authorization_server_there_is_nothing_to_lead_to() {
    let tokens = StaticTokens::new().token("secret", Identity::new("ci"));
    let guard = Guard::new(RESOURCE, tokens).unwrap();
    assert_eq!(guard.metadata(), None);
    let denial = present(&guard, "wrong").await.unwrap_err();
    let expected = r#"Bearer error="invalid_token", error_description="the token is unknown""#;
    assert_eq!(challenges(&denial), [expected]);
    assert_eq!(present(&guard, "secret").await.unwrap().subject, "ci");
}
