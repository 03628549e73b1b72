//! `bowline` alone in a terminal suggests what fits what is there.

use super::terminal::{Home, Terminal};

#[test]
fn the_next_step_is_suggested() {
    let home = Home::new();
    let shows = |text: &str| {
        let terminal = Terminal::open(&[], &home, (40, 100));
        terminal.expect("bowline new NAME");
        terminal.expect(text);
        assert_eq!(terminal.end(), Some(0));
    };
    shows("bowline call increment -- bowline serve counter");
    std::fs::create_dir(home.path().join(".cursor")).unwrap();
    let configured = r#"{ "mcpServers": { "notes": { "command": "notes" } } }"#;
    std::fs::write(home.path().join(".cursor/mcp.json"), configured).unwrap();
    shows("bowline info notes");
    std::fs::write(home.path().join("Cargo.toml"), "bowline = \"0.1\"\n").unwrap();
    shows("bowline inspect -- cargo run --quiet");
}
