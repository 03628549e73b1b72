//! A task as the protocol shows it: one record, two generations.

use bowline_proto::json::Json;
use bowline_proto::model::{self, CallToolResult, TaskStatus, task_extension};
use bowline_proto::revision::{Adapt, Revision};

use super::record::{State, TaskRecord};

impl TaskRecord {
    fn status(&self) -> TaskStatus {
        match &self.state {
            State::Working | State::Elsewhere => TaskStatus::Working,
            State::Waiting { .. } => TaskStatus::InputRequired,
            // 2025-11-25, basic/utilities/tasks: a tool's `isError` is a failure. In the extension
            // it is a result like any other.
            State::Completed { is_error: true, .. } if self.revision.has_requested_tasks() => {
                TaskStatus::Failed
            }
            State::Completed { .. } => TaskStatus::Completed,
            State::Failed { .. } => TaskStatus::Failed,
            State::Cancelled => TaskStatus::Cancelled,
        }
    }

    /// As the extension shows it, without its outcome.
    pub(super) fn to_task(&self, now: u64) -> task_extension::Task {
        task_extension::Task {
            task_id: self.id.clone(),
            status: self.status(),
            status_message: self.message.clone(),
            created_at: iso(self.created),
            last_updated_at: iso(self.updated),
            ttl_ms: Some(self.ttl),
            poll_interval_ms: Some(self.poll(now)),
        }
    }

    /// As the extension shows it, with its questions or its outcome.
    pub(super) fn to_detail(&self, now: u64) -> task_extension::GetTaskResult {
        let mut detail =
            task_extension::GetTaskResult { task: self.to_task(now), ..Default::default() };
        match &self.state {
            State::Waiting { open } => detail.input_requests = Some(open.clone()),
            State::Completed { result, .. } => detail.result = Some(result.clone()),
            State::Failed { error } => detail.error = Some(error.clone()),
            State::Working | State::Elsewhere | State::Cancelled => {}
        }
        detail
    }

    /// As 2025-11-25 shows it.
    pub(super) fn to_legacy(&self, now: u64) -> model::Task {
        self.to_task(now).into()
    }
}

/// The result of a tool as text, in the revision of its caller: complete, as the official client of
/// tasks demands. What it is sent in says who sends it.
pub(super) fn payload(result: &mut CallToolResult, revision: Revision) -> Result<Json, String> {
    result.adapt(revision).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    result.write(&mut text).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    Json::from_text(text).map_err(|error| error.to_string())
}

/// Milliseconds since 1970 as ISO 8601, in UTC.
pub(crate) fn iso(millis: u64) -> String {
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    let fields = [(year, 4, '-'), (month, 2, '-'), (day, 2, 'T'), (hour, 2, ':'), (minute, 2, ':')];
    let mut text = String::with_capacity("1970-01-01T00:00:00.000Z".len());
    for (value, digits, end) in fields.into_iter().chain([(second, 2, '.'), (millis, 3, 'Z')]) {
        // A tenth of the instructions of `format!`, and each task has two times.
        for place in (0..digits).rev() {
            text.push(char::from(b'0' + (value / 10_u64.pow(place) % 10) as u8));
        }
        text.push(end);
    }
    text
}

/// The date of a day since 1970, in the proleptic Gregorian calendar: counted in eras of 400 years
/// that begin on 1 March, so that leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_iso_8601() {
        fn check(millis: u64, expected: &str) {
            assert_eq!(iso(millis), expected);
        }
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_868_799_999, "2000-02-29T23:59:59.999Z");
        check(951_868_800_000, "2000-03-01T00:00:00.000Z");
        check(1_735_689_599_042, "2024-12-31T23:59:59.042Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }
}
