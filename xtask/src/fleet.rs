//! Fleets: their tests with a real Postgres and a real Redis, and the official suite against three
//! nodes behind a balancer.

use std::io::BufReader;
use std::process::{Child, Command, Stdio};

use crate::options::Options;
use crate::process::{Ran, command, run};
use crate::step::Outcome;
use crate::{cargo, conformance, debian};

pub(crate) fn step(options: &Options) -> Outcome {
    let variables = debian::stores();
    if let Err(why) = cargo::build("--bin conformance-server") {
        return Outcome::one(false, why);
    }
    let test = |name: &str| {
        let mut test = command(&format!("cargo test --package bowline-fleet --test {name}"));
        test.envs(variables.iter().map(|(name, value)| (name, value)));
        test
    };
    let mut trial = test("trial");
    if options.full {
        trial.env("BOWLINE_FULL", "1");
    }
    let mut output = String::new();
    for command in [test("it"), trial] {
        let Ran { ok, output: said } = run(command);
        if !ok {
            return Outcome::one(false, said);
        }
        output += said.lines().rev().find(|line| line.contains("tasks acknowledged")).unwrap_or("");
    }
    let mut stage = match Stage::open(test("trial")) {
        Ok(stage) => stage,
        Err(why) => return Outcome::one(false, why),
    };
    let mut judged = conformance::of_server(&stage.url);
    stage.close();
    judged.table = format!("    {}\n{}", output.trim(), judged.table);
    judged
}

/// Three nodes behind a balancer, until it is closed.
struct Stage {
    child: Child,
    url: String,
}

impl Stage {
    fn open(mut test: Command) -> Result<Self, String> {
        let program = std::path::absolute("target/debug/conformance-server");
        test.env("BOWLINE_STAGE", program.map_err(|error| error.to_string())?);
        test.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = test.spawn().map_err(|error| format!("cargo test: {error}"))?;
        let said = child.stdout.take().map(BufReader::new);
        let lines = said.into_iter().flat_map(std::io::BufRead::lines).map_while(Result::ok);
        let url = lines.into_iter().find_map(|line| Some(line.strip_prefix("stage: ")?.to_owned()));
        match url {
            Some(url) => Ok(Self { child, url }),
            None => {
                let _ = child.wait();
                Err("the nodes do not start; see above".to_owned())
            }
        }
    }

    /// Ends it: it waits for the end of its input.
    fn close(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.close();
    }
}
