import { chmodSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { describe, expect, test } from "vitest";
import type { RuntimeOptions, SessionOptions } from "../options/runtime-options.ts";

interface Trial {
  readonly calls: readonly { readonly name: string; readonly input: Readonly<Record<string, unknown>> }[];
  /** What is in the project before. */
  readonly before?: (project: string, root: string) => void;
  /** What happens while the first, second … answer is awaited. */
  readonly meanwhile: readonly ((project: string, root: string) => void)[];
  readonly session?: SessionOptions;
  readonly runtime?: RuntimeOptions;
}

/** Allows every question, after something has changed; shows the reasons that were given and what the model read. */
async function answerAfter({ calls, before, meanwhile, session, runtime }: Trial) {
  const reasons: string[] = [];
  await using sample = await createSampleRuntime([{ calls }, "Well."], {
    ...runtime,
    canUseTool: async (_tool, input, { reason }) => {
      const act = meanwhile[reasons.length];
      reasons.push(reason);
      act?.(project, root);
      return { behavior: "allow", updatedInput: structuredClone(input) };
    },
  });
  const { project, root } = sample.workspace;
  before?.(project, root);
  await sample.runtime.run("Go.", session).result;
  const reported = JSON.stringify(sample.requests[1]?.messages.at(-1));
  const names = (folder: string): readonly string[] =>
    readdirSync(folder, { recursive: true, encoding: "utf8" });
  return { reasons, reported, outside: readdirSync(root), inside: names(project) };
}

const bash = (command: string) => ({ name: "Bash", input: { command } });

describe.skipIf(process.platform === "win32")(
  "a link put there while an answer is awaited [PRM-10, APR-3]",
  () => {
    test("is asked about before a Write goes through it", async () => {
      const { reasons, outside } = await answerAfter({
        calls: [{ name: "Write", input: { file_path: "out.txt", content: "mine" } }],
        meanwhile: [(project, root) => symlinkSync(join(root, "elsewhere.txt"), join(project, "out.txt"))],
        session: { disallowedTools: [] },
      });
      expect(reasons).toHaveLength(2);
      expect(reasons[1]).toMatch(/something has changed: it would touch .*elsewhere\.txt now/);
      expect(outside).toContain("elsewhere.txt");
    });

    test("leads a Read nowhere that a rule denies, although the call was allowed", async () => {
      const { reasons, reported } = await answerAfter({
        calls: [{ name: "Read", input: { file_path: "../open.txt" } }],
        before(project, root) {
          writeFileSync(join(root, "open.txt"), "harmless");
          mkdirSync(join(project, "secrets"));
          writeFileSync(join(project, "secrets/key.txt"), "the secret");
        },
        meanwhile: [
          (project, root) => {
            rmSync(join(root, "open.txt"));
            symlinkSync(join(project, "secrets/key.txt"), join(root, "open.txt"));
          },
        ],
        session: { disallowedTools: ["Read(secrets/**)"] },
      });
      expect(reasons).toHaveLength(1);
      expect(reported).toContain("denies it");
      expect(reported).not.toContain("the secret");
    });

    test.each<[string, string, (project: string, root: string) => void, RegExp]>([
      [
        "to a file that a rule denies",
        "cp notes.txt made.txt",
        (project) => {
          rmSync(join(project, "notes.txt"));
          symlinkSync("secrets/key.txt", join(project, "notes.txt"));
        },
        /denies it/,
      ],
      [
        "by a folder above it",
        "tee out/made.txt",
        (project) => {
          rmSync(join(project, "out"), { recursive: true });
          symlinkSync("secrets", join(project, "out"));
        },
        /denies it/,
      ],
    ])("leads a command nowhere: %s", async (_, command, act, why) => {
      const { reasons, reported, inside } = await answerAfter({
        calls: [bash(command)],
        before(project) {
          mkdirSync(join(project, "secrets"));
          mkdirSync(join(project, "out"));
          writeFileSync(join(project, "secrets/key.txt"), "the secret");
          writeFileSync(join(project, "notes.txt"), "harmless");
        },
        meanwhile: [act],
        session: { disallowedTools: ["Read(secrets/**)", "Edit(secrets/**)"] },
      });
      expect(reasons).toHaveLength(1);
      expect(reported).toMatch(why);
      expect(inside.filter((name) => name.endsWith("made.txt"))).toEqual([]);
    });

    test("to a folder of git's is asked about again, with what changed", async () => {
      const { reasons } = await answerAfter({
        calls: [bash("cp notes.txt out/pre-commit")],
        before(project) {
          mkdirSync(join(project, "out"));
          mkdirSync(join(project, ".git/hooks"), { recursive: true });
          writeFileSync(join(project, "notes.txt"), "harmless");
        },
        meanwhile: [
          (project) => {
            rmSync(join(project, "out"), { recursive: true });
            symlinkSync(".git/hooks", join(project, "out"));
          },
        ],
      });
      expect(reasons).toHaveLength(2);
      expect(reasons[1]).toMatch(/\.git\/hooks\/pre-commit is protected/);
    });

    test("again and again ends in a refusal that says so", async () => {
      const swap = (to: string) => (project: string) => {
        rmSync(join(project, "out"), { recursive: true, force: true });
        symlinkSync(to, join(project, "out"));
      };
      const { reasons, reported, inside } = await answerAfter({
        calls: [bash("cp notes.txt out/made")],
        before(project) {
          for (const name of ["a", "b", "c", "d"]) mkdirSync(join(project, name));
          writeFileSync(join(project, "notes.txt"), "harmless");
          symlinkSync("a", join(project, "out"));
        },
        meanwhile: [swap("b"), swap("c"), swap("d")],
      });
      expect(reasons).toHaveLength(3);
      expect(reported).toContain("it was asked about 3 times");
      expect(inside.filter((name) => name.endsWith("made"))).toEqual([]);
    });

    test("does not matter where the call stays the same", async () => {
      const { reasons, inside } = await answerAfter({
        calls: [bash("cp notes.txt made")],
        before: (project) => writeFileSync(join(project, "notes.txt"), "harmless"),
        meanwhile: [(project) => writeFileSync(join(project, "unrelated"), "")],
      });
      expect(reasons).toHaveLength(1);
      expect(inside).toContain("made");
    });
  },
);

describe("a script that is changed while an answer is awaited [APR-3]", () => {
  test.each([
    ["sh x.sh", "x.sh"],
    ["bash ./x.sh", "x.sh"],
    ["./x.sh", "x.sh"],
    ["cd sub && ./y.sh", "sub/y.sh"],
    ["timeout 5 sh x.sh", "x.sh"],
    ["env A=1 sh x.sh", "x.sh"],
    [". ./x.sh", "x.sh"],
    ["node x.js", "x.js"],
    ["node --import=./x.js -e 0", "x.js"],
    ["python3 x.py", "x.py"],
    ["npm run build", "package.json"],
    ["cd sub && make", "sub/Makefile"],
  ])("%s is asked about again", async (command, file) => {
    const { reasons } = await answerAfter({
      calls: [bash(command)],
      before(project) {
        mkdirSync(join(project, "sub"));
        for (const name of ["x.sh", "sub/y.sh", "x.js", "x.py", "package.json", "sub/Makefile"]) {
          writeFileSync(join(project, name), "");
          chmodSync(join(project, name), 0o755);
        }
      },
      meanwhile: [(project) => writeFileSync(join(project, file), "#")],
    });
    expect(reasons).toHaveLength(2);
    expect(reasons[1]).toContain(`${file} was changed`);
  });

  test("holds up nothing where a command only uses it as data", async () => {
    const { reasons } = await answerAfter({
      calls: [bash("cp x.sh y.sh")],
      before: (project) => writeFileSync(join(project, "x.sh"), ""),
      meanwhile: [(project) => writeFileSync(join(project, "x.sh"), "#")],
    });
    expect(reasons).toHaveLength(1);
  });
});

test("what was decided before a person was asked about a later call is judged again before it runs [PRM-10]", async () => {
  const { reasons, reported } = await answerAfter({
    calls: [
      { name: "Read", input: { file_path: "notes.txt" } },
      { name: "Read", input: { file_path: "../open.txt" } },
    ],
    before(project, root) {
      writeFileSync(join(root, "open.txt"), "opened");
      mkdirSync(join(project, "secrets"));
      writeFileSync(join(project, "secrets/key.txt"), "the secret");
      writeFileSync(join(project, "notes.txt"), "harmless");
    },
    meanwhile: [
      (project) => {
        rmSync(join(project, "notes.txt"));
        symlinkSync("secrets/key.txt", join(project, "notes.txt"));
      },
    ],
    session: { disallowedTools: ["Read(secrets/**)"] },
  });
  expect(reasons).toHaveLength(1);
  expect(reported).toContain("opened");
  expect(reported).toContain("it is no longer covered");
  expect(reported).not.toContain("the secret");
});
