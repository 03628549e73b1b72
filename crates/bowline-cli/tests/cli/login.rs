//! Logging in once admits every later command.

use std::io::Write;
use std::process::Stdio;

use crate::authority::{CODE, Person, TOKEN, authorization_server, protected};
use crate::fixture::{Folder, program, said};

#[test]
fn a_login_is_stored_used_and_deleted() {
    let home = Folder::new();
    let issuer = authorization_server(Person::Agrees);
    let url = protected(&issuer.url());

    let told = said(program(&home).args(["call", &url, "hello"]));
    assert_eq!(told.code, Some(3), "{}", told.err);
    assert!(told.err.contains(&format!("bowline login {url}")), "{}", told.err);
    assert!(issuer.asked().is_empty(), "{:?}", issuer.asked());

    let mut login = program(&home);
    login.args(["login", "--paste", &url]).stdin(Stdio::piped());
    let mut child = login.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"the-code\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, format!("logged in to {url}\n"), "{err}");
    assert!(err.contains(&format!("{}/authorize?", issuer.url())), "{err}");

    let session = home.path().join("session.ndjson");
    let told = said(program(&home).args(["call", &url, "hello", "--record"]).arg(&session));
    assert_eq!((told.out.as_str(), told.code), ("let in\n", Some(0)), "{}", told.err);
    assert!(!std::fs::read_to_string(&session).unwrap().contains(TOKEN));
    let told = said(program(&home).args(["call", "-v", &url, "hello"]));
    assert!(told.err.contains("authorization: [redacted]"), "{}", told.err);
    assert!(!told.err.contains(TOKEN), "{}", told.err);

    let told = said(program(&home).args(["logout", &url]));
    assert_eq!(told.out, format!("logged out of {url}\n"), "{}", told.err);
    assert_eq!(said(program(&home).args(["call", &url, "hello"])).code, Some(3));
    let token =
        said(program(&home).env("KEY", TOKEN).args(["call", &url, "hello", "--token-env", "KEY"]));
    assert_eq!(token.out, "let in\n", "{}", token.err);
}

#[test]
fn a_verbose_login_shows_every_leg_without_its_secrets() {
    let home = Folder::new();
    let issuer = authorization_server(Person::Agrees);
    let url = protected(&issuer.url());
    let mut login = program(&home);
    login.args(["login", "-v", "--paste", &url]).stdin(Stdio::piped());
    let mut child = login.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"the-code\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let mut rest = &*told;
    for leg in [
        "HTTP 401",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/register",
        "status 201",
        "/authorize?",
        "/token",
        "grant_type=authorization_code",
        "\"access_token\"",
        "authorization: [redacted]",
        "\"method\":\"tools/list\"",
    ] {
        let at = rest.find(leg).unwrap_or_else(|| panic!("{leg} is missing in {told}"));
        rest = &rest[at..];
    }
    assert!(!told.contains(TOKEN) && !told.contains(&format!("code={CODE}")), "{told}");
}
