import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { findCycles, findKnots } from "./find-cycles.ts";
import { folderOf, forbiddenHostImports, forbiddenImports, ownImports } from "./import-rules.ts";
import { importTable, readTable } from "./import-table.ts";
import { findImpureCode, hasIoMark, ioMark, isIoFolder, mayDoIo } from "./impure-code.ts";
import { readFunctions } from "./long-functions.ts";
import {
  isTest,
  isTypeScript,
  type ProjectFile,
  readProjectFile,
  readProjectFiles,
} from "./project-files.ts";
import { readTestMarks } from "./read-citations.ts";
import { readCode, readTokens } from "./source-tokens.ts";
import { testsWithoutSource, toBeRenamed } from "./tests-without-source.ts";

const everything = readProjectFiles();
const programs = everything.filter(isTypeScript);
const source = programs.filter(({ path }) => /^(src|packages)\//.test(path));
const product = source.filter((file) => !isTest(file));

describe("folders import only what is below them", () => {
  test("every folder of a package with an order is in the import table", () => {
    const ordered = new Set([...importTable.keys()].map((folder) => folder.split("/")[0] ?? ""));
    const unknown = new Set(
      source
        .map(({ path }) => folderOf(path))
        .filter((name) => ordered.has(name.split("/")[0] ?? "") && !importTable.has(name)),
    );
    expect([...unknown], "Add each folder to test/import-table.ts and to ARCHITECTURE.md.").toEqual([]);
  });

  test("no file imports a folder that its own may not", () => {
    expect(
      product.flatMap((file) => forbiddenImports(file)),
      "Move the shared part down, pass it in, or change test/import-table.ts and ARCHITECTURE.md together.",
    ).toEqual([]);
  });

  test("a test beside its source keeps to the same table, and may use testing as well", () => {
    expect(source.filter(isTest).flatMap((file) => forbiddenImports(file, ["testing"]))).toEqual([]);
  });

  test("hosts ask the kernel", () => {
    expect(
      product.flatMap((file) => forbiddenHostImports(file)),
      "Ask a group of the project (packages/core/src/kernel/project), or add to one what is missing.",
    ).toEqual([]);
  });

  test("ARCHITECTURE.md shows the table that is tested", () => {
    const section = readProjectFile("ARCHITECTURE.md").split("## Which folder may import which")[1] ?? "";
    const rows = section.split("\n## ")[0]?.match(/^\| `[\w/]+` \|.*$/gm) ?? [];
    const shown = readTable(
      rows.map((row) => row.replace(/^\| |`| \|$/g, "").replace("nothing", "")).join("\n"),
    );
    expect([...shown]).toEqual([...importTable]);
  });
});

test("no file imports itself by way of others, types aside", () => {
  const graph = new Map(
    product.map((file) => [
      file.path,
      ownImports(file)
        .filter(({ kind }) => kind !== "types")
        .map(({ target }) => target),
    ]),
  );
  expect(
    findCycles(graph).map((cycle) => cycle.join(" → ")),
    "Break each cycle: move what both ends need into a file of its own.",
  ).toEqual([]);
});

test("no more than 8 files know each other, types included", () => {
  const graph = new Map(product.map((file) => [file.path, ownImports(file).map(({ target }) => target)]));
  expect(
    findKnots(graph).filter((knot) => knot.length > 8),
    "Move the types that the lower files need out of the file that composes them.",
  ).toEqual([]);
});

test("no folder of a package depends on itself by way of others or of files beside it, types included", () => {
  const place = (path: string): string => /^packages\/[^/]+\/src\/[^/]+(?=\/)/.exec(path)?.[0] ?? path;
  const graph = new Map<string, string[]>();
  for (const file of product) {
    const from = place(file.path);
    const targets = ownImports(file).map(({ target }) => place(target));
    graph.set(from, [...(graph.get(from) ?? []), ...targets.filter((target) => target !== from)]);
  }
  // Files that know each other are counted above.
  const knots = findKnots(graph).filter((knot) => knot.some((name) => !name.endsWith(".ts")));
  expect(knots, "Move the types that both sides need below both.").toEqual([]);
});

test("processes are started in one place, where their errors have a listener from the first moment", () => {
  const starters = product.filter(({ text }) =>
    /import \{[^}]*\b(spawn|fork)\b[^}]*\} from "node:child_process"/.test(text),
  );
  expect(
    starters.map(({ path }) => path),
    "Use spawnProcess: a process that cannot be started ends the whole program where no one listens.",
  ).toEqual(["packages/base/src/foundation/spawn-process.ts"]);
});

test("every relative import of src names a file that is there", () => {
  const known = new Set(everything.map(({ path }) => path));
  const missing = source.flatMap((file) =>
    ownImports(file)
      .filter(({ target }) => !known.has(target))
      .map(({ line, specifier }) => `${file.path}:${line} ${specifier}`),
  );
  expect(missing).toEqual([]);
});

test("only files that are marked touch files, processes, the network, the clock or randomness", () => {
  const impure = product
    .filter((file) => !mayDoIo(file))
    .flatMap(({ path, text }) => findImpureCode(text).map((found) => `${path}:${found}`));
  expect(impure, `Pass the value in, or begin the file with \`${ioMark}\`.`).toEqual([]);
});

test("every file that is marked does I/O", () => {
  const marked = product.filter(({ path, text }) => hasIoMark(text) && !isIoFolder(path));
  expect(marked.filter(({ text }) => findImpureCode(text).length === 0).map(({ path }) => path)).toEqual([]);
});

describe("files stay small and well named", () => {
  test("no function has more than 120 lines", () => {
    const long = product.flatMap(({ path, text }) =>
      readFunctions(text).flatMap(({ name, line, lines }) =>
        lines > 120 ? [`${path}:${line} ${name} has ${lines} lines`] : [],
      ),
    );
    expect(long, "Split each at its ideas; what they share can be an object that the parts take.").toEqual(
      [],
    );
  });

  test("no file outside the tests has more than 800 lines", () => {
    const shipped = everything.filter(
      (file) => /^(src|packages|scripts|bench|bin|examples)\//.test(file.path) && !isTest(file),
    );
    const long = shipped
      .filter(({ path }) => /\.(ts|tsx|js)$/.test(path))
      .map((file) => ({ path: file.path, lines: lineCount(file) }))
      .filter(({ lines }) => lines > 800);
    expect(long, "Split each at the idea it holds too many of.").toEqual([]);
  });

  test("file names are kebab-case; a test may name its part of a file: `decide.properties.test.ts`", () => {
    const odd = programs.filter(
      ({ path }) =>
        !/^[a-z0-9]+(-[a-z0-9]+)*((\.[a-z0-9-]+)?\.test|\.config|\.d)?\.tsx?$/.test(posix.basename(path)),
    );
    expect(odd.map(({ path }) => path)).toEqual([]);
  });

  test("a test beside sources is named after one of them, x.test.ts or x.part.test.ts for x.ts", () => {
    const nameless = testsWithoutSource(source.map(({ path }) => path));
    expect(
      nameless.filter((path) => !toBeRenamed.has(posix.basename(path, ".test.ts"))),
      "Rename each after the file it tests: `source.test.ts`, or `source.part.test.ts` beside it.",
    ).toEqual([]);
  });

  test("no file is named after a heap of things", () => {
    const heaps = ["util", "utils", "helper", "helpers", "types", "common", "misc", "index"];
    const found = programs
      .map(({ path }) => path)
      // Where package.json's exports begin.
      .filter((path) => !/^(?:packages\/(?:cluster|gate|testing)\/)?src\/index\.ts$/.test(path))
      .filter((path) => heaps.includes(posix.basename(path).split(".")[0] ?? ""));
    expect(found, "Name each file after the one idea it holds.").toEqual([]);
  });
});

describe("no check is switched off", () => {
  const checked = programs.filter(({ path }) => /^(src|packages|test)\//.test(path));

  test("nothing is cast to any", () => {
    const suspects = checked.filter(({ text }) => /(?:\bas|<)\s*any\b/.test(text));
    const casts = suspects.flatMap(({ path, text }) =>
      readCode(text).flatMap((token, at, all) =>
        token.text === "any" && ["as", "<"].includes(all[at - 1]?.text ?? "") && token.type === "word"
          ? [`${path}:${token.line}`]
          : [],
      ),
    );
    expect(casts, "Take unknown and read it.").toEqual([]);
  });

  test("no comment silences the compiler", () => {
    const suspects = checked.filter(({ text }) => text.includes("@ts-"));
    const silenced = suspects.flatMap(({ path, text }) =>
      readTokens(text)
        .filter(({ type, text: comment }) => type === "comment" && /@ts-(ignore|nocheck)/.test(comment))
        .map(({ line }) => `${path}:${line}`),
    );
    expect(silenced).toEqual([]);
  });

  test("no test is singled out or left out", () => {
    const suspects = checked.filter((file) => isTest(file) && /\.\s*(?:only|skip|todo)\b/.test(file.text));
    const marked = suspects.flatMap(({ path, text }) =>
      readTestMarks(text)
        .filter(({ text: mark }) => ["only", "skip", "todo"].includes(mark))
        .map(({ line, text: mark }) => `${path}:${line} .${mark}`),
    );
    expect(marked).toEqual([]);
  });
});

test("no file names a folder of one particular machine", () => {
  const absolute = ["work", "root"].map((folder) => `(?<![\\w.~-])/${folder}/`);
  const outside = ["shared"].map((folder) => `(?<![\\w-])${folder}/(?![\\w-]+\\.(test\\.)?ts\\b)`);
  const pattern = new RegExp([...absolute, ...outside].join("|"));
  const found = everything.flatMap(({ path, text }) =>
    text
      .split("\n")
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
  );
  expect(found, "Use a path inside the repository, a temporary directory, or an invented one.").toEqual([]);
});

function lineCount({ text }: ProjectFile): number {
  return text.trimEnd().split("\n").length;
}
