//! Features that a revision has or lacks, as named predicates.
//!
//! Code outside [`revision`](super) asks for a feature and never names a revision, so each rule is
//! stated once, with its page in the specification.

use super::Revision::{self, *};

impl Revision {
    /// The revision of a legacy HTTP request without a header and without a session (2025-06-18,
    /// basic/transports).
    pub const UNSTATED: Self = V2025_03_26;
    /// The revision that clients of HTTP+SSE speak: later ones replaced that transport.
    pub const HTTP_SSE: Self = V2024_11_05;
    /// The only revision with batches.
    pub const BATCHING: Self = V2025_03_26;
    /// The first revision in whose time there are extensions with methods of their own. Their
    /// specifications are written for 2026-07-28, and say nothing against the revision before it.
    pub const EXTENSIONS: Self = V2025_11_25;

    /// The first revision of the modern era.
    pub const MODERN: Self = V2026_07_28;
    /// The only revision in which callers request tasks (2025-11-25, basic/utilities/tasks).
    pub const REQUESTED_TASKS: Self = V2025_11_25;

    /// Whether it has batches: several messages in one array (2025-03-26, basic).
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::BATCHING)
    }

    /// Whether HTTP requests carry the header `MCP-Protocol-Version` (2025-06-18,
    /// basic/transports).
    pub fn has_version_header(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether a stream of events opens with an empty event that tells the client how to resume,
    /// so that the server may close the connection early (2025-11-25, basic/transports).
    pub fn has_stream_priming(self) -> bool {
        self >= V2025_11_25
    }

    /// Whether requests from a foreign origin must be rejected with 403, and not just with any
    /// status (2025-11-25, basic/transports).
    pub fn has_origin_status(self) -> bool {
        self >= V2025_11_25
    }

    /// Whether invalid arguments are reported in a tool's result, where the model reads them and
    /// can correct itself, and not as a protocol error (2025-11-25, server/tools).
    pub fn reports_bad_arguments_in_result(self) -> bool {
        self >= V2025_11_25
    }

    /// Whether a server can ask a user to fill in a form (2025-06-18, client/elicitation).
    pub fn has_forms(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether a request to visit a URL must have an id (2025-11-25, client/elicitation).
    pub const fn has_elicitation_ids(self) -> bool {
        matches!(self, V2025_11_25)
    }

    /// Whether the caller decides that a call runs as a task (2025-11-25, basic/utilities/tasks).
    /// Later the server decides, by the extension.
    pub const fn has_requested_tasks(self) -> bool {
        matches!(self, Self::REQUESTED_TASKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_revision_has_what() {
        fn check(has: impl Fn(Revision) -> bool, expected: &[Revision]) {
            let found: Vec<_> = Revision::ALL.into_iter().filter(|it| has(*it)).collect();
            assert_eq!(found, expected);
        }
        check(Revision::has_batches, &[V2025_03_26]);
        check(Revision::has_version_header, &[V2025_06_18, V2025_11_25, V2026_07_28]);
        check(Revision::has_forms, &[V2025_06_18, V2025_11_25, V2026_07_28]);
        check(Revision::has_stream_priming, &[V2025_11_25, V2026_07_28]);
        check(Revision::has_origin_status, &[V2025_11_25, V2026_07_28]);
        check(Revision::reports_bad_arguments_in_result, &[V2025_11_25, V2026_07_28]);
        check(Revision::has_elicitation_ids, &[V2025_11_25]);
        check(Revision::has_requested_tasks, &[V2025_11_25]);
    }
}
