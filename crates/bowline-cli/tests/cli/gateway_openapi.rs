//! A gateway in front of an API that an OpenAPI document describes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::fixture::{Folder, program, said, until, wait_for};

/// An API with pets, and its document at /openapi.json while there is one.
struct Api {
    url: String,
    document: Arc<Mutex<Option<Value>>>,
    seen: Receiver<String>,
}

impl Api {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (told, seen) = channel();
        let document = Arc::new(Mutex::new(None));
        let known = Arc::clone(&document);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (told, known) = (told.clone(), Arc::clone(&known));
                std::thread::spawn(move || answer(stream.unwrap(), &told, &known));
            }
        });
        Self { url, document, seen }
    }
}

fn answer(stream: TcpStream, told: &Sender<String>, document: &Mutex<Option<Value>>) {
    let mut answers = stream.try_clone().unwrap();
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.to_lowercase();
        let length = length.split_once("content-length: ").map_or("0", |(_, rest)| rest);
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let target = head.split(' ').nth(1).unwrap().to_owned();
        let (status, body) = match document.lock().unwrap().clone() {
            Some(document) if target == "/openapi.json" => ("200 OK", document.to_string()),
            None if target == "/openapi.json" => ("503 Service Unavailable", "{}".to_owned()),
            _ => ("200 OK", json!({ "asked": target }).to_string()),
        };
        let _ = told.send(head);
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        let head = format!("{head}content-length: {}\r\n\r\n", body.len());
        answers.write_all((head + &body).as_bytes()).unwrap();
    }
}

fn document(operation: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "/v1" }],
        "paths": { "/pets/{id}": {
            "get": { "operationId": operation, "summary": "A pet", "responses": {} },
            "delete": { "responses": {} },
            "post": { "operationId": "upload", "responses": {}, "requestBody":
                { "required": true, "content": { "multipart/form-data": {} } } },
        }},
    })
}

/// A gateway that runs, its URL and its socket. It ends with the test.
struct Running(Child, String, PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(home: &Folder, own: &str) -> Running {
    let file = home.write("gateway.toml", own);
    // The path of a socket is short.
    let socket = PathBuf::from(format!("/tmp/bowline-api-{}-{home:p}.sock", std::process::id()));
    let mut command = program(home);
    command.arg("gateway").arg(file).args(["--listen", "127.0.0.1:0", "--socket"]);
    command.arg(&socket).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let line = wait_for(&mut told, "the gateway is at");
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    Running(child, line.trim().rsplit(' ').next().unwrap().to_owned(), socket)
}

#[test]
fn an_api_is_a_server_with_its_document_beside_the_configuration() {
    let home = Folder::new();
    let api = Api::start();
    home.write("apis/pets.json", &document("getPet").to_string());
    home.write("key", "sekrit-4711\n");
    let own = format!(
        "
[secrets]
KEY = {{ file = \"key\" }}
[servers.pets]
openapi = \"apis/pets.json\"
base = \"{}/v2?region=eu\"
headers = {{ X-Key = \"${{KEY}}\" }}
tools = {{ deny = [\"delete_*\"] }}
",
        api.url
    );
    let file = home.write("gateway.toml", &own);
    let checked = said(program(&home).args(["gateway", "check"]).arg(&file));
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    for part in [
        "tool getPet: GET /pets/{id}",
        "left out: POST /pets/{id} (upload): its body must be multipart/form-data",
        "note: pets: 1 operations left out",
        "headers: X-Key\n",
    ] {
        assert!(checked.out.contains(part), "{part}: {}", checked.out);
    }
    assert!(!checked.out.contains("DELETE") && !checked.out.contains("sekrit"), "{}", checked.out);
    let running = start(&home, &own);
    let called = said(program(&home).args(["call", &running.1, "pets__getPet", "id=a/b"]));
    assert!(called.out.contains("/v2/pets/a%2Fb?region=eu"), "{called:?}");
    let head = api.seen.recv().unwrap().to_lowercase();
    assert!(head.contains("x-key: sekrit-4711\r\n"), "{head}");
    // A reload sees what the document says now; one with a mistake changes nothing.
    let reload = || {
        let mut command = program(&home);
        said(command.args(["gateway", "reload", "--socket"]).arg(&running.2))
    };
    home.write("apis/pets.json", "openapi: 3.1.0\n");
    let told = reload();
    for part in ["gateway.toml: servers.pets: ", "apis/pets.json: the document is YAML"] {
        assert!(told.code != Some(0) && told.err.contains(part), "{told:?}");
    }
    home.write("apis/pets.json", &document("onePet").to_string());
    assert_eq!(reload().code, Some(0));
    let called = said(program(&home).args(["call", &running.1, "pets__onePet", "id=1"]));
    assert!(called.out.contains("/v2/pets/1"), "{called:?}");
}

#[test]
fn a_document_at_a_url_that_is_not_there_yet_is_fetched_when_it_is() {
    let home = Folder::new();
    let api = Api::start();
    let own = format!(
        "
[servers.pets]
openapi = \"{url}/openapi.json\"
headers = {{ X-Key = \"sekrit\" }}
[tools.say]
run = [\"printf\", \"%s\", \"{{what}}\"]
",
        url = api.url
    );
    let running = start(&home, &own);
    // Others are there meanwhile.
    let called = said(program(&home).args(["call", &running.1, "tools__say", "what=x"]));
    assert_eq!(called.out.trim(), "x", "{called:?}");
    let file = home.path().join("gateway.toml");
    let checked = said(program(&home).args(["gateway", "check"]).arg(&file));
    assert!(checked.err.contains("cannot be fetched: HTTP 503"), "{checked:?}");
    let relative = AtomicBool::new(false);
    *api.document.lock().unwrap() = Some(document("getPet"));
    until(|| {
        let called = said(program(&home).args(["call", &running.1, "pets__getPet", "id=1"]));
        relative.store(called.out.contains("/v1/pets/1"), Ordering::SeqCst);
        called.code == Some(0)
    });
    assert!(relative.load(Ordering::SeqCst));
    // Where the document is, headers for the API are not sent.
    for head in api.seen.try_iter() {
        let is_document = head.starts_with("GET /openapi.json");
        assert_eq!(!is_document, head.to_lowercase().contains("x-key: sekrit"), "{head}");
    }
}

#[test]
fn mistakes_with_documents_say_what_to_do() {
    let home = Folder::new();
    home.write("pets.json", &document("getPet").to_string());
    home.write("old.json", r#"{ "swagger": "2.0" }"#);
    for (server, why) in [
        ("openapi = \"pets.json\"", "help: say where the API is, with base"),
        ("openapi = \"none.json\"", "none.json: "),
        ("openapi = \"old.json\"", "Swagger 2.0; help: convert it"),
        ("openapi = \"pets.json\"\nurl = \"https://a\"", "url has no meaning beside openapi"),
        ("openapi = \"pets.json\"\nera = \"modern\"", "era has no meaning beside openapi"),
        ("url = \"https://a\"\nbase = \"https://a\"", "base is for servers with openapi"),
        ("openapi = \"pets.json\"\nbase = \"ftp://a\"", "base: expected an absolute http or https"),
        ("openapi = \"pets.json\"\nbase = \"https://a\"\noutput = 0", "output: expected 1 to"),
        (
            "openapi = \"pets.json\"\nbase = \"http://a.example\"\nheaders = { X = \"y\" }",
            "insecure_http = true",
        ),
        (
            "openapi = \"pets.json\"\nbase = \"https://a\"\ntools = { allow = [\"none\"] }",
            "no operation can be used",
        ),
        ("openapi = \"pets.json\"\nopenapy = 1", "did you mean openapi"),
    ] {
        let file = home.write("gateway.toml", &format!("[servers.pets]\n{server}\n"));
        let told = said(program(&home).args(["gateway", "check"]).arg(file));
        assert!(told.code != Some(0) && told.err.contains(why), "{server}: {told:?}");
    }
    let schema = said(program(&home).args(["gateway", "schema"]));
    assert!(schema.out.contains("\"openapi\"") && schema.out.contains("\"base\""));
}
