//! A script at the other end of a pipe.

use std::process::Command;

use bowline_serve::testing::{Process, Said, run};
use serde_json::{Value, json};

use super::PROGRAM;
use super::server::example;

/// Runs lines against a server; returns the responses.
fn play(server: &[&str], options: &[&str], lines: &[&str]) -> (Vec<Value>, Said) {
    let mut arguments = vec!["debug"];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(server);
    let said = run(PROGRAM, &arguments, &format!("{}\n", lines.join("\n")));
    let answers = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")));
    (answers.collect(), said)
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn responses_come_in_the_order_of_the_requests_with_their_ids() {
    let server = example("everything");
    for era in ["legacy", "modern"] {
        let lines = [
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"slow","arguments":{"steps":2,"ms":50}}}"#,
            r#"{"jsonrpc":"2.0","id":2.50,"method":"tools/call","params":{"name":"echo","arguments":{"message":"two"}}}"#,
            "echo(message: three)",
            "call structured a=1 b=3",
            "echo {message: 'five'}",
            "# nothing",
            r#"{"jsonrpc":"2.0","method":"notifications/nothing"}"#,
            "read test://static",
        ];
        let (answers, said) = play(&[&server], &["--revision", era], &lines);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        let expected = [
            json!("a"),
            json!(2.5),
            json!("line 3"),
            json!("line 4"),
            json!("line 5"),
            json!("line 8"),
        ];
        assert_eq!(ids, expected.iter().collect::<Vec<_>>());
        assert_eq!(text(&answers[0]), "2 steps");
        assert_eq!(text(&answers[2]), "three");
        assert_eq!(answers[3]["result"]["structuredContent"]["total"], 4);
        assert!(said.out.contains("\"id\":2.50,"), "{}", said.out);
    }
}

#[test]
fn a_request_may_span_several_lines() {
    let lines = [
        "{\"jsonrpc\": \"2.0\",",
        " \"id\": 1, \"method\": \"tools/call\",",
        " \"params\": {\"name\": \"echo\",",
        "   \"arguments\": {\"message\": \"spread } out\"}}}",
        "echo(",
        "  message: 'also'",
        ")",
        // An empty line gives up an unfinished statement.
        "{\"jsonrpc\":",
        "",
        "echo(message: last)",
    ];
    let (answers, said) = play(&[&example("everything")], &[], &lines);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(text(&answers[0]), "spread } out");
    assert_eq!(text(&answers[1]), "also");
    assert_eq!(answers[2]["id"], "line 8");
    assert_eq!(answers[2]["error"]["code"], -32700);
    assert_eq!(text(&answers[3]), "last");
}

#[test]
fn the_exit_code_is_that_of_the_first_failure_and_the_rest_still_runs() {
    let server = example("everything");
    let good = "echo(message: good)";
    for (line, code, part) in [
        ("failing()", 5, "there is no luck today"),
        ("nothing/such {}", 7, "no such method"),
        ("dance", 1, "neither a command nor a tool"),
        ("{\"id\":1}", 1, "needs a method"),
        ("call echo message=- ", 1, "standard input"),
        ("wait()", 8, "no answer within"),
    ] {
        // Only the call that is to time out has little time.
        let options = if code == 8 { &["--timeout", "20"][..] } else { &[] };
        let (answers, said) = play(&[&server], options, &[good, line, good]);
        assert_eq!(said.code, Some(code), "{line}: {}", said.err);
        assert_eq!(answers.len(), 3, "{line}: {}", said.out);
        assert!(answers[1].to_string().contains(part), "{line}: {}", answers[1]);
        assert_eq!(text(&answers[2]), "good", "{line}");
    }
    let (_, said) = play(&[&server], &[], &["failing()", "dance"]);
    assert_eq!(said.code, Some(5));
}

#[test]
fn requests_run_side_by_side_on_demand() {
    // The first one never ends, so nothing may wait for it.
    let lines = ["wait() &", "echo(message: one)", "cancel", "echo(message: two)"];
    let (answers, said) = play(&[&example("everything")], &[], &lines);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(text(&answers[0]), "one");
    assert_eq!(answers[1]["id"], "line 1");
    assert_eq!(answers[1]["error"]["message"], "cancelled");
    assert_eq!(text(&answers[2]), "two");
    assert!(said.err.contains("progress │ wait 0/1 waiting"), "{}", said.err);

    let mut process =
        Process::start(PROGRAM, &["debug", "--jobs", "2", "--", &example("everything")]);
    process.send("wait()");
    process.send("echo(message: overtakes)");
    assert_eq!(process.receive()["id"], "line 2");
    let said = process.terminate();
    assert_eq!(said.code, Some(143), "{}", said.err);
    assert!(said.err.contains("interrupted"), "{}", said.err);
}

#[test]
fn a_server_that_dies_is_reported_and_can_be_restarted() {
    let nasty = example("nasty");
    for era in ["legacy", "modern"] {
        let lines = ["exit()", "call echo text=lost", "restart", "call echo text=back", "log 50"];
        let (answers, said) = play(&[&nasty, era], &[], &lines);
        assert_eq!(said.code, Some(4), "{}", said.err);
        assert!(answers[0].to_string().contains("exit status: 7"), "{}", answers[0]);
        assert!(answers[1].to_string().contains("exit status: 7"), "{}", answers[1]);
        assert_eq!(text(&answers[2]), "back");
        // Once, not with every command.
        let told: Vec<&str> = said.err.lines().filter(|it| it.contains("disk on fire")).collect();
        let [live, logged] = told[..] else { panic!("{}", said.err) };
        assert_eq!(live, "stderr │ fatal: disk on fire");
        assert!(logged.starts_with('#'), "{logged}");
        assert!(said.err.contains("→ tools/call echo"), "{}", said.err);
    }
    let (answers, said) = play(&["/nowhere/at/all"], &[], &["ping"]);
    assert_eq!((said.code, answers.len()), (Some(4), 0), "{}", said.err);
    assert!(said.err.contains("cannot start"), "{}", said.err);
}

#[test]
fn a_tool_that_came_later_is_known_by_its_name() {
    for era in ["legacy", "modern"] {
        let lines = ["echo(message: first)", "change_tools", "extra"];
        let (answers, said) = play(&[&example("everything")], &["--revision", era], &lines);
        assert_eq!(said.code, Some(0), "{era}: {}", said.err);
        assert_eq!(text(&answers[2]), "not always here", "{era}");
    }
}

#[test]
fn values_are_completed() {
    let lines = ["complete greet name=a", "complete test://users/{name} name=g", "complete greet"];
    let (answers, said) = play(&[&example("everything")], &[], &lines);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(answers[0]["result"]["completion"]["values"], json!(["ada", "alan"]));
    assert_eq!(answers[1]["result"]["completion"]["values"], json!(["grace"]));
    assert!(answers[2].to_string().contains("which argument?"), "{}", answers[2]);
}

/// A server that sends this many log messages before it answers `ping`.
fn flooding(count: u32) -> String {
    format!(
        r#"while IFS= read -r line; do
            id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
            case "$line" in
            *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":"2025-11-25","capabilities":{{"logging":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}}}';;
            *'"ping"'*)
                seq {count} | sed 's|.*|{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"line &"}}}}|'
                echo '{{"jsonrpc":"2.0","id":'$id',"result":{{}}}}';;
            esac
        done"#
    )
}

#[test]
fn a_flood_that_is_shown_is_not_said_to_be_lost() {
    let script = "printf 'ping\\nlog 1\\n' | \"$0\" debug --revision 2025-11-25 -- sh -c \"$1\"";
    let server = flooding(20_000);
    // Both streams are read at once.
    let output = Command::new("sh").args(["-c", script, PROGRAM, &server]).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (out, err) = (out.unwrap(), err.unwrap());
    assert_eq!(out, "{\"jsonrpc\":\"2.0\",\"id\":\"line 1\",\"result\":{}}\n");
    assert_eq!(err.lines().filter(|line| line.starts_with("log │")).count(), 20_000);
    let rest: Vec<&str> = err.lines().filter(|line| !line.starts_with("log │")).collect();
    // The handshake has three messages.
    assert!(matches!(rest[..], [log] if log.starts_with("#20005 ")), "{rest:?}");
}

#[test]
fn the_log_says_when_each_message_came() {
    // The server gets its first request late.
    let server = format!(
        r#"IFS= read -r line; sleep 0.05; {{ printf '%s\n' "$line"; cat; }} | {}"#,
        example("everything")
    );
    let (_, said) = play(&["sh", "-c", &server], &[], &["log all"]);
    let entries = said.err.lines().filter(|line| line.starts_with('#'));
    let times: Vec<f64> = entries
        .filter_map(|line| line.split_whitespace().nth(1)?.strip_prefix('+')?.strip_suffix('s'))
        .filter_map(|seconds| seconds.parse().ok())
        .collect();
    assert!(times.len() > 1 && times[1] - times[0] > 0.045, "{}", said.err);
}

#[test]
fn questions_are_answered_by_the_options() {
    let server = example("everything");
    for era in ["legacy", "modern"] {
        let options = ["--revision", era, "--decline"];
        let (answers, said) = play(&[&server], &options, &["elicit()", "elicit_url()"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!((text(&answers[0]), text(&answers[1])), ("declined", "stayed"));
        let (answers, said) = play(&[&server], &["--revision", era], &["elicit()", "roots()"]);
        assert_eq!(said.code, Some(7), "{}", said.err);
        assert!(answers[0]["error"].is_object(), "{}", answers[0]);
    }
}

#[test]
fn only_responses_go_to_standard_output() {
    let lines = ["help", "status", "set", "log", "tools/list {}", "change_tools()", "subscribe"];
    let (answers, said) = play(&[&example("everything")], &["--verbose"], &lines);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(answers.len(), 2, "{}", said.out);
    for part in ["Calling tools", "connection  ready", "log-level", "tools/list"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

#[test]
fn tasks_are_listed_shown_and_resumed() {
    let mut process = Process::start(
        PROGRAM,
        &["debug", "--revision", "2025-11-25", "--", PROGRAM, "serve", "counter"],
    );
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "long_task", "arguments": { "steps": 2 }, "task": {} } });
    process.send(&call.to_string());
    let created = process.receive();
    let id = created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    process.send("tasks");
    assert_eq!(process.receive()["result"]["tasks"][0]["taskId"], id);
    process.send(&format!("tasks {id}"));
    assert_eq!(process.receive()["result"]["taskId"], id);
    process.send(&format!("tasks resume {id}"));
    assert_eq!(text(&process.receive()), "counted 2 steps");
    process.send(&format!("tasks cancel {id}"));
    assert_eq!(process.receive()["error"]["code"], -32602);
    process.send(&format!("tasks dance {id}"));
    let said = process.close();
    assert!(said.err.contains("expected show, wait, resume or cancel"), "{}", said.err);
}

#[test]
fn tasks_of_the_extension_are_shown_and_resumed() {
    let server = ["debug", "--revision", "2026-07-28", "--", PROGRAM, "serve", "counter"];
    let mut process = Process::start(PROGRAM, &server);
    // Longer than the two seconds after which it is a task.
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "long_task", "arguments": { "steps": 40 },
        "_meta": { "io.modelcontextprotocol/clientCapabilities": {
            "extensions": { "io.modelcontextprotocol/tasks": {} } } } } });
    process.send(&call.to_string());
    let created = process.receive();
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    process.send(&format!("tasks {id}"));
    assert_eq!(process.receive()["result"]["taskId"], id);
    process.send(&format!("tasks resume {id}"));
    assert_eq!(text(&process.receive()), "counted 40 steps");
    process.close();
}

#[test]
fn a_revision_without_a_list_of_tasks_is_named() {
    let server = [PROGRAM, "serve", "counter"];
    let (_, said) = play(&server, &["--revision", "2026-07-28"], &["tasks"]);
    assert!(said.err.contains("2026-07-28 has no list of tasks"), "{}{}", said.err, said.out);
}
