//! An app: a board to look at and click, beside the text that models read. `board`, on stdio.

use std::sync::{Mutex, PoisonError};

use bowline::{Resource, ServeError, Server, server};

/// How many columns there are.
const WIDTH: u8 = 7;

/// The columns in which pieces are.
#[derive(Default)]
struct Board(Mutex<Vec<u8>>);

#[server]
impl Board {
    /// Show the board.
    #[tool(read_only, ui = "ui://board/view")]
    async fn show(&self) -> String {
        self.text()
    }

    /// Place a piece, as the user does by a click.
    #[tool(app_only)]
    async fn place(
        &self,
        /// From 1 to 7.
        column: u8,
    ) -> Result<String, String> {
        if !(1..=WIDTH).contains(&column) {
            return Err(format!("there is no column {column}"));
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(column);
        Ok(self.text())
    }
}

impl Board {
    fn text(&self) -> String {
        let pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = (1..=WIDTH).map(|column| match pieces.contains(&column) {
            true => "X",
            false => "·",
        });
        row.collect::<Vec<_>>().join(" ")
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let app = Resource::app("ui://board/view", include_str!("board.html"));
    Server::new("board", "1.0.0").with(Board::default()).with(app).serve_stdio().await
}
