//! What programs write to standard error before they exit, and what it means.

use super::report::{Diagnosis, unreachable};

/// Text that many programs print, and what it means.
pub(crate) struct Sign {
    /// Lower-case alternatives, the clearest first. Parts joined by ` + ` must be on one line.
    pub(crate) any: &'static [&'static str],
    pub(crate) cause: &'static str,
    pub(crate) fix: &'static str,
}

pub(crate) const fn sign(any: &'static [&'static str], cause: &'static str) -> Sign {
    Sign { any, cause, fix: "" }
}

impl Sign {
    pub(crate) const fn fix(self, fix: &'static str) -> Self {
        Self { fix, ..self }
    }
}

const INSTALL: &str = "Install the program's dependencies where it runs, and check that it runs \
                       with the interpreter that they were installed for.";
const SET: &str = "Set the variable for the server: --env NAME=VALUE here, \"env\" in a client's \
                   configuration. Desktop applications do not see the variables of a shell.";
const NODE: &str = "Run it with a newer Node.js, by its full path; `node --version` prints the \
                    version of the current one.";
const NPM: &str = "Check the package's name and version, the registry and the network, then run \
                   the command by hand once.";
const USAGE: &str = "Compare the arguments with the program's documentation.";

/// A script that the interpreter itself does not find.
const SCRIPT: Sign = sign(&["can't open file"], "the script is not where the command says")
    .fix("Give its full path, or the right working directory (--cwd).");

/// The most specific sign first: the first one found in any line wins.
const SIGNS: &[Sign] = &[
    SCRIPT,
    sign(
        &["cannot find module", "err_module_not_found"],
        "one of the program's modules is not installed",
    )
    .fix(INSTALL),
    sign(&["modulenotfounderror", "no module named"], "a Python module is not installed")
        .fix(INSTALL),
    sign(&["importerror"], "a Python module cannot be imported").fix(INSTALL),
    sign(
        &["err_require_esm"],
        "the program mixes CommonJS and ES modules in a way that this Node.js cannot load",
    )
    .fix(NODE),
    sign(&["unsupported engine", "requires node"], "the package needs another Node.js").fix(NODE),
    sign(&["syntaxerror + unexpected token"], "this Node.js cannot parse the program").fix(NODE),
    sign(&["cannot use import statement"], "Node.js loads an ES module as a CommonJS script")
        .fix("Set \"type\": \"module\" in package.json, or name the file .mjs."),
    sign(&["npm + e404"], "npm cannot find the package").fix(NPM),
    sign(&["npm + enotfound"], "npm cannot reach its registry").fix(NPM),
    sign(&["npm + could not determine executable"], "the package has no executable").fix(NPM),
    sign(&["no solution found when resolving"], "uv cannot resolve the package's dependencies")
        .fix("Check the package's name and the Python version that it needs."),
    sign(&["was not found in the package registry"], "uv cannot find the package")
        .fix("Check the package's name."),
    sign(&["unable to find image"], "docker does not have the image yet and is downloading it")
        .fix("Run `docker pull` with the image's name once, then try again."),
    sign(&["cannot connect to the docker daemon"], "the docker daemon is not running")
        .fix("Start Docker."),
    sign(&["the input device is not a tty"], "docker was told to allocate a terminal")
        .fix("Use `docker run -i`, without -t."),
    sign(
        &["address already in use", "eaddrinuse"],
        "the address that the program listens on is already in use",
    )
    .fix("Stop the other process, or choose another port. A stdio server needs no port."),
    sign(&["environment variable"], "an environment variable is missing or wrong").fix(SET),
    sign(&["api key + required"], "a key is missing").fix(SET),
    sign(&["api_key"], "a key is missing or wrong").fix(SET),
    sign(&["missing + token"], "a token is missing").fix(SET),
    sign(&["keyerror:"], "a key is missing, often an environment variable").fix(SET),
    sign(&["unauthorized"], "a service behind the server rejects its credentials").fix(SET),
    sign(
        &["econnrefused", "connection refused"],
        "a service that the server needs is not reachable",
    )
    .fix("Start that service, or correct its address in the server's settings."),
    sign(&["glibc + not found"], "the program was built for a newer C library")
        .fix("Use a build for this system, or build it here."),
    sign(&["error while loading shared libraries"], "a shared library is missing")
        .fix("Install the library that the line names."),
    sign(&["exec format error"], "the program was built for another kind of machine")
        .fix("Use a build for this machine."),
    sign(&["permission denied"], "the program lacks a permission")
        .fix("Check the owner and mode of the file that the line names."),
    sign(&["no such file or directory"], "a file that the program needs is missing").fix(
        "Check the paths in the arguments: they are relative to the working directory (--cwd).",
    ),
    sign(&["command not found"], "a program that this one starts is not in PATH")
        .fix("Install it, or set PATH with --env."),
    sign(&["unrecognized option"], "the program does not know one of its options").fix(USAGE),
    sign(&["unexpected argument"], "the program does not know one of its arguments").fix(USAGE),
    sign(&["usage:"], "the program does not understand its arguments").fix(
        "Compare them with its documentation: many servers need a word like `stdio` or `serve`.",
    ),
    sign(&["out of memory"], "the program ran out of memory")
        .fix("Give it more memory, or less to do."),
    sign(&["panicked at"], "the program panicked").fix("Its standard error says where."),
    sign(&["unhandled"], "the program exited with an unhandled error")
        .fix("Its standard error says which."),
];

/// What the lines mean, and the line that says so.
pub(crate) fn explain(lines: &[String]) -> Option<(Diagnosis, &str)> {
    let crash = crash(lines);
    // Before the error that ended the program, and in its stack, everything may be mentioned.
    let begin = crash.map_or(0, |(at, _)| at);
    let is_said = |line: &str| crash.is_none() || !is_indented(line);
    let said = lines.iter().enumerate().skip(begin).filter(|(_, line)| is_said(line));
    let said: Vec<(usize, String)> = said.map(|(at, line)| (at, line.to_lowercase())).collect();
    // The last line that matches: the program may have survived earlier ones.
    let find = |pattern: &&str| {
        let has_all = |line: &str| pattern.split(" + ").all(|part| line.contains(part));
        said.iter().rfind(|(_, line)| has_all(line)).map(|(at, _)| *at)
    };
    let found = SIGNS.iter().find_map(|sign| Some((sign, sign.any.iter().find_map(find)?)));
    let is_script = |(_, at): &(&Sign, usize)| is_missing_script(lines, &lines[*at]);
    let (cause, fix, at) = match (found, crash) {
        (Some(found), _) if is_script(&found) => (SCRIPT.cause, SCRIPT.fix, found.1),
        (Some((sign, at)), _) => (sign.cause, sign.fix, at),
        (None, Some((at, cause))) => (cause, "Its standard error says where.", at),
        (None, None) => return None,
    };
    Some((unreachable(cause).fix(fix), lines[at].as_str()))
}

/// The line with the error that ended a program in Python or Node.js, and what to call that.
fn crash(lines: &[String]) -> Option<(usize, &'static str)> {
    let flush = |line: &String| !line.is_empty() && !is_indented(line);
    if let Some(at) = lines.iter().rposition(|line| line.starts_with("Traceback (most recent")) {
        let error = at + 1 + lines[at + 1..].iter().position(flush)?;
        return Some((error, "the program exited with a Python exception"));
    }
    // The message stands above the stack; that of an error's cause is indented.
    let is_frame = |line: &String| is_indented(line) && line.trim_start().starts_with("at ");
    let is_head = |at: &usize| {
        let above = at.checked_sub(1).map(|above| &lines[above]);
        is_frame(&lines[*at]) && above.is_some_and(flush)
    };
    let stack = (0..lines.len()).rev().find(is_head)?;
    let named = lines[..stack].iter().rposition(|line| flush(line) && line.contains("Error"));
    Some((named.unwrap_or(stack - 1), "the program exited with an unhandled error"))
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// Whether Node.js misses the very script that it was told to run: no module has asked for it.
fn is_missing_script(lines: &[String], line: &str) -> bool {
    line.contains("Cannot find module")
        && !line.contains("imported from")
        && lines.iter().any(|line| line.trim() == "requireStack: []")
}

/// The URL in a line that says where a program listens.
pub(crate) fn listening_url(lines: &[String]) -> Option<String> {
    lines.iter().find_map(|line| {
        let lower = line.to_lowercase();
        let words = ["listening", "running", "serving", "started", "server on", "available at"];
        if !words.iter().any(|word| lower.contains(word)) {
            return None;
        }
        if let Some(at) = lower.find("http://").or_else(|| lower.find("https://")) {
            let is_end = |letter: char| letter.is_whitespace() || "\"')>,".contains(letter);
            let url = line.get(at..)?.split(is_end).next()?;
            return Some(url.trim_end_matches('.').to_owned());
        }
        let (_, port) = lower.split_once("port")?;
        let port = port.trim_start_matches([' ', ':', '=']);
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        let says = |word: &str| lines.iter().any(|line| line.to_lowercase().contains(word));
        let path = if says("sse") && !says("streamable") { "sse" } else { "mcp" };
        (!port.is_empty()).then(|| format!("http://localhost:{port}/{path}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn check(text: &str, cause: &str, line: &str) {
        let all = lines(text);
        let (found, said) = explain(&all).unwrap_or_else(|| panic!("{text}"));
        assert!(found.cause.contains(cause), "{text}: {found:?}");
        assert_eq!(said, line);
    }

    #[test]
    fn each_message_has_its_cause() {
        for (text, cause, line) in [
            (
                "node:internal\nError: Cannot find module 'express'\n  at x",
                "one of the program's modules",
                "Error: Cannot find module 'express'",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\"\nModuleNotFoundError: No module named 'mcp'",
                "a Python module is not",
                "ModuleNotFoundError: No module named 'mcp'",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\"\nValueError: 3",
                "Python exception",
                "ValueError: 3",
            ),
            (
                "Error: GITHUB_TOKEN environment variable is not set",
                "environment variable",
                "Error: GITHUB_TOKEN environment variable is not set",
            ),
            (
                "Error: listen EADDRINUSE: address already in use :::3000",
                "already in use",
                "Error: listen EADDRINUSE: address already in use :::3000",
            ),
            ("npm error code E404", "npm cannot find", "npm error code E404"),
            (
                "thread 'main' panicked at src/main.rs:1:1:",
                "panicked",
                "thread 'main' panicked at src/main.rs:1:1:",
            ),
            (
                "./x: /lib/libc.so.6: version `GLIBC_2.38' not found",
                "newer C library",
                "./x: /lib/libc.so.6: version `GLIBC_2.38' not found",
            ),
            (
                "npm warn EBADENGINE Unsupported engine {",
                "needs another Node.js",
                "npm warn EBADENGINE Unsupported engine {",
            ),
            (
                "the input device is not a TTY",
                "allocate a terminal",
                "the input device is not a TTY",
            ),
            (
                "python3: can't open file '/x/server.py': [Errno 2] No such file or directory",
                "the script is not where",
                "python3: can't open file '/x/server.py': [Errno 2] No such file or directory",
            ),
            ("usage: server [-h] {stdio,http}", "its arguments", "usage: server [-h] {stdio,http}"),
        ] {
            check(text, cause, line);
        }
        assert_eq!(explain(&lines("all is well\nready")), None);
    }

    #[test]
    fn of_a_stack_the_error_counts() {
        for (text, cause, line) in [
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    \
                 os.environ[\"API_KEY\"] # environment variable\nconnection refused\n\nDuring handling \
                 of the above exception, another exception occurred:\n\nTraceback (most recent call \
                 last):\n  File \"a.py\", line 5, in <module>\n    run()  # permission denied\n\
                 ZeroDivisionError: division by zero",
                "Python exception",
                "ZeroDivisionError: division by zero",
            ),
            (
                "/srv/a.js:2\n  throw new TypeError(\"boom\"); // missing token\n  ^\n\nTypeError: boom\n    \
                 at unauthorized (/srv/a.js:2:9)\n    at node:internal/main/run_main_module:28:49 {\n  \
                 [cause]: Error: usage: x\n      at f (/srv/a.js:1:1)\n}\n\nNode.js v20.20.2",
                "an unhandled error",
                "TypeError: boom",
            ),
            (
                "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module \
                 '/nope/server.js'\n    at Module._resolveFilename (node:internal/x:1207:15) {\n  code: \
                 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.20.2",
                "the script is not where",
                "Error: Cannot find module '/nope/server.js'",
            ),
            (
                "Error: Cannot find module 'express'\nRequire stack:\n- /srv/a.js\n    at Module._load \
                 (node:internal/x:1038:27) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [ \
                 '/srv/a.js' ]\n}\n\nNode.js v20.20.2",
                "one of the program's modules",
                "Error: Cannot find module 'express'",
            ),
        ] {
            check(text, cause, line);
        }
    }

    #[test]
    fn the_url_of_a_web_server_is_found() {
        for (text, expected) in [
            (
                "INFO: Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C)",
                Some("http://127.0.0.1:8000"),
            ),
            ("Server listening on port 3000", Some("http://localhost:3000/mcp")),
            ("SSE transport\nServer is running on port: 3001", Some("http://localhost:3001/sse")),
            ("MCP server running on stdio", None),
            ("listening for messages", None),
            ("see http://example.com/docs", None),
        ] {
            assert_eq!(listening_url(&lines(text)).as_deref(), expected, "{text}");
        }
    }
}
