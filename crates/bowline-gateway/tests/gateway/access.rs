//! F: who may use what, and the record of it.

use std::sync::Arc;

use bowline::client::{Client, FormAnswer};
use bowline_gateway::gateway::{Audit, Policy, Rule, verify};
use serde_json::json;

use crate::world::{call, connect, known, names, plan, rule, simple, start, texts};

fn log(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("bowline-gateway-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

#[tokio::test]
async fn f_nothing_without_a_rule_off_loopback() {
    let mut plan = plan(vec![simple("one", &["a", "b"])]);
    plan.policy.is_open = false;
    let (_gateway, client) = connect(plan).await;
    assert_eq!(names(&client).await, [""; 0]);
    for name in ["one__a", "a"] {
        let told = call(&client, name).await.unwrap_err();
        assert!(told.contains("no tool is called"), "{told}");
    }
}

#[tokio::test]
async fn f51_rules_and_records_are_about_the_servers_own_names_with_an_actor() {
    let path = log("rules");
    let mut plan = plan(vec![simple("one", &["get", "delete"])]);
    plan.servers[0].alias = Some("x".to_owned());
    plan.servers[0].tools.rename = vec![("delete".into(), "get_harmless".into())];
    let rules = vec![rule("ops", &["ops"], &["one/*"], &[]), rule("no", &[], &[], &["*/delete"])];
    plan.policy = Policy { rules, is_open: true, group_claims: texts(&["groups"]) };
    plan.audit = Some(Arc::new(Audit::open(&path).unwrap()));
    let (_gateway, server) = start(plan).await;
    let ann = known(server, "ann", "ops").await;
    assert_eq!(names(&ann).await, ["x__get"]);
    assert_eq!(call(&ann, "x__get").await.unwrap(), "one get");
    assert!(call(&ann, "x__get_harmless").await.is_err());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let call = &lines[1];
    for (member, value) in [
        ("subject", json!("ann")),
        ("server", json!("one")),
        ("name", json!("get")),
        ("asked", json!("x__get")),
        ("decision", json!("allow")),
        ("rule", json!("ops")),
        ("outcome", json!("answered")),
    ] {
        assert_eq!(call[member], value, "{member} of {call}");
    }
    assert_eq!(lines[2]["name"], "delete");
    assert_eq!(lines[2]["decision"], "deny");
    assert_eq!(lines[2]["rule"], "no");
    assert_eq!(verify(&path).unwrap().0, 3);
}

#[tokio::test]
async fn f_callers_of_other_groups_see_nothing() {
    let mut plan = plan(vec![simple("one", &["get"])]);
    let rules = vec![rule("ops", &["ops"], &["one/*"], &[])];
    plan.policy = Policy { rules, is_open: true, group_claims: texts(&["groups"]) };
    let (_gateway, server) = start(plan).await;
    let bob = known(server, "bob", "dev").await;
    assert_eq!(names(&bob).await, [""; 0]);
    assert!(call(&bob, "one__get").await.is_err());
}

fn answer(agrees: bool) -> FormAnswer {
    let filled = serde_json::Map::from_iter([("confirm".to_owned(), json!(true))]);
    if agrees { FormAnswer::Accept(filled) } else { FormAnswer::Decline }
}

#[tokio::test]
async fn f_marked_tools_ask_the_user_first_in_both_eras() {
    use bowline::client::Preference;
    for preference in [Preference::Legacy, Preference::Modern] {
        for agrees in [true, false] {
            let mut plan = plan(vec![simple("one", &["merge", "get"])]);
            let rule = Rule {
                allow: texts(&["one/*"]),
                confirm: texts(&["one/merge"]),
                ..Rule::default()
            };
            plan.policy = Policy { rules: vec![rule], ..Policy::default() };
            let (_gateway, server) = start(plan).await;
            let client = Client::builder("test", "1").preference(preference);
            let client = client.on_form(move |_| std::future::ready(Ok(answer(agrees))));
            let client = client.connect(server).await.unwrap();
            assert_eq!(call(&client, "one__get").await.unwrap(), "one get");
            let merged = call(&client, "one__merge").await;
            match agrees {
                true => assert_eq!(merged.unwrap(), "one merge"),
                false => assert!(format!("{merged:?}").contains("did not agree"), "{merged:?}"),
            }
        }
    }
}

#[tokio::test]
async fn f_marked_tools_do_not_run_where_nobody_can_be_asked() {
    let mut plan = plan(vec![simple("one", &["merge"])]);
    let rule = Rule { confirm: texts(&["one/merge"]), ..Rule::default() };
    plan.policy = Policy { rules: vec![rule], ..Policy::default() };
    let (_gateway, client) = connect(plan).await;
    let told = format!("{:?}", call(&client, "one__merge").await);
    assert!(told.contains("cannot ask the user"), "{told}");
}

#[tokio::test]
async fn rate_limits_tell_a_model_when_to_come_back() {
    let mut plan = plan(vec![simple("one", &["get"])]);
    plan.servers[0].rate = Some("2/h".parse().unwrap());
    let (gateway, client) = connect(plan).await;
    for _ in 0..2 {
        assert_eq!(call(&client, "one__get").await.unwrap(), "one get");
    }
    let told = format!("{:?}", call(&client, "one__get").await);
    assert!(told.contains("try again in 1800 seconds"), "{told}");
    let metrics = gateway.metrics();
    assert!(metrics.contains("bowline_gateway_rate_limited_total 1"), "{metrics}");
    let counted = "mcp_method_name=\"tools/call\",gen_ai_tool_name=\"get\",bowline_server=\"one\"";
    assert!(metrics.contains(counted), "{metrics}");
}
