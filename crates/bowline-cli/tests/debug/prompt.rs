//! A person at the prompt.

use super::PROGRAM;
use super::server::example;
use super::terminal::{Home, Terminal};

const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";
const TAB: &str = "\t";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

/// A session with the example `everything`, in an era.
fn everything(era: &str, home: &Home) -> Terminal {
    let terminal = Terminal::start(&["--revision", era, "--", &example("everything")], home);
    terminal.expect(&format!("({era} era)"));
    terminal.expect_last_row("everything>");
    terminal
}

fn nasty(era: &str, home: &Home) -> Terminal {
    let terminal = Terminal::start(&["--", &example("nasty"), era], home);
    terminal.expect(&format!("({era} era)"));
    terminal
}

#[test]
fn lines_are_typed_edited_and_answered() {
    let home = Home::new();
    let terminal = everything("modern", &home);
    terminal.press("ecko(message: 'h i')");
    terminal.press(&LEFT.repeat("ko(message: 'h i')".len() - 1));
    terminal.press("\x7fh");
    terminal.expect_last_row("everything> echo(message: 'h i')");
    terminal.check("", "\nh i\n");
    // Pasted text is typed, and a tab in it completes nothing.
    terminal.press("\x1b[200~echo(message: 'pasted\ttext')\r\x1b[201~");
    terminal.expect("\npasted text\n");
    // Every way to call a tool.
    terminal.check("echo {\"message\": \"as JSON\"}", "\nas JSON\n");
    terminal.check("call echo message='by words'", "\nby words\n");
    terminal.check("structured(a: 1, b: 2)", "\"total\": 3");
    terminal.check("failing()", "(the tool says that it failed)");
    terminal.check("tools stru", "Adds two numbers and answers with data");
    assert!(!terminal.screen().contains("listChanged"), "{}", terminal.screen());
    terminal.check("describe structured", "The first number.");
    terminal.check("resources", "test://static");
    terminal.check("read test://static", "always the same");
    terminal.check("prompt greet name=Ada", "Greet Ada in a Friendly way.");
    terminal.check("ping", "answered in");
    terminal.check("dance", "neither a command nor a tool");
    terminal.check("statsu", "did you mean status");
    terminal.check("help set", "log-level");
    terminal.check("set log-level error", "log-level error");
    terminal.check("logging()", "a message of level emergency");
    terminal.enter("quit");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn tab_completes_words_tools_arguments_and_what_the_server_knows() {
    let home = Home::new();
    for era in ["legacy", "modern"] {
        let terminal = everything(era, &home);
        terminal.press(&format!("sta{TAB}"));
        terminal.expect_last_row("everything> status");
        terminal.press(&format!("\x15stru{TAB}"));
        terminal.expect_last_row("everything> structured(");
        terminal.press(TAB);
        terminal.expect("a:  b:");
        terminal.press(&format!("\x15prompt greet name=a{TAB}"));
        terminal.expect("ada  alan");
        terminal.press(&format!("l{TAB}"));
        terminal.expect_last_row("everything> prompt greet name=alan");
        terminal.press(&format!("\x15read test://users/g{TAB}"));
        terminal.expect_last_row("everything> read test://users/grace");
        terminal.check("", "user grace");
        terminal.press(CTRL_D);
        assert_eq!(terminal.end(), Some(0), "{era}");
    }
}

#[test]
fn lines_come_back_in_this_session_and_the_next_and_secrets_do_not() {
    let home = Home::new();
    let terminal = everything("modern", &home);
    terminal.check("echo(message: first)", "\nfirst\n");
    terminal.check("echo(message: my-token)", "\nmy-token\n");
    terminal.press(UP);
    terminal.expect_last_row("everything> echo(message: my-token)");
    terminal.press(UP);
    terminal.expect_last_row("everything> echo(message: first)");
    terminal.press("\x15quit\r");
    assert_eq!(terminal.end(), Some(0));
    let terminal = everything("modern", &home);
    terminal.press(&format!("{UP}{UP}"));
    terminal.expect_last_row("everything> echo(message: first)");
    // A search finds it too.
    terminal.press("\x15\x12mess");
    terminal.expect("(search \"mess\")");
    terminal.check("", "\nfirst\n");
    let file = home.path().join("state").join("bowline").join("debug-history");
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(kept.contains("first") && !kept.contains("token"), "{kept}");
}

#[test]
fn ctrl_c_cancels_a_call_and_the_session_goes_on() {
    let home = Home::new();
    for era in ["legacy", "modern"] {
        let terminal = everything(era, &home);
        terminal.enter("wait()");
        terminal.expect("Ctrl-C cancels");
        terminal.press(CTRL_C);
        terminal.expect("cancelled wait");
        // The cancellation was sent before the next request.
        terminal.check("ping", "answered in");
        terminal.check("log sent notifications 1", "notifications/cancelled");
        // A background call is listed, and can be cancelled by number.
        terminal.check("wait() &", "runs in the background");
        terminal.check("echo(message: meanwhile)", "\nmeanwhile\n");
        terminal.check("status", "tools/call (id ");
        terminal.check("cancel", "cancelled 1");
        // A foreground call can be sent to the background.
        terminal.enter("wait()");
        terminal.expect("Ctrl-C cancels");
        terminal.press(CTRL_Z);
        terminal.expect("goes on in the background");
        terminal.check("echo(message: 'also now')", "\nalso now\n");
        // On an empty line, Ctrl-C says how to quit, and does not quit.
        terminal.press(CTRL_C);
        terminal.press(CTRL_C);
        terminal.expect("Ctrl-D ends the session");
        terminal.press("half a line");
        terminal.press(CTRL_C);
        terminal.expect_last_row("everything>");
        terminal.press(CTRL_D);
        assert_eq!(terminal.end(), Some(0), "{era}");
    }
}

#[test]
fn a_server_that_dies_is_reported_and_restarted() {
    let home = Home::new();
    for era in ["legacy", "modern"] {
        let terminal = nasty(era, &home);
        terminal.check("call echo text=before", "\nbefore\n");
        terminal.enter("exit()");
        terminal.expect("stderr │ fatal: disk on fire");
        terminal.expect("the server ended: exit status: 7");
        terminal.expect("`restart` starts it again");
        terminal.expect_last_row("(not connected)>");
        terminal.check("status", "closed");
        terminal.expect("exit status: 7");
        terminal.check("call echo text=late", "the connection ended");
        terminal.check("restart", "connected to");
        terminal.check("call echo text=after", "\nafter\n");
        terminal.check("status", "ready, restarted once");
        terminal.enter("quit");
        assert_eq!(terminal.end(), Some(0), "{era}");
    }
}

#[test]
fn a_server_that_cannot_start_leaves_a_session_that_can_retry() {
    let home = Home::new();
    let terminal = Terminal::start(&["--", "/nowhere/at/all"], &home);
    terminal.expect("cannot start");
    terminal.check("status", "none");
    terminal.check("echo()", "there is no connection");
    terminal.check("restart", "cannot start");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_server_that_asks_is_answered_at_the_prompt() {
    let home = Home::new();
    for era in ["legacy", "modern"] {
        let terminal = everything(era, &home);
        terminal.enter("elicit()");
        terminal.expect("What would you like?");
        terminal.check("yes", "name (string, required): ");
        terminal.check("Ada", "count (integer, required): ");
        terminal.check("300", "count");
        terminal.check("2", "  1 small");
        terminal.expect("size (one of, required): ");
        terminal.press(&format!("la{TAB}"));
        terminal.expect_last_row("size (one of, required): large");
        terminal.check("", "express (boolean, optional): ");
        terminal.check("", "answered");
        terminal.expect("\nAda: 2 Large false\n");
        terminal.enter("elicit()");
        terminal.expect("What would you like?");
        terminal.check("decline", "\ndeclined\n");
        terminal.enter("elicit()");
        terminal.expect("What would you like?");
        terminal.press(CTRL_C);
        terminal.expect("\ncancelled\n");
        terminal.enter("elicit_url()");
        terminal.expect("https://example.com/sign-in");
        terminal.check("yes", "\nwent there\n");
        terminal.enter("sample(message: 'Capital of France?')");
        terminal.expect("user: Capital of France?");
        terminal.expect("reply (text");
        terminal.check("Paris", "\na person: Paris\n");
        terminal.check("set roots file:///one file:///two", "roots file:///one file:///two");
        terminal.check("roots()", "\nfile:///one file:///two\n");
        terminal.check("set answers decline", "answers decline");
        terminal.check("elicit()", "\ndeclined\n");
        terminal.press(CTRL_D);
        assert_eq!(terminal.end(), Some(0), "{era}");
    }
}

#[test]
fn a_question_does_not_eat_the_line_that_is_being_typed() {
    let home = Home::new();
    for era in ["legacy", "modern"] {
        let terminal = everything(era, &home);
        terminal.enter("elicit() &");
        terminal.expect("What would you like?");
        terminal.check("cancel", "cancelled");
        terminal.expect("elicit ended");
        terminal.enter("slow(steps: 3, ms: 100) &");
        terminal.press("echo(message: kept");
        terminal.expect("slow ended");
        terminal.expect("3 steps");
        terminal.expect_last_row("everything> echo(message: kept");
        terminal.check(")", "\nkept\n");
    }
}

#[test]
fn arguments_are_asked_for_and_what_is_left_out_is_not_sent() {
    let home = Home::new();
    let record = home.path().join("session.ndjson");
    let arguments = ["--record", record.to_str().unwrap(), "--", &example("everything")];
    let terminal = Terminal::start(&arguments, &home);
    terminal.expect_last_row("everything>");
    terminal.enter("slow");
    terminal.expect("steps (integer, required): ");
    terminal.check("", "steps is required");
    terminal.check("many", "expected integer");
    terminal.check("1", "ms (integer, optional, the server's default is 0): ");
    terminal.check("", "\n1 steps\n");
    terminal.enter("structured");
    terminal.expect("a (integer, required): ");
    terminal.press(CTRL_C);
    terminal.expect("not called");
    terminal.enter("change_tools");
    terminal.expect_shown("notifications/tools/list_changed");
    terminal.expect("\nadded\n");
    terminal.check("extra()", "not always here");
    terminal.enter("quit");
    assert_eq!(terminal.end(), Some(0));
    let sent = std::fs::read_to_string(record).unwrap();
    let call = sent.lines().find(|line| line.contains(r#""params":{"name":"slow""#)).unwrap();
    assert!(call.contains(r#""arguments":{"steps":1}"#), "{call}");
}

#[test]
fn messages_are_sent_as_they_are_shown_in_the_log_and_sent_again() {
    let home = Home::new();
    let terminal = everything("legacy", &home);
    terminal.enter("{\"jsonrpc\": \"2.0\", \"id\": \"mine\",");
    terminal.expect_last_row("…");
    terminal.check("\"method\": \"ping\"}", "\"id\": \"mine\"");
    terminal.check("{\"method\":\"notifications/nothing\"}", "sent notifications/nothing");
    terminal.check("{\"id\":99,\"result\":{}}", "no request of the server with id 99 is waiting");
    // A notification is written before the next request, at the latest.
    terminal.check("ping", "answered in");
    terminal.check("log sent notifications", "notifications/nothing");
    terminal.check("tools/list {}", "\"inputSchema\"");
    terminal.check("echo(message: once)", "\nonce\n");
    terminal.check("log sent requests 1", "→ tools/call echo");
    let screen = terminal.screen();
    let line = screen.lines().rfind(|line| line.contains("→ tools/call echo")).unwrap();
    let number = line.split_whitespace().next().unwrap().trim_start_matches('#').to_owned();
    terminal.check(&format!("log #{number}"), "\"message\": \"once\"");
    terminal.check(&format!("replay {number}"), "\nonce\n");
    // A question can also be answered by a message.
    terminal.enter("elicit()");
    terminal.expect("The server asks (request ");
    let screen = terminal.screen();
    let asked = screen.lines().rfind(|line| line.contains("(request ")).unwrap();
    let id = asked.split("(request ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    let answer =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"action\":\"decline\"}}}}");
    terminal.check(&answer, "\ndeclined\n");
    terminal.check("set verbose on", "verbose on");
    terminal.check("ping", "\"method\":\"ping\"");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn nothing_that_a_server_sends_controls_the_terminal() {
    let home = Home::new();
    let terminal = nasty("legacy", &home);
    terminal.check("echo {\"text\": \"\\u001b[2Jsafe\\u0007\"}", "\\u{1b}[2Jsafe\\u{7}");
    terminal.check("garbage()", "after the garbage");
    terminal.check("twice()", "\nfirst\n");
    terminal.check("call notify {\"count\": 3000}", "\ndone\n");
    terminal.check("call echo text='goes on'", "\ngoes on\n");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_ready_made_server_works() {
    let home = Home::new();
    let terminal = Terminal::start(&["--", PROGRAM, "serve", "counter"], &home);
    terminal.expect_last_row("counter>");
    terminal.check("increment()", "\n1\n");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn results_are_as_wide_as_the_terminal_is_now() {
    let home = Home::new();
    let terminal = everything("modern", &home);
    let widest = || {
        terminal.enter("clear");
        terminal.check("tools", "DESCRIPTION");
        terminal.expect_last_row("everything>");
        terminal.screen().lines().map(|row| row.chars().count()).max().unwrap()
    };
    assert!(widest() > 50);
    terminal.resize(50);
    // The signal may come after the keys.
    assert!((0..100).any(|_| widest() <= 50), "{}", terminal.screen());
    terminal.press(CTRL_D);
    assert_eq!(terminal.end(), Some(0));
}
