//! What programs say on standard error before they end, and what they mean by it.

use super::report::Diagnosis;

/// One thing that programs say.
struct Sign {
    /// In small letters; all of them must be in one line.
    all: &'static [&'static str],
    cause: &'static str,
    fix: &'static str,
}

const fn sign(all: &'static [&'static str], cause: &'static str, fix: &'static str) -> Sign {
    Sign { all, cause, fix }
}

const INSTALL: &str = "Install the program's dependencies where it runs, and check that the \
                       interpreter is the one they were installed for.";
const SET: &str = "Set the variable for the server: --env NAME=VALUE here, \"env\" in a client's \
                   configuration. Desktop applications do not see the variables of a shell.";
const NODE: &str = "Start it with a newer Node.js (`node --version` tells which one this is); give \
                    the full path of the node to use.";
const NPM: &str = "Check the package's name and version, the registry and the network; run the \
                   command by hand once.";

/// The most telling first: the first that is found anywhere counts.
const SIGNS: &[Sign] = &[
    sign(&["cannot find module"], "a module of the program is not installed", INSTALL),
    sign(&["err_module_not_found"], "a module of the program is not installed", INSTALL),
    sign(&["modulenotfounderror"], "a Python module is not installed", INSTALL),
    sign(&["no module named"], "a Python module is not installed", INSTALL),
    sign(&["importerror"], "a Python module cannot be imported", INSTALL),
    sign(
        &["err_require_esm"],
        "the program mixes kinds of modules in a way this Node.js cannot load",
        NODE,
    ),
    sign(&["unsupported engine"], "the package wants another Node.js", NODE),
    sign(&["requires node"], "the package wants another Node.js", NODE),
    sign(
        &["syntaxerror", "unexpected token"],
        "this Node.js does not understand the program",
        NODE,
    ),
    sign(
        &["cannot use import statement"],
        "Node.js takes a module for a script",
        "Set \"type\": \"module\" in package.json, or name the file .mjs.",
    ),
    sign(&["npm", "e404"], "npm does not find the package", NPM),
    sign(&["npm", "enotfound"], "npm does not reach its registry", NPM),
    sign(&["npm", "could not determine executable"], "the package has no program to start", NPM),
    sign(
        &["no solution found when resolving"],
        "uv finds no set of packages that fits",
        "Check the package's name and the Python version it wants.",
    ),
    sign(
        &["was not found in the package registry"],
        "uv does not find the package",
        "Check the package's name.",
    ),
    sign(
        &["unable to find image"],
        "docker does not have the image yet and downloads it",
        "Run `docker pull` with the image's name once, then try again.",
    ),
    sign(
        &["cannot connect to the docker daemon"],
        "the docker daemon does not run",
        "Start Docker.",
    ),
    sign(
        &["the input device is not a tty"],
        "docker was asked for a terminal",
        "Use `docker run -i`, without -t.",
    ),
    sign(
        &["address already in use"],
        "the address that the program wants to listen on is taken",
        "End the other process, or choose another port. A stdio server needs no port at all.",
    ),
    sign(
        &["eaddrinuse"],
        "the address that the program wants to listen on is taken",
        "End the other process, or choose another port. A stdio server needs no port at all.",
    ),
    sign(&["environment variable"], "a variable of the environment is missing or wrong", SET),
    sign(&["api key", "required"], "a key is missing", SET),
    sign(&["api_key"], "a key is missing or wrong", SET),
    sign(&["missing", "token"], "a token is missing", SET),
    sign(&["keyerror:"], "the program misses a key, often a variable of the environment", SET),
    sign(&["unauthorized"], "the service behind the server refuses its credentials", SET),
    sign(
        &["econnrefused"],
        "a service that the server needs does not answer",
        "Start that service, or correct its address in the server's settings.",
    ),
    sign(
        &["connection refused"],
        "a service that the server needs does not answer",
        "Start that service, or correct its address in the server's settings.",
    ),
    sign(
        &["glibc", "not found"],
        "the program was built for a newer system library",
        "Use a build for this system, or build it here.",
    ),
    sign(
        &["error while loading shared libraries"],
        "a shared library is missing",
        "Install the library that the line names.",
    ),
    sign(
        &["exec format error"],
        "the program was built for another kind of machine",
        "Use a build for this machine.",
    ),
    sign(
        &["permission denied"],
        "the program may not open something",
        "Check the owner and mode of what the line names.",
    ),
    sign(
        &["no such file or directory"],
        "a file that the program wants is missing",
        "Check the paths among the arguments: they are relative to the working directory (--cwd).",
    ),
    sign(
        &["can't open file"],
        "the script is not where the command says",
        "Give its full path, or the right working directory (--cwd).",
    ),
    sign(
        &["command not found"],
        "a program that this one starts is not in PATH",
        "Install it, or give PATH with --env.",
    ),
    sign(
        &["unrecognized option"],
        "the program does not know an option it was given",
        "Compare the arguments with its documentation.",
    ),
    sign(
        &["unexpected argument"],
        "the program does not know an argument it was given",
        "Compare the arguments with its documentation.",
    ),
    sign(
        &["usage:"],
        "the program does not understand its arguments",
        "Compare them with its documentation: many servers need a word like `stdio` or `serve`.",
    ),
    sign(&["out of memory"], "the program ran out of memory", "Give it more, or less to do."),
    sign(
        &["traceback (most recent call last)"],
        "the program ended with a Python exception",
        "The last lines of its standard error say which.",
    ),
    sign(&["panicked at"], "the program panicked", "Its standard error says where."),
    sign(
        &["unhandled"],
        "the program ended with an error that nobody caught",
        "Its standard error says which.",
    ),
];

/// What the last lines mean, and the line that says so.
pub(crate) fn explain(lines: &[String]) -> Option<(Diagnosis, &str)> {
    let small: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    SIGNS.iter().find_map(|sign| {
        let said = |line: &String| sign.all.iter().all(|needle| line.contains(needle));
        // The last one: what comes before it may have been survived.
        let at = small.iter().rposition(said)?;
        Some((Diagnosis::unreachable(sign.cause, sign.fix), lines[at].as_str()))
    })
}

/// The URL in a line that says where a program listens.
pub(crate) fn listens_at(lines: &[String]) -> Option<String> {
    lines.iter().find_map(|line| {
        let small = line.to_lowercase();
        let tells = ["listening", "running", "serving", "started", "server on", "available at"];
        if !tells.iter().any(|word| small.contains(word)) {
            return None;
        }
        if let Some(at) = small.find("http://").or_else(|| small.find("https://")) {
            let url = line
                .get(at..)?
                .split(|letter: char| letter.is_whitespace() || "\"')>,".contains(letter));
            return url.into_iter().next().map(|url| url.trim_end_matches('.').to_owned());
        }
        let (_, port) = small.split_once("port ")?;
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        (!port.is_empty()).then(|| format!("http://localhost:{port}/mcp"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn last_words_are_understood() {
        for (text, cause, line) in [
            (
                "node:internal\nError: Cannot find module 'express'\n  at x",
                "a module of",
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
                "Traceback (most recent call last):",
            ),
            (
                "Error: GITHUB_TOKEN environment variable is not set",
                "variable of the environment",
                "Error: GITHUB_TOKEN environment variable is not set",
            ),
            (
                "Error: listen EADDRINUSE: address already in use :::3000",
                "is taken",
                "Error: listen EADDRINUSE: address already in use :::3000",
            ),
            ("npm error code E404", "npm does not find", "npm error code E404"),
            (
                "thread 'main' panicked at src/main.rs:1:1:",
                "panicked",
                "thread 'main' panicked at src/main.rs:1:1:",
            ),
            (
                "./x: /lib/libc.so.6: version `GLIBC_2.38' not found",
                "newer system library",
                "./x: /lib/libc.so.6: version `GLIBC_2.38' not found",
            ),
            (
                "npm warn EBADENGINE Unsupported engine {",
                "another Node.js",
                "npm warn EBADENGINE Unsupported engine {",
            ),
            (
                "the input device is not a TTY",
                "asked for a terminal",
                "the input device is not a TTY",
            ),
            (
                "python3: can't open file '/x/server.py': [Errno 2] No such file or directory",
                "a file that the program wants",
                "python3: can't open file '/x/server.py': [Errno 2] No such file or directory",
            ),
            ("usage: server [-h] {stdio,http}", "its arguments", "usage: server [-h] {stdio,http}"),
        ] {
            let all = lines(text);
            let (found, said) = explain(&all).unwrap_or_else(|| panic!("{text}"));
            assert!(found.cause.contains(cause), "{text}: {found:?}");
            assert_eq!(said, line);
        }
        assert_eq!(explain(&lines("all is well\nready")), None);
    }

    #[test]
    fn a_web_server_tells_where_it_is() {
        for (text, expected) in [
            (
                "INFO: Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C)",
                Some("http://127.0.0.1:8000"),
            ),
            ("Server listening on port 3000", Some("http://localhost:3000/mcp")),
            ("MCP server running on stdio", None),
            ("listening for messages", None),
            ("see http://example.com/docs", None),
        ] {
            assert_eq!(listens_at(&lines(text)).as_deref(), expected, "{text}");
        }
    }
}
