//! Instruction counts from callgrind, which hardly depend on the load of the machine.

use std::process::Command;

use crate::caller::Caller;
use crate::frames::Calls;
use crate::http::Connections;
use crate::pipe::{Pipe, Until};
use crate::program::{Line, Program};

/// The program that counts.
pub(crate) const PROGRAM: &str = "valgrind";

const COUNT: &[&str] = &[PROGRAM, "--tool=callgrind", "--callgrind-out-file=/dev/null"];

/// Whether callgrind is installed.
pub(crate) fn is_here() -> bool {
    Command::new(PROGRAM).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The number of calls in the shorter of two runs; the longer makes three times as many. The
/// difference is the cost of the calls, without start-up and shutdown.
const CALLS: u64 = 400;
const WINDOW: usize = 16;

/// The instructions of a program that repeats something as often as its last argument says.
pub(crate) fn of_program(line: &Line, times: u64) -> Result<f64, String> {
    let count = |times: u64| {
        let line = line.and(&[&times.to_string()]).under(COUNT);
        let output = Command::new(&line.0[0]).args(&line.0[1..]).output();
        let output = output.map_err(|error| format!("{PROGRAM}: {error}"))?;
        collected(&String::from_utf8_lossy(&output.stderr))
    };
    Ok((count(3 * times)? - count(times)?) / (2 * times) as f64)
}

/// The instructions that a server on standard streams takes per call.
pub(crate) async fn of_pipe_server(line: &Line, calls: &Calls) -> Result<f64, String> {
    let mut counts = [0.0; 2];
    for (count, times) in counts.iter_mut().zip([CALLS, 3 * CALLS]) {
        let (program, input, output) = Program::pipes(&line.under(COUNT))?;
        let mut pipe = Pipe::open(input, output, calls.revision).await?;
        pipe.run(calls, WINDOW, Until::Calls(times)).await?;
        drop(pipe);
        *count = collected(&program.wait().await?)?;
    }
    Ok((counts[1] - counts[0]) / (2 * CALLS) as f64)
}

/// The instructions that a server over HTTP takes per call.
pub(crate) async fn of_http_server(line: &Line, calls: &Calls) -> Result<f64, String> {
    let mut counts = [0.0; 2];
    for (count, times) in counts.iter_mut().zip([CALLS, 3 * CALLS]) {
        let (program, address) = Program::listening(&line.under(COUNT)).await?;
        let mut connections = Connections::open(address, calls, 1).await?;
        connections.run(calls, Until::Calls(times)).await?;
        drop(connections);
        *count = collected(&program.end().await?)?;
    }
    Ok((counts[1] - counts[0]) / (2 * CALLS) as f64)
}

/// The instructions that a client takes per call.
pub(crate) async fn of_client(line: &Line) -> Result<f64, String> {
    let mut counts = [0.0; 2];
    for (count, times) in counts.iter_mut().zip([CALLS, 3 * CALLS]) {
        let mut caller = Caller::start(&line.under(COUNT)).await?;
        caller.call(times, WINDOW).await?;
        *count = collected(&caller.end().await?)?;
    }
    Ok((counts[1] - counts[0]) / (2 * CALLS) as f64)
}

fn collected(said: &str) -> Result<f64, String> {
    let line = said.lines().find_map(|line| line.split_once("Collected : "));
    let count = line.and_then(|(_, count)| count.trim().parse().ok());
    count.ok_or_else(|| format!("{PROGRAM} counted nothing: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found() {
        assert_eq!(collected("==1== \n==1== Collected : 1234\n"), Ok(1234.0));
        assert!(collected("nothing").is_err());
    }
}
