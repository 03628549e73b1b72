//! Features that servers are known to lack, and why.

use bowline::Revision;

/// Checks that fail because of the server.
struct Lack {
    server: &'static str,
    transports: &'static [&'static str],
    revisions: fn(Revision) -> bool,
    checks: &'static [&'static str],
    reason: &'static str,
}

const ALL: &[&str] = &["stdio", "http", "sse"];

const LACKS: &[Lack] = &[
    Lack {
        server: "typescript-1",
        transports: ALL,
        revisions: |_| true,
        checks: &["list-pages"],
        reason: "the SDK does not paginate lists",
    },
    Lack {
        server: "typescript-2",
        transports: ALL,
        revisions: |_| true,
        checks: &["list-pages"],
        reason: "the SDK does not paginate lists",
    },
    Lack {
        server: "typescript-2",
        transports: ALL,
        revisions: Revision::is_modern,
        checks: &["task", "task-handle", "task-cancel", "task-question"],
        reason: "the SDK has no tasks",
    },
    Lack {
        server: "typescript-2",
        transports: ALL,
        revisions: Revision::has_requested_tasks,
        checks: &["task", "task-handle", "task-cancel", "task-question"],
        reason: "version 2 of the SDK dropped the tasks of 2025-11-25",
    },
    Lack {
        server: "fastmcp",
        transports: ALL,
        revisions: Revision::has_requested_tasks,
        checks: &["task-handle", "task-cancel", "task-question"],
        reason: "FastMCP 4 dropped the tasks of 2025-11-25",
    },
    Lack {
        server: "rmcp",
        transports: ALL,
        revisions: Revision::has_requested_tasks,
        checks: &["task-handle", "task-cancel", "task-question"],
        reason: "rmcp dropped the tasks of 2025-11-25",
    },
    Lack {
        server: "fastmcp",
        transports: ALL,
        revisions: |_| true,
        checks: &["resource-updated"],
        reason: "FastMCP does not support resource subscriptions",
    },
    Lack {
        server: "fastmcp",
        transports: ALL,
        revisions: Revision::is_modern,
        checks: &["tools-changed"],
        reason: "FastMCP does not support subscriptions/listen",
    },
    Lack {
        server: "typescript-1",
        transports: ALL,
        revisions: |_| true,
        checks: &["skills"],
        reason: "version 1 of the SDK does not support skills",
    },
    Lack {
        server: "fastmcp",
        transports: ALL,
        revisions: |_| true,
        checks: &["skills"],
        reason: "FastMCP serves skills only in a form from before the extension",
    },
    Lack {
        server: "rmcp",
        transports: ALL,
        revisions: |_| true,
        checks: &["skills"],
        reason: "rmcp does not support skills",
    },
];

/// Why a check is known to fail, if it is.
pub(crate) fn find_lack(
    server: &str,
    transport: &str,
    revision: Revision,
    check: &str,
) -> Option<&'static str> {
    let lack = LACKS.iter().find(|lack| {
        lack.server == server
            && lack.transports.contains(&transport)
            && (lack.revisions)(revision)
            && lack.checks.contains(&check)
    });
    lack.map(|lack| lack.reason)
}
