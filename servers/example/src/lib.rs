//! The example of the protocol's own introduction, made real: a calculator and the weather.
//!
//! `calculator_arithmetic` evaluates expressions; formulas that are defined with
//! `calculator_define` become tools of their own, so that the list of tools changes before one's
//! eyes. `weather_current` asks Open-Meteo, asks back when a name could mean several places, and
//! falls back to samples, which say that they are.

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
            "calculator_arithmetic evaluates an expression; angles are in degrees unless said \
             otherwise, and calculator://functions lists what it knows. A formula that is needed \
             often can be made a tool with calculator_define. weather_current tells the weather \
             now; when its answer says that it is a sample, it is made up and must not be passed \
             off as a measurement.",
        )
        .with(calculator::tools())
        .with(weather::tools(settings))
        .live()
}
