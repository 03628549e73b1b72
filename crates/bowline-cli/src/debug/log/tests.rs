//! Logs that are written, filtered and forgotten.

use super::*;

fn journal() -> Log {
    let mut journal = Log::default();
    let said = [
        (
            Channel::Sent,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#,
        ),
        (Channel::Received, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#),
        (Channel::Stderr, "watch out\u{1b}[2J"),
        (Channel::Received, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#),
        (Channel::Sent, r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#),
        (Channel::Received, r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#),
    ];
    for (number, (from, text)) in (1_u64..).zip(said) {
        journal.add(Duration::from_millis(number * 1500), from, text);
    }
    journal
}

fn check(filter: &str, expected: &[u64]) {
    let words: Vec<String> = filter.split_whitespace().map(str::to_owned).collect();
    let journal = journal();
    let found = journal.filtered(&words);
    let numbers: Vec<u64> = found.into_iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, expected, "{filter}");
}

#[test]
fn filters_say_who_what_and_how_many() {
    check("", &[1, 2, 3, 4, 5, 6]);
    check("2", &[5, 6]);
    check("sent", &[1, 5]);
    check("received", &[2, 4, 6]);
    check("stderr", &[3]);
    check("requests", &[1, 4]);
    check("received requests", &[4]);
    check("notifications", &[2]);
    check("answers", &[5, 6]);
    check("errors", &[6]);
    // Answers are found by what they answer.
    check("tools/call", &[1, 6]);
    check("tools/call echo", &[1]);
    check("nowhere", &[]);
}

#[test]
fn summaries_tell_which_question_was_answered() {
    let journal = journal();
    let summary = |number| journal.find(number).unwrap().summary();
    assert_eq!(summary(1), "#1 +1.500s → tools/call echo (id 1), 71 bytes");
    assert_eq!(summary(3), "#3 +4.500s ! watch out\\u{1b}[2J");
    assert_eq!(summary(5), "#5 +7.500s → result of roots/list (id 1), 46 bytes");
    assert_eq!(summary(6), "#6 +9.000s ← error of tools/call (id 1), 58 bytes");
    assert!(journal.find(0).is_none() && journal.find(7).is_none());
}

#[test]
fn old_entries_are_forgotten() {
    let mut journal = Log::default();
    for _ in 0..MOST_ENTRIES + 5 {
        journal.add(Duration::ZERO, Channel::Stderr, "x");
    }
    assert!(journal.find(5).is_none());
    assert_eq!(journal.find(6).map(|entry| entry.number), Some(6));
    let long = "x".repeat(MOST_BYTES);
    journal.add(Duration::ZERO, Channel::Stderr, &long);
    assert_eq!((journal.entries.len(), journal.bytes), (1, MOST_BYTES));
}
