//! Which tests each row is.

use std::collections::BTreeSet;

/// A fault or an attack.
pub(super) struct Row {
    pub(super) number: u32,
    pub(super) what: &'static str,
    pub(super) tests: &'static [Tests],
}

/// Where the other side of what is tested runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Where {
    /// In a process of its own, over pipes or sockets.
    Process,
    /// In the process of the test, over sockets.
    Sockets,
    /// In the process of the test, without sockets.
    Memory,
}

impl Where {
    /// Its name in the table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Process => "processes",
            Self::Sockets => "sockets",
            Self::Memory => "memory",
        }
    }
}

/// Tests of one program.
pub(super) struct Tests {
    pub(super) runs: Where,
    /// Its package and target.
    pub(super) program: &'static str,
    /// Parts of the names of tests. Each must match at least one.
    pub(super) filters: &'static [&'static str],
}

/// A program that is one test by itself.
pub(super) const WHOLE: &str = "";

const FAULTS: &str = "bowline faults";
const HTTP: &str = "bowline http";
const CLIENT: &str = "bowline client";
const ATTACKS: &str = "bowline attacks";

const fn row(number: u32, what: &'static str, tests: &'static [Tests]) -> Row {
    Row { number, what, tests }
}

/// Tests with processes.
const fn of(program: &'static str, filters: &'static [&'static str]) -> Tests {
    Tests { runs: Where::Process, program, filters }
}

/// Tests over sockets, within one process.
const fn sockets(program: &'static str, filters: &'static [&'static str]) -> Tests {
    Tests { runs: Where::Sockets, program, filters }
}

/// Tests in memory.
const fn memory(program: &'static str, filters: &'static [&'static str]) -> Tests {
    Tests { runs: Where::Memory, program, filters }
}

/// All rows. A new one is a line here, and a test.
pub(super) const ROWS: &[Row] = &[
    row(1, "an endless line on standard input", &[of(FAULTS, &["flood::"])]),
    row(2, "10,000 hostile frames", &[of(FAULTS, &["hostile::"])]),
    row(3, "a last request without a line break", &[of(FAULTS, &["ends::a_last_request"])]),
    row(4, "the end of the input with calls in flight", &[of(FAULTS, &["ends::calls_in_flight"])]),
    row(
        5,
        "a stop signal with calls and subscriptions in flight, on stdio and HTTP",
        &[of(FAULTS, &["ends::a_stop_signal"]), sockets(HTTP, &["stop::"])],
    ),
    row(
        6,
        "1,000 panics among 10,000 calls, on stdio and HTTP",
        &[of(FAULTS, &["storm::a_thousand_panics"]), memory(HTTP, &["abuse::panics"])],
    ),
    row(
        7,
        "equal ids in flight, on stdio and HTTP",
        &[of(FAULTS, &["storm::a_second_request"]), memory(HTTP, &["load::equal_ids"])],
    ),
    row(8, "64 principals with equal ids", &[memory(HTTP, &["load::principals"])]),
    row(
        9,
        "hostile messages to syslog; the daemon is killed",
        &[of("mcp-logger it", &["rsyslog::every_message", "rsyslog::what_was_spooled"])],
    ),
    row(
        10,
        "sessions that are opened and left",
        &[memory(HTTP, &["abuse::sessions_that_are_opened"])],
    ),
    row(
        11,
        "connections that trickle",
        &[sockets(HTTP, &["slow::connections_that_say", "slow::a_body_that", "slow::a_drip"])],
    ),
    row(
        12,
        "bodies without end, without a length",
        &[sockets(HTTP, &["slow::bodies_without_end"])],
    ),
    row(
        13,
        "a client that is fed endless JSON, events, error bodies, lines",
        &[sockets(CLIENT, &["rows::endless_answers"]), of(CLIENT, &["rows::an_endless_line"])],
    ),
    row(
        14,
        "a client that is fed endless lists, and progress for nobody",
        &[
            memory(CLIENT, &["rows::endless_lists"]),
            of(CLIENT, &["rows::notifications_for_nobody"]),
        ],
    ),
    row(
        15,
        "hosts, origins, content types and headers of every kind",
        &[
            memory(HTTP, &["gate::"]),
            sockets(HTTP, &["gate::requests_that_two", "gate::every_request"]),
        ],
    ),
    row(
        16,
        "addresses in every spelling, rebinding, redirects",
        &[sockets("bowline-web it", &["guard::"])],
    ),
    row(17, "abuse of OAuth", &[sockets("bowline-auth client", &["abuse::"])]),
    row(
        18,
        "a child that ignores everything, floods, crashes in a loop",
        &[of(
            CLIENT,
            &["rows::nothing_is_alive", "rows::restarts_are", "rows::files_do_not_pile_up"],
        )],
    ),
    row(19, "a client killed with -9", &[of(CLIENT, &["rows::a_killed_parent"])]),
    row(
        20,
        "subscribers that stop reading",
        &[
            sockets(HTTP, &["slow::listeners_that_never_read"]),
            memory(HTTP, &["abuse::streams_nobody_reads"]),
        ],
    ),
    row(21, "cancellations at every moment", &[of(FAULTS, &["storm::no_answer_after"])]),
    row(22, "a peer that vanishes", &[sockets(HTTP, &["vanish::"])]),
    row(
        23,
        "many clients while their server restarts",
        &[sockets(CLIENT, &["rows::many_clients"])],
    ),
    row(
        24,
        "three nodes, Postgres and Redis: killed, stopped, cut off",
        &[of("bowline-fleet trial", &[WHOLE])],
    ),
    row(25, "schemas made to exhaust", &[memory("bowline-schema schema", &["bombs::"])]),
    row(
        26,
        "batches of 89,000 requests, and 1,000 whose answers nobody reads",
        &[of(ATTACKS, &["calls::batches"])],
    ),
    row(27, "ids and progress tokens of 3 MiB", &[of(ATTACKS, &["calls::long_ids"])]),
    row(28, "identities of 3 MiB", &[of(ATTACKS, &["sessions::fat_identities"])]),
    row(29, "bodies of 4 MiB over HTTP/1", &[of(ATTACKS, &["heads::bodies_over_http_1"])]),
    row(30, "bodies of 4 MiB over HTTP/2", &[of(ATTACKS, &["heads::bodies_over_http_2"])]),
    row(31, "calls that wait, with fat arguments", &[of(ATTACKS, &["calls::arguments"])]),
    row(32, "answers that nobody reads", &[of(ATTACKS, &["calls::answers_that_nobody"])]),
    row(33, "streams with 1,000 URIs each", &[of(ATTACKS, &["calls::listening_streams"])]),
    row(34, "sessions with a replay buffer", &[of(ATTACKS, &["sessions::replay_buffers"])]),
    row(35, "heads without end", &[of(ATTACKS, &["heads::heads_without_end"])]),
    row(36, "half-open sessions; a new client gets in", &[of(ATTACKS, &["sessions::half_open"])]),
    row(37, "abandoned calls", &[of(ATTACKS, &["sessions::abandoned"])]),
    row(
        38,
        "a client of a server of which everything is fat",
        &[of(CLIENT, &["rows::a_fat_server"])],
    ),
    row(
        39,
        "a batch of 13 MB on standard input",
        &[of(ATTACKS, &["calls::batches_on_standard_input"])],
    ),
    row(
        40,
        "calls over HTTP+SSE that wait, with fat arguments",
        &[
            of(ATTACKS, &["sse::arguments"]),
            memory(HTTP, &["sse::arguments", "sse::calls_that_wait"]),
        ],
    ),
    row(
        41,
        "answers over HTTP+SSE that nobody reads",
        &[memory(HTTP, &["sse::a_stream_whose_answers"])],
    ),
    row(
        42,
        "calls that wait, with heads of 60 KB, over HTTP/1",
        &[of(ATTACKS, &["heads::complete_heads_over_http_1"]), memory(HTTP, &["fair::long_heads"])],
    ),
    row(
        43,
        "calls that wait, with heads of 60 KB, over HTTP/2",
        &[of(ATTACKS, &["heads::complete_heads_over_http_2"])],
    ),
    row(
        44,
        "more connections of one address than there are descriptors",
        &[of(ATTACKS, &["heads::connections_when_descriptors"])],
    ),
];

/// The test programs that the rows need, by package and target.
pub(super) fn programs() -> BTreeSet<&'static str> {
    ROWS.iter().flat_map(|row| row.tests).map(|tests| tests.program).collect()
}

/// What Cargo must build: `--test NAME` for each of them.
pub(super) fn targets() -> String {
    let names: BTreeSet<&str> =
        programs().into_iter().filter_map(|program| program.split(' ').nth(1)).collect();
    names.into_iter().map(|name| format!("--test {name} ")).collect()
}
