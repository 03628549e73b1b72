#!/usr/bin/env node
// Starts the program that the package for this system carries, with the same streams and arguments.
"use strict";

const { spawn } = require("node:child_process");

const name = `bowline-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "bowline.exe" : "bowline";

let program;
try {
  program = require.resolve(`${name}/${file}`);
} catch {
  console.error(`bowline: there is no package ${name}
help: on other systems, install it with: cargo install bowline-cli`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`bowline: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  process.exit(code ?? 128 + (require("node:os").constants.signals[signal] ?? 0));
});
