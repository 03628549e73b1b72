//! The questions, as one types them. A new one is a line here.
//!
//! `U` is npm's `server-everything`, `X` the ready-made server `example`, `P` a server that wants a
//! login, and `N` an address where nobody is.

use super::ask::Typed;

/// What one has to find out, and how.
pub(super) struct Question {
    pub(super) asks: &'static str,
    pub(super) ours: Typed,
    pub(super) theirs: Typed,
    /// Whether the other cannot do it, and its line shows just that.
    pub(super) is_ours_alone: bool,
}

/// What our lines begin with, and theirs.
pub(super) const OURS: &str = "bowline";
pub(super) const THEIRS: &str = "mcp-inspector --cli";

/// The head of the table.
pub(super) const HEADING: &[&str] =
    &["question", "`bowline`", "`mcp-inspector --cli`", "keys", "lines out", "ms", "ratio"];

/// Files that lines name.
pub(super) const FILES: [(&str, &str); 2] = [
    ("noisy.sh", "echo starting up\nexec bowline serve counter\n"),
    (
        "counter.json",
        r#"{ "mcpServers": { "counter": { "command": "bowline", "args": ["serve", "counter"] } } }"#,
    ),
];

pub(super) const QUESTIONS: &[Question] = &[
    question(
        "What is it?",
        typed("bowline info U", 0, "legacy era"),
        typed("mcp-inspector --cli U --method initialize", 0, "\"serverInfo\""),
    ),
    question(
        "Which tools?",
        typed("bowline tools U", 0, "get-sum"),
        typed("mcp-inspector --cli U --method tools/list", 0, "\"inputSchema\""),
    ),
    question(
        "Call with numbers",
        typed("bowline call U get-sum a=1 b=2", 0, "The sum of 1 and 2 is 3."),
        typed(
            "mcp-inspector --cli U --method tools/call --tool-name get-sum --tool-arg a=1 b=2",
            0,
            "The sum of 1 and 2 is 3.",
        ),
    ),
    question(
        "Call with a list",
        typed(
            "bowline call X calculator_define name=twice 'expression=2 * x' variables=x",
            0,
            "calculator_twice",
        ),
        typed(
            "mcp-inspector --cli X --method tools/call --tool-name calculator_define \
             --tool-arg name=twice 'expression=2 * x' 'variables=[\"x\"]'",
            0,
            "calculator_twice",
        ),
    ),
    question(
        "Call with a wrong argument",
        typed("bowline call U get-sum a=one b=2", 1, "a: expected number, got \"one\""),
        typed(
            "mcp-inspector --cli U --method tools/call --tool-name get-sum --tool-arg a=one b=2",
            5,
            "expected number, received null",
        ),
    ),
    question(
        "Read a resource",
        typed("bowline read U demo://resource/static/document/features.md", 0, "#"),
        typed(
            "mcp-inspector --cli U --method resources/read \
             --uri demo://resource/static/document/features.md",
            0,
            "\"contents\"",
        ),
    ),
    question(
        "Read by a template",
        typed(
            "bowline read U 'demo://resource/dynamic/text/{resourceId}' resourceId=7",
            0,
            "Resource 7",
        ),
        typed(
            "mcp-inspector --cli U --method resources/read --uri demo://resource/dynamic/text/7",
            0,
            "Resource 7",
        ),
    ),
    question(
        "Get a prompt",
        typed("bowline prompt U args-prompt city=Rome", 0, "Rome"),
        typed(
            "mcp-inspector --cli U --method prompts/get --prompt-name args-prompt \
             --prompt-args city=Rome",
            0,
            "Rome",
        ),
    ),
    Question {
        is_ours_alone: true,
        ..question(
            "Complete an argument",
            typed("bowline complete U completable-prompt department=E", 0, "Engineering"),
            typed("mcp-inspector --cli U --method completion/complete", 1, "Unsupported method"),
        )
    },
    question(
        "A server that is not there",
        typed("bowline info N", 4, "Connection refused"),
        typed("mcp-inspector --cli N --method initialize", 4, "ECONNREFUSED"),
    ),
    question(
        "A program that is not there",
        typed("bowline info -- no-such-server", 4, "check PATH"),
        typed("mcp-inspector --cli no-such-server --method initialize", 1, "ENOENT"),
    ),
    question(
        "A server that writes to standard output",
        typed("bowline info -- sh noisy.sh", 0, "starting up"),
        typed("mcp-inspector --cli sh noisy.sh --method initialize", 0, "\"serverInfo\""),
    ),
    question(
        "A server that wants a login",
        typed("bowline info P", 3, "bowline login"),
        typed("mcp-inspector --cli P --method initialize --stored-auth-only", 3, "auth_required"),
    ),
];

const fn question(asks: &'static str, ours: Typed, theirs: Typed) -> Question {
    Question { asks, ours, theirs, is_ours_alone: false }
}

const fn typed(line: &'static str, exit: i32, says: &'static str) -> Typed {
    Typed { line, exit, says }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_begins_with_its_program() {
        for question in QUESTIONS {
            assert!(question.ours.line.starts_with(OURS), "{}", question.asks);
            assert!(question.theirs.line.starts_with(THEIRS), "{}", question.asks);
        }
    }
}
