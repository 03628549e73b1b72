//! Logging to standard error.

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::LogLevel;

/// Starts logging to standard error at this level, or as `RUST_LOG` says: a level, or levels by
/// target, as in `info,bowline=debug`.
///
/// # Errors
/// If `RUST_LOG` is invalid.
pub fn start_log(level: LogLevel) -> Result<(), String> {
    let filter = filter(level, std::env::var("RUST_LOG").ok().as_deref())?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // A program that embeds this may have a logger already.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    Ok(())
}

fn filter(level: LogLevel, variable: Option<&str>) -> Result<Targets, String> {
    let wanted = variable.filter(|text| !text.trim().is_empty()).unwrap_or(level.as_str());
    wanted.parse().map_err(|error| {
        format!(
            "invalid RUST_LOG {wanted:?}: {error}; expected a level (off, error, warn, info, debug, \
             trace) or levels by target, as in \"info,bowline=debug\""
        )
    })
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_variable_wins_over_the_argument() {
        let enabled = |variable, level| {
            filter(LogLevel::Info, variable).unwrap().would_enable("bowline", &level)
        };
        assert!(enabled(None, Level::INFO));
        assert!(!enabled(None, Level::DEBUG));
        assert!(enabled(Some("warn,bowline=debug"), Level::DEBUG));
        assert!(!enabled(Some("off"), Level::ERROR));
        assert!(enabled(Some(" "), Level::INFO));
    }

    #[test]
    fn invalid_values_are_explained() {
        let error = filter(LogLevel::Info, Some("bowline=loud")).unwrap_err();
        assert!(error.starts_with(r#"invalid RUST_LOG "bowline=loud": "#), "{error}");
    }
}
