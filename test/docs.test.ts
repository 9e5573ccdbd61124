import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, posix } from "node:path";
import { text } from "node:stream/consumers";
import { toolAliases } from "@retinue/base/foundation/tool-table.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import { projectCommands } from "@retinue/hosts/cli/program/project-commands.ts";
import { sessionCommands } from "@retinue/hosts/cli/program/session-commands.ts";
import { commandFlags, runFlags } from "@retinue/hosts/shared/flags.ts";
import { longName } from "@retinue/hosts/shared/option-entry.ts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { withFieldTable, withOptionTables } from "../scripts/option-tables.ts";
import { installOnDemand } from "./on-demand/install-on-demand.ts";
import { type ProjectFile, projectRoot, readProjectFile, readProjectFiles } from "./project-files.ts";
import { type Ended, runPrograms } from "./run-programs.ts";
import { type AtEnd, createPlace } from "./scenarios/run-command.ts";
import { type CommandServer, startCommandServer } from "./start-command-server.ts";
import { keys, openPty } from "./terminal/pty-stage.ts";

const pages = [
  ...[
    "README.md",
    "ARCHITECTURE.md",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "GLOSSARY.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "PRIVACY.md",
    "ROADMAP.md",
  ].map((path) => ({
    path,
    text: readProjectFile(path),
  })),
  ...["docs", "examples"].flatMap((folder) => readProjectFiles(folder).filter(isPage)),
];
const blocks = pages.flatMap(readBlocks);
const runnable = blocks.filter(({ language, mark }) => /^(ts|sh)$/.test(language) && mark.startsWith("run"));
const needsTelemetry = ({ mark }: Block): boolean => /\bwith=telemetry\b/.test(mark);
const telemetry = await installOnDemand("telemetry");
const skipped = telemetry.missing === undefined ? "" : ` (skipped: ${telemetry.missing})`;

describe("examples on the pages do what the pages say", () => {
  test("there are examples of both kinds, and every output belongs to one", () => {
    expect(new Set(runnable.map(({ language }) => language))).toEqual(new Set(["ts", "sh"]));
    const outputs = blocks.filter(({ mark }) => mark === "output").length;
    expect(runnable.filter(({ output }) => output !== undefined)).toHaveLength(outputs);
  });

  let server: CommandServer;
  beforeAll(async () => {
    server = await startCommandServer();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const programs = runnable.filter(({ language }) => language === "ts");
  let ended: Promise<readonly Ended[]> | undefined;
  /** All programs run in one process, and each shell line in one of its own. */
  const run = async (block: Block): Promise<Ended> => {
    if (block.language === "sh") return runLines(block, server);
    ended ??= runTogether(programs);
    return (await ended)[programs.indexOf(block)] ?? { status: null, stdout: "", stderr: "It did not run." };
  };

  const check = async (_: string, block: Block): Promise<void> => {
    const { status, stdout, stderr } = await run(block);
    const expectedStatus = Number(/exit=(\d+)/.exec(block.mark)?.[1] ?? 0);
    expect({ status, stderr: status === expectedStatus ? "" : stderr }).toEqual({
      status: expectedStatus,
      stderr: "",
    });
    if (block.output !== undefined) expect(withoutTrailing(stdout)).toBe(withoutTrailing(block.output));
  };
  const named = (those: readonly Block[]) => those.map((block) => [block.place, block] as const);
  test.each(named(runnable.filter((block) => !needsTelemetry(block))))("%s", check);
  describe.skipIf(telemetry.missing !== undefined)(`with OpenTelemetry installed${skipped}`, () => {
    test.each(named(runnable.filter(needsTelemetry)))("%s", check);
  });

  test("no example has syntax that the lowest Node version in `engines` cannot parse", () => {
    const code = blocks.filter(({ language }) => language === "ts");
    expect(code.filter(({ text }) => text.includes("await using")).map(({ place }) => place)).toEqual([]);
  });

  test("every example in TypeScript has the right types", () => {
    const folder = createFolder();
    for (const [index, { text }] of blocks.filter(({ language }) => language === "ts").entries()) {
      writeFileSync(join(folder, `example-${index}.ts`), text);
    }
    const options = { extends: join(projectRoot, "tsconfig.json"), include: ["*.ts"] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
    const compiler = join(projectRoot, "node_modules/typescript/bin/tsc");
    const { status, stdout } = spawnSync(
      process.execPath,
      [compiler, "-p", folder, "--noUnusedLocals", "false"],
      {
        encoding: "utf8",
      },
    );
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });
});

describe("links lead somewhere", () => {
  test.each(pages.map((page) => [page.path, page] as const))("from %s", (_, page) => {
    expect(readLinks(page).filter((target) => !leadsSomewhere(page, target))).toEqual([]);
  });

  test("every page under docs is reached from its index", () => {
    const reached = readLinks({ path: "docs/README.md", text: readProjectFile("docs/README.md") });
    const own = pages.map(({ path }) => path).filter((path) => /^docs\/[^/]+\.md$/.test(path));
    expect(
      own.filter((path) => path !== "docs/README.md" && !reached.includes(posix.basename(path))),
    ).toEqual([]);
  });

  test("the package contains what its README and pages link to", () => {
    const { files } = JSON.parse(readProjectFile("package.json")) as { readonly files: readonly string[] };
    const published = pages.filter(({ path }) => path === "README.md" || path.startsWith("docs/"));
    const missing = published.flatMap((page) =>
      readLinks(page)
        .map((target) => posix.join(dirname(page.path), target.split("#")[0] ?? ""))
        .filter((target) => !files.includes(target.split("/")[0] ?? "")),
    );
    expect(missing.filter((target) => target !== "." && !target.startsWith("README.md"))).toEqual([]);
  });

  test("the check sees a link that leads nowhere", () => {
    const page = {
      path: "docs/x.md",
      text: "[a](nowhere.md) [b](trust.md#nothing) [c](trust.md#trusting-a-folder)",
    };
    expect(readLinks(page).filter((target) => !leadsSomewhere(page, target))).toEqual([
      "nowhere.md",
      "trust.md#nothing",
    ]);
  });
});

describe("the pages name all that the source has", () => {
  const explained = ["definitions", "settings", "plugins", "skills", "mcp", "instructions", "memory"].flatMap(
    (name) =>
      [...readProjectFile(`docs/${name}.md`).matchAll(/^\| `([a-z]+(?:-[a-z]+)+)` \| /gm)].map(
        ([, code]) => code,
      ),
  );

  test("every code of a problem is explained, and no other [DEF-7]", () => {
    expect([...new Set(explained)].sort()).toEqual(diagnosticCodes());
  });

  test("every key of the settings", () => {
    const keys = readProjectFile("packages/config/src/settings/plain-settings.ts")
      .split("const plainReaders")[1]
      ?.split("} as const")[0];
    expectNamed(keys, /^ {2}(\w+): /gm, "docs/settings.md");
  });

  test("every environment variable", () => {
    expectNamed(
      readProjectFile("packages/config/src/settings/read-environment.ts"),
      /: \["([A-Z_]+)", /g,
      "docs/settings.md",
    );
  });

  test("every field of a definition", () => {
    const page = readProjectFile("docs/definitions.md");
    expect(withFieldTable(page), "Run npm run docs:api.").toBe(page);
  });

  test("every tool and every old name of one", () => {
    const page = readProjectFile("docs/tools.md");
    const effects = new Map([
      ["reads", "read"],
      ["edits", "edit"],
      ["runs commands", "execute"],
      ["uses the network", "network"],
      ["asks the person", "interact"],
      ["starts agents", "spawn"],
      ["coordinates", "coordinate"],
    ]);
    for (const [label, effect] of effects) {
      const listed = new RegExp(`^\\| ${label} \\| (.*) \\|$`, "m").exec(page)?.[1]?.split(", ") ?? [];
      const declared = builtinTools.filter((tool) => tool.effect === effect).map(({ name }) => name);
      expect(listed.sort(), label).toEqual(declared.sort());
    }
    const aliases = [
      ...page.matchAll(/^\| ((?:`\w+`(?:, )?)+) \| (\w+(?:, \w+)*?)(?:, which .*)? \|$/gm),
    ].flatMap(([, old = "", current = ""]) => {
      const names = current.split(", ");
      return old.split(", ").map((name, at) => [name.replaceAll("`", ""), names[at] ?? names[0]]);
    });
    expect(aliases.sort()).toEqual([...toolAliases].map(([old, current]) => [old, current]).sort());
  });

  test("every name that the library exports", () => {
    const pinned = readProjectFile("test/public-surface.test.ts");
    const root = /exportedNames = \[([^\]]*)\]/.exec(pinned)?.[1] ?? "";
    const subpaths = /subpathNames = \{([^}]*)\}/.exec(pinned)?.[1] ?? "";
    const testing = /testingNames = \[([^\]]*)\]/.exec(pinned)?.[1] ?? "";
    expectNamed(
      `${root}${subpaths}${testing}`,
      /"(\w+)"/g,
      ...["embedding", "servers", "own-model", "testing", "reading-files"].map((name) => `docs/${name}.md`),
    );
  });

  test("every option of createRuntime and of a session", () => {
    const source = readProjectFile("packages/core/src/kernel/options/runtime-options.ts");
    const hidden = ["childrenOnly", "leadsTeam", "offlineDemo", "resumeAt", "resumeDrops"];
    for (const name of ["RuntimeOptions", "SessionOptions"]) {
      const body = new RegExp(`export interface ${name}[^{]*\\{([\\s\\S]*?)\\n\\}`).exec(source)?.[1] ?? "";
      const options = body.replace(new RegExp(`readonly (${hidden.join("|")})\\?`, "g"), "");
      expectNamed(options, /readonly (\w+)\?:/g, "docs/embedding.md");
    }
  });

  test("every command and every option [CLI-2]", () => {
    // `teams [list]` names the command as well.
    const page = readProjectFile("docs/command-line.md").replaceAll(/[[\]]/g, "");
    const commands = [...projectCommands, ...sessionCommands].filter(({ isHidden }) => isHidden !== true);
    const options = [
      ...Object.values(commandFlags),
      ...Object.values(runFlags),
      ...commands.flatMap((each) => each.options ?? []),
    ];
    const words = [
      ...commands.map(({ usage }) => usage.split(/ [<[]/)[0] ?? ""),
      ...options.map((option) => longName(option)),
    ];
    expect(words.length).toBeGreaterThan(150);
    expect([...new Set(words)].filter((word) => !page.includes(word))).toEqual([]);
  });
});

test("the tables of flags in docs/command-line.md are those of the source", () => {
  const page = readProjectFile("docs/command-line.md");
  expect(withOptionTables(page), "Run npm run docs:api.").toBe(page);
});

test("README gives the two commands exactly and stays short", () => {
  const text = readProjectFile("README.md");
  expect(text).toContain("run:   npm ci && npm start\n");
  expect(text).toContain("test:  npm ci && npm test\n");
  expect(text.split("\n").length).toBeLessThanOrEqual(121);
});

describe("npm start", () => {
  const { HOME: _home, ...environment } = process.env;
  const home = () => temporaryFolder("retinue-home-");
  const tour = (folder: string) =>
    execFileSync(process.execPath, [join(projectRoot, "scripts/tour.ts")], {
      encoding: "utf8",
      env: { ...environment, HOME: folder, COLUMNS: "80" },
      stdio: ["ignore", "pipe", "ignore"],
    });

  test("runs its commands for real, in an empty home, fits 80 columns, and is short", () => {
    const folder = home();
    const output = tour(folder);
    expect(output).toMatch(/\$ retinue agents\nNAME .*\n.*\n?code-reviewer +project/);
    expect(output).toMatch(/\$ retinue agents show release-captain\nrelease-captain\n/);
    expect(output).toMatch(/broken-limit\.md:4:1: error: /);
    expect(output).toMatch(
      /\$ retinue -p "what is here" --model offline\n\[offline model: [^\]]*\]\n\n# Map of /,
    );
    for (const sent of ["Map src", "Map docs", "Map tests", "Plan a first reading"])
      expect(output).toContain(`    ${sent}\n`);
    expect(output.match(/^a[0-9a-f]{16} +(?:Explore|Plan) +completed/gm)).toHaveLength(4);
    const lines = output.split("\n");
    expect(lines.length).toBeLessThan(130);
    expect(lines.filter((line) => [...line].length > 80 && !line.startsWith("$ alias"))).toEqual([]);
    expect(existsSync(join(folder, ".claude"))).toBe(false);
  });

  test("shows a step a screen in a terminal, goes on with a key and ends with q", async () => {
    const place = createPlace();
    const script = join(projectRoot, "scripts/tour.ts");
    const open = () => openPty(place, [], { columns: 80, rows: 24, shell: `exec "$1" '${script}'` });
    const pty = open();
    const heads = [
      "Retinue reads the agents",
      "1. This example project has",
      "2. One agent in full",
      "3. Mistakes in",
      "4. Agents at work",
      "5. Agents are recorded",
      "6. A report of",
    ];
    for (const [at, head] of heads.entries()) {
      await pty.shows(
        head,
        at === 6
          ? "[next: the end] any key continues, q ends"
          : `[next: ${at + 1} of 6] any key continues, q ends`,
      );
      pty.type(" ");
    }
    await pty.shows("That was the tour.");
    expect((await pty.exited).code).toBe(0);
    const ended = open();
    await ended.shows("[next: 1 of 6]");
    ended.type("q");
    expect((await ended.exited).code).toBe(0);
    expect((await ended.screen()).join("\n")).not.toContain("1. This example project");
    const stopped = open();
    await stopped.shows("[next: 1 of 6]");
    stopped.type(keys.ctrlC);
    expect((await stopped.exited).code).toBe(130);
  });
});

interface Block {
  readonly place: string;
  readonly language: string;
  /** What follows the language: `run`, `run exit=1`, `output`. */
  readonly mark: string;
  readonly text: string;
  readonly output?: string;
}

function readBlocks({ path, text }: ProjectFile): Block[] {
  const found = [...text.matchAll(/^```(\w+)(?: (.*))?\n([\s\S]*?)^```$/gm)].map((match): Block => {
    const line = text.slice(0, match.index).split("\n").length;
    return { place: `${path}:${line}`, language: match[1] ?? "", mark: match[2] ?? "", text: match[3] ?? "" };
  });
  return found.map((block, index) => {
    const next = found[index + 1];
    return next?.mark === "output" ? { ...block, output: next.text } : block;
  });
}

/** Programs in projects of their own, that have the package installed. */
async function runTogether(blocks: readonly Block[]): Promise<readonly Ended[]> {
  const ends: (() => void | PromiseLike<void>)[] = [];
  try {
    const programs = blocks.map(({ text: code }) => {
      const folder = createFolder((end) => ends.push(end));
      writeFileSync(join(folder, "example.ts"), code);
      return {
        file: join(folder, "example.ts"),
        cwd: join(folder, "examples/workspace"),
        home: join(folder, "home"),
      };
    });
    return await runPrograms(programs, environmentOf(""));
  } finally {
    for (const end of ends) await end();
  }
}

/** Lines that need a process: the exporter of a library writes to the process's own stdout, past the command. */
const needsProcess = /OTEL_TRACES_EXPORTER/;

/** Lines of a shell with `retinue` on the path: the built command on the first page, and where its process matters. */
async function runLines(block: Block, server: CommandServer): Promise<Ended> {
  const { place, text: lines } = block;
  const folder = createFolder();
  const cwd = join(folder, "examples/workspace");
  if (needsTelemetry(block)) {
    symlinkSync(join(telemetry.folder, "node_modules"), join(cwd, "node_modules"), "junction");
    const state = { projects: { [cwd]: { hasTrustDialogAccepted: true } } };
    writeFileSync(join(folder, "home/.claude.json"), JSON.stringify(state));
  }
  const isBuilt = place.startsWith("README.md") || needsProcess.test(lines);
  const built = `#!/bin/sh\nexec "${process.execPath}" "${join(projectRoot, "bin/retinue.js")}" "$@"\n`;
  const command = join(folder, "bin/retinue");
  writeFileSync(command, isBuilt ? built : server.command);
  chmodSync(command, 0o755);
  writeFileSync(join(folder, "example.sh"), lines);
  const child = spawn("sh", ["-e", join(folder, "example.sh")], {
    cwd,
    env: environmentOf(folder),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number | null]>,
  ]);
  return { status, stdout, stderr };
}

function environmentOf(folder: string): Readonly<Record<string, string>> {
  return {
    HOME: join(folder, "home"),
    PATH: [join(folder, "bin"), process.env["PATH"]].join(delimiter),
    COLUMNS: "80",
    RETINUE_LOCAL_MODELS: "0",
  };
}

/** The examples, an empty home, and this package as one that was installed. */
function createFolder(atEnd: AtEnd = onTestFinished): string {
  const folder = temporaryFolder("retinue-docs-", atEnd);
  for (const name of ["home", "bin", "node_modules"]) mkdirSync(join(folder, name));
  cpSync(join(projectRoot, "examples"), join(folder, "examples"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  symlinkSync(projectRoot, join(folder, "node_modules/retinue"), "junction");
  // What a program that uses the package installs beside it.
  for (const name of ["@types", "zod"]) {
    symlinkSync(join(projectRoot, "node_modules", name), join(folder, "node_modules", name), "junction");
  }
  return folder;
}

function temporaryFolder(prefix: string, atEnd: AtEnd = onTestFinished): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function withoutTrailing(text: string): string {
  return text.replace(/[ \t]+$/gm, "").trimEnd();
}

/** Targets of links inside the repository, outside of code. */
function readLinks({ text }: ProjectFile): string[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target ?? "")
    .filter((target) => !/^[a-z]+:/.test(target));
}

function leadsSomewhere({ path }: Pick<ProjectFile, "path">, target: string): boolean {
  const [file = "", anchor] = target.split("#");
  const found = file === "" ? path : posix.join(dirname(path), file);
  if (!existsSync(join(projectRoot, found))) return false;
  return anchor === undefined || headingAnchors(readProjectFile(found)).includes(anchor);
}

function headingAnchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}

/** Folders that report problems with what a user can see today. Others have pages of their own when they are in use. */
const reportingFolders = [
  "base/src/foundation",
  "gate/src",
  "config/src",
  "core/src/context",
  "core/src/hooks",
  "core/src/mcp",
  "core/src/skills",
  "core/src/tools",
];

function diagnosticCodes(): string[] {
  const sources = reportingFolders
    .flatMap((folder) => readProjectFiles(`packages/${folder}`))
    .filter(
      ({ path, text }) =>
        !path.endsWith(".test.ts") && /\b(?:Issue|Diagnostic|NameRefusal|report)\b/.test(text),
    );
  // Why a server is held is a state of it, listed on its own page, and no problem.
  const texts = sources.map(({ text }) => text.replace(/type: "hold"[,;]\s*(?:readonly )?code: [^,;]*/g, ""));
  const codes = texts.flatMap((text) => [
    ...[...text.matchAll(/\bcode(?:: | = )([^,;]*)[,;]/g)].flatMap(([, value = ""]) => quotedCodes(value)),
    ...[...text.matchAll(/type \w*Code =([^;]*);/g)].flatMap(([, value = ""]) => quotedCodes(value)),
    ...[...text.matchAll(/\b(?:report|refuse|warn|unusable|issue)\(\s*(?:"\w+",\s*)?("[a-z-]+")/g)].flatMap(
      ([, value = ""]) => quotedCodes(value),
    ),
  ]);
  return [...new Set(codes)].sort();
}

function quotedCodes(text: string): string[] {
  return [...text.matchAll(/"([a-z]+(?:-[a-z]+)+)"/g)].map(([, code = ""]) => code);
}

function expectNamed(source: string | undefined, pattern: RegExp, ...pages: readonly string[]): void {
  const names = [...(source ?? "").matchAll(pattern)].map(([, name = ""]) => name);
  const text = pages.map((page) => readProjectFile(page)).join("\n");
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(text))).toEqual([]);
}

function isPage({ path }: ProjectFile): boolean {
  return path.endsWith(".md") && !/^examples\/(?:awkward|workspace\/\.claude|plugin\/agents)/.test(path);
}
