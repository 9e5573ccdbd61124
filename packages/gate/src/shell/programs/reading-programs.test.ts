import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { gitReadingCommands } from "./git-commands.ts";
import { readingPrograms } from "./reading-programs.ts";

const page = readFileSync(join(import.meta.dirname, "../../../../../docs/read-only-commands.md"), "utf8");

describe("[PRM-9] the page about commands that only read", () => {
  it("names every program of the tables, and every reading command of git", () => {
    const programs = readingPrograms.filter(([, spec]) => spec.readOnly === true).map(([name]) => name);
    const commands = gitReadingCommands.map(([name]) => name);
    const missing = [...programs, ...commands].filter(
      (name) => !new RegExp(`\`${name}[\` ]|[ \`]${name}\``).test(page),
    );
    expect(missing).toEqual([]);
  });

  it("names no program among the tables' own that they do not have", () => {
    const known = new Set(readingPrograms.map(([name]) => name));
    const rows = page
      .split("\n")
      .filter((line) => /^\| (?:showing|finding|checksums|names|the machine)/.test(line));
    const named = rows.flatMap((row) =>
      [...(row.split("|")[2] ?? "").matchAll(/`([a-z0-9]+)`/g)].map(([, name]) => name ?? ""),
    );
    expect(named.length).toBeGreaterThan(40);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });
});
