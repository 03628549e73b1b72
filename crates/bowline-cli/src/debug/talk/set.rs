//! The settings of a session.

use bowline::Json;
use bowline::model::{LoggingLevel, Root};

use super::super::question::Policy;
use super::super::statement::split_words;
use super::super::words::SETTINGS;
use super::{Done, NOT_CONNECTED, Show, Talk};
use crate::target::duration;
use crate::text::{did_you_mean, line};

impl Talk {
    /// Shows the settings, or changes one.
    pub(super) fn set(&mut self, rest: &str) -> Done {
        let words = match split_words(rest) {
            Ok(words) => words,
            Err(problem) => return Done::Failed(problem),
        };
        let Some((name, values)) = words.split_first() else {
            return Done::Said(self.settings());
        };
        let value = values.first().map(String::as_str);
        match (name.as_str(), value) {
            ("roots", _) => self.set_roots(values),
            ("log-level", Some(level)) => self.set_log_level(level),
            ("timeout", Some(time)) => match duration(time) {
                Ok(time) => {
                    self.idle = Some(time);
                    Done::Said(format!("calls wait {time:?} without answer or progress"))
                }
                Err(problem) => Done::Failed(format!("timeout: {problem}")),
            },
            ("verbose", Some(word @ ("on" | "off"))) => {
                self.link.set_verbose(word == "on");
                Done::Said(format!("verbose {word}"))
            }
            ("answers", Some(word)) => match Policy::parse(word) {
                Some(policy) => {
                    self.policy = policy;
                    Done::Said(format!("answers {word}"))
                }
                None => Done::Failed(format!("answers: {word:?} is none of {}", choices(name))),
            },
            ("verbose", _) => Done::Failed("verbose: on or off?".to_owned()),
            (known, None) if SETTINGS.iter().any(|setting| setting.0 == known) => {
                Done::Failed(format!("{known}: which value? `help set` shows them"))
            }
            _ => {
                let names = SETTINGS.iter().map(|setting| setting.0);
                let near = did_you_mean(name, names);
                let near = near.unwrap_or_else(|| "`help set` shows them".to_owned());
                Done::Failed(format!("there is no setting {name:?}; {near}"))
            }
        }
    }

    fn set_log_level(&mut self, word: &str) -> Done {
        let level = LoggingLevel::ALL.into_iter().find(|level| level.to_string() == word);
        if level.is_none() && word != "off" {
            let all = choices("log-level");
            return Done::Failed(format!("log-level: {word:?} is none of {all}"));
        }
        let Some(client) = self.link.client().cloned() else {
            return Done::Failed(NOT_CONNECTED.to_owned());
        };
        // A new connection is told as well.
        self.link.settings().log = level;
        let running = async move {
            client.set_log_level(level).await?;
            Ok(Json::empty_object())
        };
        let show = Show::Text(format!("log-level {word}"));
        Done::Started(vec![self.start("set log-level", show, Box::pin(running))])
    }

    fn set_roots(&mut self, uris: &[String]) -> Done {
        if let Some(wrong) = uris.iter().find(|uri| !uri.contains("://")) {
            return Done::Failed(format!("roots: {wrong:?} is no URI, such as file:///project"));
        }
        self.roots = uris.to_vec();
        let told = match uris.len() {
            0 => "no roots".to_owned(),
            _ => format!("roots {}", line(&uris.join(" "))),
        };
        let Some(client) = self.link.client().cloned() else { return Done::Said(told) };
        let roots = uris.iter().map(|uri| Root { uri: uri.clone(), ..Root::default() }).collect();
        let running = async move {
            client.set_roots(roots).await?;
            Ok(Json::empty_object())
        };
        Done::Started(vec![self.start("set roots", Show::Text(told), Box::pin(running))])
    }

    fn settings(&mut self) -> String {
        let level = self.link.settings().log;
        let timeout = self.idle.unwrap_or_else(|| self.link.settings().timeouts.idle);
        let verbose = if self.link.settings().is_verbose { "on" } else { "off" };
        let rows = [
            ("log-level", level.map_or_else(|| "off".to_owned(), |level| level.to_string())),
            ("timeout", format!("{timeout:?}")),
            ("roots", line(&self.roots.join(" "))),
            ("verbose", verbose.to_owned()),
            ("answers", self.policy.word().to_owned()),
        ];
        let rows: Vec<String> =
            rows.iter().map(|(name, value)| format!("{name:<10} {value}")).collect();
        rows.join("\n")
    }
}

fn choices(name: &str) -> String {
    let setting = SETTINGS.iter().find(|setting| setting.0 == name);
    setting.map(|setting| setting.1.join(", ")).unwrap_or_default()
}
