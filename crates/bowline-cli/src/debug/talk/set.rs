//! The settings of a session.

use bowline::model::{ElicitAction, LoggingLevel, Root};
use serde_json::json;

use super::super::statement::split_words;
use super::super::words::SETTINGS;
use super::{Done, Talk};
use crate::schema::unquoted;
use crate::target::duration;
use crate::text::{did_you_mean, line};

impl Talk {
    /// Shows the settings, or changes one.
    pub(super) fn set(&mut self, rest: &str) -> Result<Done, String> {
        let words = split_words(rest)?;
        let Some((name, values)) = words.split_first() else {
            return Ok(Done::Said(self.settings()));
        };
        let Some(setting) = SETTINGS.iter().find(|setting| setting.0 == name) else {
            let near = did_you_mean(name, SETTINGS.iter().map(|setting| setting.0));
            let near = near.unwrap_or_else(|| "`help set` lists them".to_owned());
            return Err(format!("there is no setting {name:?}; {near}"));
        };
        if name == "roots" {
            return self.set_roots(values);
        }
        let Some(value) = values.first().map(String::as_str) else {
            return Err(format!("{name}: which value? `help set` lists them"));
        };
        if !setting.1.is_empty() && !setting.1.contains(&value) {
            let all = setting.1.join(", ");
            return Err(format!("{name}: expected one of {all}, got {value:?}"));
        }
        match name.as_str() {
            "log-level" => return self.set_log_level(value),
            "timeout" => {
                let time = duration(value).map_err(|problem| format!("timeout: {problem}"))?;
                self.link.settings.timeouts.idle = time;
                let text = format!("calls time out after {time:?} without a response or progress");
                return Ok(Done::Said(text));
            }
            "verbose" => self.link.set_verbose(value == "on"),
            _ => {
                self.link.settings.answers.otherwise = match value {
                    "accept" => Some(ElicitAction::Accept),
                    "decline" => Some(ElicitAction::Decline),
                    "cancel" => Some(ElicitAction::Cancel),
                    _ => None,
                };
            }
        }
        Ok(Done::Said(format!("{name} {value}")))
    }

    fn set_log_level(&mut self, word: &str) -> Result<Done, String> {
        let level = LoggingLevel::ALL.into_iter().find(|level| level.to_string() == word);
        let client = self.client()?;
        // For new connections.
        self.link.settings.log = level;
        let told = format!("log-level {word}");
        Ok(self.start_silent(
            "set log-level",
            told,
            async move { client.set_log_level(level).await },
        ))
    }

    fn set_roots(&mut self, uris: &[String]) -> Result<Done, String> {
        if let Some(wrong) = uris.iter().find(|uri| !uri.contains("://")) {
            return Err(format!("roots: expected a URI such as file:///project, got {wrong:?}"));
        }
        self.link.settings.answers.roots = uris.to_vec();
        let text = match uris.len() {
            0 => "no roots".to_owned(),
            _ => format!("roots {}", line(&uris.join(" "))),
        };
        let Ok(client) = self.client() else { return Ok(Done::Said(text)) };
        let roots = uris.iter().map(Root::new).collect();
        Ok(self.start_silent("set roots", text, async move { client.set_roots(roots).await }))
    }

    fn settings(&self) -> String {
        let settings = &self.link.settings;
        let level = settings.log.map_or_else(|| "off".to_owned(), |level| level.to_string());
        let timeout = settings.timeouts.idle;
        let verbose = if settings.is_verbose { "on" } else { "off" };
        let roots = line(&settings.answers.roots.join(" "));
        let answers = settings.answers.otherwise;
        let answers = answers.map_or_else(|| "ask".to_owned(), |it| unquoted(&json!(it)));
        format!(
            "log-level  {level}\n\
             timeout    {timeout:?}\n\
             roots      {roots}\n\
             verbose    {verbose}\n\
             answers    {answers}"
        )
    }
}
