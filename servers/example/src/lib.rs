//! The example of the protocol's own introduction as a working server: a calculator and the
//! weather.
//!
//! `calculator_arithmetic` evaluates expressions. Formulas defined with `calculator_define` become
//! tools, so that the list of tools changes while the server runs. `weather_current` queries
//! Open-Meteo, asks the user when a name could mean several places, and falls back to sample data,
//! labelled as such.

mod calculator;
mod weather;

use bowline::Server;

pub use self::calculator::expression::{Angles, EvaluationError, Expression, ParseError};
pub use self::weather::{Settings, Source};

/// The server.
pub fn server(settings: Settings) -> Server {
    Server::new("example-server", env!("CARGO_PKG_VERSION"))
        .title("Example server")
        .description("A calculator, and the weather of any place")
        .instructions(
            "calculator_arithmetic evaluates an expression; angles are in degrees unless `angles` \
             says otherwise, and calculator://functions lists all functions. calculator_define \
             turns a formula that is needed often into a tool. weather_current returns the \
             current weather; when its answer is labelled as sample data, it is made up and must \
             not be presented as a measurement.",
        )
        .with(calculator::tools())
        .with(weather::tools(settings))
        .declare_all()
}
