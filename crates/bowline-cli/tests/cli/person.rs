//! In a terminal, the person who calls a tool answers what the server asks.

use crate::fixture::{Folder, program, said, url};
use crate::typed::Typed;

fn call(home: &Folder, words: &[&str]) -> Typed {
    let url = url("asks");
    let all: Vec<&str> = ["call", url.as_str()].into_iter().chain(words.iter().copied()).collect();
    Typed::start(home, home.path(), &all)
}

#[test]
fn forms_addresses_and_samples_are_asked_for() {
    let home = Folder::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut asked = call(&home, &["name", "--revision", revision]);
        asked.expect("The server asks: Who are you?");
        asked.expect("Answer: yes, decline, cancel? ");
        asked.enter("perhaps");
        asked.expect("expected yes, decline or cancel, got \"perhaps\"");
        asked.enter("yes");
        asked.expect("name (string, required): ");
        asked.enter("Ada");
        asked.expect("Hello, Ada!");
        assert_eq!(asked.end().0, Some(0));

        let mut asked = call(&home, &["pay", "--revision", revision]);
        asked.expect("and wants you to visit: https://example.com/pay");
        asked.expect("I will go there: ");
        asked.enter("d");
        asked.expect("Declined");
        assert_eq!(asked.end().0, Some(0));

        let mut asked = call(&home, &["sample", "--revision", revision]);
        asked.expect("The server asks the model:");
        asked.expect("reply (text, ");
        asked.enter("forty-two");
        asked.expect("says forty-two");
        assert_eq!(asked.end().0, Some(0));
    }
}

#[test]
fn the_end_of_the_input_cancels() {
    let home = Folder::new();
    let mut asked = call(&home, &["pay"]);
    asked.expect("I will go there: ");
    asked.enter("\u{4}");
    asked.expect("Cancelled");
    assert_eq!(asked.end().0, Some(0));
}

#[test]
fn an_interrupt_ends_the_question() {
    let home = Folder::new();
    let mut asked = call(&home, &["name"]);
    asked.expect("Answer: yes, decline, cancel? ");
    asked.enter("\u{3}");
    let (code, shown) = asked.end();
    assert_eq!(code, Some(130), "{shown}");
}

#[test]
fn without_a_terminal_the_option_that_answers_is_named() {
    let home = Folder::new();
    for (tool, option) in [
        ("name", "--answer FILE answers, --accept takes the defaults"),
        ("pay", "in a terminal, you are asked"),
        ("sample", "--answer FILE answers for a model"),
        ("roots", "--root DIR offers a folder"),
    ] {
        let told = said(program(&home).args(["call", &url("asks"), tool]));
        assert_eq!(told.code, Some(7), "{tool} {}", told.err);
        assert!(told.err.contains(option), "{tool} {}", told.err);
    }
}

#[test]
fn accepted_is_said_only_of_what_was_sent() {
    let home = Folder::new();
    let told = said(program(&home).args(["call", &url("asks"), "name", "--accept"]));
    assert_eq!(told.code, Some(7));
    assert!(!told.err.contains("→ accepted"), "{}", told.err);
    assert!(told.err.contains("does not fit the form: content.name is missing"), "{}", told.err);
}
