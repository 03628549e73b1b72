//! Logging in through a browser: a stand-in program that receives an address, and a user that
//! follows it.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bowline_serve::testing::{Said, Service};

use crate::authority::{Person, TOKEN, authorization_server, parameter, protected};
use crate::fixture::{Folder, program, said, signal, wait_for};

/// How long to wait for the browser to open: 2 minutes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A home, a server that requires a login, and its authorization server.
struct World {
    home: Folder,
    issuer: Service,
    url: String,
}

impl World {
    fn new(person: Person) -> Self {
        let issuer = authorization_server(person);
        let url = protected(&issuer.url());
        Self { home: Folder::new(), issuer, url }
    }

    fn run(&self, words: &[&str]) -> Said {
        said(program(&self.home).args(words).arg(&self.url))
    }

    /// `bowline login` with only the programs in `path`.
    fn login(&self, path: &str, more: &[&str]) -> Command {
        let mut login = program(&self.home);
        login.args(["login", &self.url]).args(more).env("PATH", path);
        login
    }

    /// Installs a program that opens pages; returns its folder, and the pages that it opens.
    fn install_browser(&self, name: &str) -> (String, Receiver<String>) {
        let pipe = self.home.path().join("pages");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = format!("#!/bin/sh\nprintf %s \"$1\" >'{}'\n", pipe.display());
        let source = self.home.write("browser.sh", &script);
        let folder = self.home.path().join("programs");
        std::fs::create_dir_all(&folder).unwrap();
        // Written by another process: a file that this one has open for writing cannot be run.
        let mut install = Command::new("install");
        install.args(["-m", "755"]).arg(source).arg(folder.join(name));
        assert!(install.status().unwrap().success());
        let (sender, pages) = channel();
        thread::spawn(move || drop(sender.send(std::fs::read_to_string(pipe).unwrap())));
        (folder.display().to_string(), pages)
    }

    /// The stored files and their contents.
    fn kept(&self) -> Vec<(PathBuf, String)> {
        let Ok(files) = std::fs::read_dir(self.home.path().join("data/credentials")) else {
            return Vec::new();
        };
        let paths = files.map(|file| file.unwrap().path());
        paths.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
    }

    fn is_token_kept(&self) -> bool {
        self.kept().iter().any(|(_, text)| text.contains(TOKEN))
    }

    /// How often the login page was visited.
    fn visits(&self) -> usize {
        self.issuer.asked().iter().filter(|asked| asked.what.contains("/authorize?")).count()
    }

    /// Every command says that a login is needed, and how to log in.
    fn check_logged_out(&self) {
        let told = self.run(&["tools"]);
        assert_eq!((told.code, told.out.as_str()), (Some(3), ""), "{}", told.err);
        assert!(told.err.contains(&format!("bowline login {}", self.url)), "{}", told.err);
    }
}

/// Follows an address through its redirects, and returns the last answer.
fn visit(page: &str) -> String {
    let mut page = page.to_owned();
    for _ in 0..5 {
        let (authority, rest) = page.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(authority).unwrap();
        write!(stream, "GET /{rest} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let location = answer.lines().find_map(|line| line.strip_prefix("location: "));
        let Some(location) = location else { return answer };
        page = location.to_owned();
    }
    panic!("sent in circles: {page}");
}

fn ended(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Waits for the address that is shown to the user.
fn shown(child: &mut Child) -> (String, BufReader<impl Read + use<>>) {
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let page = wait_for(&mut errors, "/authorize?").trim().to_owned();
    wait_for(&mut errors, "Waiting up to");
    (page, errors)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Logs in through the installed browser.
fn check_login(world: &World, login: &mut Command, pages: &Receiver<String>) {
    world.check_logged_out();
    assert_eq!(world.visits(), 0);
    let child = login.spawn().unwrap();
    let page = pages.recv_timeout(PATIENCE).expect("the browser is opened");
    assert!(page.starts_with(&format!("{}/authorize?", world.issuer.url())), "{page}");
    let last = visit(&page);
    assert!(
        last.starts_with("HTTP/1.1 200") && last.contains("return to the application"),
        "{last}"
    );
    let told = ended(child);
    assert_eq!(told.out, format!("logged in to {}\n", world.url), "{}", told.err);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains(&page), "{}", told.err);
    assert_eq!(world.visits(), 1);
}

#[test]
fn a_login_through_a_browser_is_stored_used_and_deleted() {
    let world = World::new(Person::Agrees);
    let (path, pages) = world.install_browser("stand-in");
    let mut login = world.login(&path, &[]);
    login.env("BROWSER", "no-such-browser --new:stand-in %s");
    check_login(&world, &mut login, &pages);

    let told = world.run(&["tools"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.contains("hello"), "{}", told.out);
    assert!(world.is_token_kept());
    for (file, _) in world.kept() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert_eq!(mode(&world.home.path().join("data/credentials")), 0o700);

    assert_eq!(world.run(&["logout"]).out, format!("logged out of {}\n", world.url));
    assert!(!world.is_token_kept(), "{:?}", world.kept());
    world.check_logged_out();
    assert_eq!(world.visits(), 1, "only `login` opens a browser");
}

#[test]
#[cfg(target_os = "linux")]
fn the_default_browser_is_the_systems() {
    let world = World::new(Person::Agrees);
    let (path, pages) = world.install_browser("xdg-open");
    check_login(&world, &mut world.login(&path, &[]), &pages);
}

#[test]
fn a_user_may_refuse() {
    let world = World::new(Person::Denies);
    let (path, pages) = world.install_browser("stand-in");
    let child = world.login(&path, &[]).env("BROWSER", "stand-in").spawn().unwrap();
    let last = visit(&pages.recv_timeout(PATIENCE).expect("the browser is opened"));
    assert!(last.contains("The login failed"), "{last}");
    let told = ended(child);
    assert_eq!((told.code, told.out.as_str()), (Some(3), ""), "{}", told.err);
    for part in ["access_denied", "not today", "not logged in"] {
        assert!(told.err.contains(part), "{part}: {}", told.err);
    }
    // The user is not asked twice.
    assert_eq!(world.visits(), 1);
    assert!(!world.is_token_kept());
    world.check_logged_out();
}

#[test]
fn the_address_is_enough_if_no_browser_opens() {
    let world = World::new(Person::Agrees);
    let nothing = world.home.path().join("nothing").display().to_string();
    let mut child = world.login(&nothing, &[]).spawn().unwrap();
    let (page, mut errors) = shown(&mut child);
    assert!(visit(&page).starts_with("HTTP/1.1 200"));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let told = ended(child);
    assert_eq!((told.code, rest.as_str()), (Some(0), ""));
    assert_eq!(told.out, format!("logged in to {}\n", world.url));
}

#[test]
fn the_wait_for_the_user_ends() {
    let world = World::new(Person::Agrees);
    let nothing = world.home.path().join("nothing").display().to_string();
    let told = said(&mut world.login(&nothing, &["--wait", "300ms"]));
    assert_eq!((told.code, told.out.as_str()), (Some(3), ""), "{}", told.err);
    for part in ["up to 300.0 ms", "no redirect within 0.3 s", "--wait"] {
        assert!(told.err.contains(part), "{part}: {}", told.err);
    }
    assert_eq!(world.visits(), 0);
}

#[test]
fn an_interrupt_ends_the_wait_for_a_browser() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let world = World::new(Person::Agrees);
        let nothing = world.home.path().join("nothing").display().to_string();
        let mut child = world.login(&nothing, &[]).spawn().unwrap();
        let (page, mut errors) = shown(&mut child);
        signal(&child, name);
        let mut rest = String::new();
        errors.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "bowline: interrupted: not logged in\n", "{name}");
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
        let redirect = parameter(page.split_once('?').unwrap().1, "redirect_uri").unwrap();
        let address = redirect.strip_prefix("http://").unwrap().split('/').next().unwrap();
        assert!(TcpStream::connect(address).is_err(), "{address} still listens");
        assert!(!world.is_token_kept());
        world.check_logged_out();
    }
}
