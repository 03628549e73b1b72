// OpenAI's agents in JavaScript, with schemas in strict mode: `node openai_agents.mjs <servers> <URL>`, with the
// same checks and the same lines as `checks.py`.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { Agent, getAllMcpTools, MCPServerStdio, MCPServerStreamableHttp, RunContext } from "@openai/agents";

const PATIENCE = 60_000;

const LACKS = {
  error: "errors come back as plain text",
  elicit: "has no callback for it",
  title: "drops titles",
};

let failures = 0;

/** The tools of a server as it lists them, without any framework. */
async function listed([program, ...args]) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
  const say = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const clientInfo = { name: "checks", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  say({ id: 1, method: "initialize", params });
  for await (const line of createInterface({ input: child.stdout })) {
    const { id, result } = JSON.parse(line);
    if (id === 1) {
      say({ method: "notifications/initialized" });
      say({ id: 2, method: "tools/list" });
    }
    if (id === 2) {
      child.stdin.end();
      return result.tools;
    }
  }
  throw new Error(`${program} did not answer`);
}

async function check(where, name, work) {
  if (name in LACKS) {
    console.log(`lacks ${where} ${name}: ${LACKS[name]}`);
    return;
  }
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("timed out")), PATIENCE);
  });
  try {
    await Promise.race([work(), late]);
    console.log(`ok ${where} ${name}`);
  } catch (error) {
    failures += 1;
    console.log(`not ok ${where} ${name}: ${String(error).replaceAll(/\s+/g, " ").slice(0, 600)}`);
  } finally {
    clearTimeout(timer);
  }
}

function expect(holds, what) {
  if (!holds) {
    throw new Error(what);
  }
}

/** All strings in a value. */
function strings(value) {
  if (typeof value === "string") {
    return [value];
  }
  return value && typeof value === "object" ? Object.values(value).flatMap(strings) : [];
}

/** Whether an object in a schema takes members of any name. */
function isOpen(schema) {
  if (!schema || typeof schema !== "object") {
    return false;
  }
  const more = schema.additionalProperties;
  return more === true || typeof more === "object" || Object.values(schema).some(isOpen);
}

/** The words that a schema allows: itself, or also in what it contains. */
function words(schema, isDeep) {
  if (!schema || typeof schema !== "object") {
    return [];
  }
  const inner = isDeep || Array.isArray(schema) ? Object.values(schema) : [schema.oneOf, schema.anyOf];
  const found = [...(schema.enum ?? []), schema.const ?? null].filter((word) => word !== null);
  return [...found, ...inner.flatMap((it) => words(it, isDeep))];
}

/** Fails if a converted schema lacks an argument, a choice, or the description of one. */
function compare(tool, schema, converted) {
  for (const [name, wanted] of Object.entries(schema.properties ?? {})) {
    const property = converted.properties?.[name];
    expect(property !== undefined, `${tool}.${name} is missing`);
    const found = strings(property);
    const lost = words(wanted, false).filter((word) => !found.includes(word));
    expect(lost.length === 0, `${tool}.${name} lost the choices ${lost}`);
    const about = wanted.description ?? "";
    expect(found.some((text) => text.includes(about)) || about === "", `${tool}.${name} lost its description`);
  }
}

async function connected(target, work) {
  const server =
    typeof target === "string"
      ? new MCPServerStreamableHttp({ url: target })
      : new MCPServerStdio({ command: target[0], args: target.slice(1) });
  await server.connect();
  try {
    const context = new RunContext({});
    const agent = new Agent({ name: "checks" });
    const tools = await getAllMcpTools([server], context, agent, true);
    const call = async (name, args) => {
      const tool = tools.find((it) => it.name === name);
      expect(tool, `the tool ${name} is missing`);
      return JSON.stringify(await tool.invoke(context, JSON.stringify(args)));
    };
    await work(tools, call);
  } finally {
    await server.close();
  }
}

async function convert(command) {
  const wanted = await listed(command);
  await connected(command, (tools) => {
    for (const { name, inputSchema } of wanted) {
      const tool = tools.find((it) => it.name === name.replaceAll("-", "_"));
      expect(tool, `the tool ${name} is missing`);
      compare(name, inputSchema, tool.parameters);
      expect(tool.strict || isOpen(inputSchema), `${name} is not strict`);
    }
  });
}

/** Choices in lists, in objects and in alternatives. */
async function inner(command) {
  const wanted = await listed(command);
  await connected(command, (tools) => {
    for (const name of ["choices", "nested", "either"]) {
      const { inputSchema } = wanted.find((it) => it.name === name);
      const found = strings(tools.find((it) => it.name === name).parameters);
      const lost = words(inputSchema, true).filter((word) => !found.includes(word));
      expect(lost.length === 0, `${name} lost the choices ${lost}`);
    }
  });
}

const CHECKS = {
  async call(call) {
    const said = await call("numbers", { small: 1, large: 2, size: 3, signed: -4, fraction: 0.5, ratio: null });
    expect(said.includes("1 2 3 -4 0.5"), said);
    expect((await call("nothing", {})).includes("nothing"), "nothing");
  },
  async choose(call) {
    const said = await call("choices", { order: "date", orders: ["name", "none"], other: null, color: null });
    expect(said.includes("Date") && said.includes("Name"), said);
  },
  async null(call) {
    const optional = ["word", "count", "hurry", "words", "place", "limit"];
    const absent = Object.fromEntries(optional.map((name) => [name, null]));
    const said = await call("options", { text: "here", ...absent });
    expect(said.includes("here None None None None None 10"), said);
    const raw = await call("raw", { text: "here", word: null });
    expect(raw.includes("here") && !raw.includes("word"), raw);
  },
  error() {},
  elicit() {},
};

const [servers, url] = [JSON.parse(process.argv[2]), process.argv[3]];
for (const [name, command] of Object.entries(servers)) {
  await check(name, "convert", () => convert(command));
}
await check("shapes", "inner", () => inner(servers.shapes));
for (const [where, target] of [["stdio", servers.shapes], ["http", url]]) {
  for (const [name, work] of Object.entries(CHECKS)) {
    await check(where, name, () => connected(target, (_, call) => work(call)));
  }
}
await check("stdio", "title", () => {});
process.exit(failures > 0 ? 1 : 0);
