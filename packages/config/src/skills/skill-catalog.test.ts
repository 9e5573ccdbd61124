import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Plugin, readPluginManifest } from "../plugins/plugin.ts";
import { createPaths } from "../settings/paths.ts";
import { largestSkill } from "./read-skill-file.ts";
import { createSkillReader, type DiscoverSkillsOptions, discoverSkills } from "./skill-catalog.ts";

let root: string;
let options: DiscoverSkillsOptions;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-skills-")));
  const [home, cwd] = [join(root, "home"), join(root, "repo/sub")];
  mkdirSync(cwd, { recursive: true });
  mkdirSync(home);
  options = {
    paths: createPaths({
      home,
      cwd,
      environment: {},
      platform: "linux",
      repositoryRoot: join(root, "repo"),
      managedDirectory: join(root, "managed"),
    }),
  };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function writeSkill(folder: string, more = ""): string {
  return write(`${folder}/SKILL.md`, `---\ndescription: From ${folder}.\n${more}---\nText of ${folder}.\n`);
}

function plugin(folder: string, manifest: unknown = {}, more: Partial<Plugin> = {}): Plugin {
  mkdirSync(join(root, folder), { recursive: true });
  return {
    name: folder,
    root: join(root, folder),
    manifest: readPluginManifest(manifest).manifest ?? {},
    origin: "directory",
    enabled: true,
    ...more,
  };
}

async function names(more: Partial<DiscoverSkillsOptions> = {}): Promise<string[]> {
  return (await discoverSkills({ ...options, ...more })).list().map(({ name }) => name);
}

async function codes(more: Partial<DiscoverSkillsOptions> = {}): Promise<string[]> {
  const { diagnostics } = await discoverSkills({ ...options, ...more });
  return diagnostics.map(({ code, file }) => `${code} ${file?.slice(root.length + 1)}`);
}

describe("[SKL-1] places and their rank", () => {
  test("managed before user before project, the nearer folder first; what loses is reported", async () => {
    const places = [
      "managed/.claude/skills/deploy",
      "home/.claude/skills/deploy",
      "repo/sub/.claude/skills/deploy",
      "repo/.claude/skills/deploy",
    ];
    for (const place of places) writeSkill(place);
    for (const [index, place] of places.entries()) {
      const catalog = await discoverSkills(options);
      const found = catalog.find("deploy");
      expect(found).toMatchObject({ type: "found", skill: { description: `From ${place}.` } });
      expect(catalog.shadowed.map(({ description }) => description)).toEqual(
        places.slice(index + 1).map((weaker) => `From ${weaker}.`),
      );
      expect(catalog.diagnostics.map(({ code }) => code)).toEqual(
        places.slice(index + 1).map(() => "same-name"),
      );
      rmSync(join(root, place), { recursive: true });
    }
  });

  test("folders in folders hold skills too, and the list is in the order of names", async () => {
    writeSkill("repo/.claude/skills/web/forms");
    writeSkill("repo/.claude/skills/zip");
    writeSkill("repo/.claude/skills/api");
    writeSkill("repo/.claude/skills/api/examples/inner");
    write("repo/.claude/skills/README.md", "# Skills");
    expect(await names()).toEqual(["api", "forms", "zip"]);
  });

  test("commands are skills by another name, with their folders before it, and a skill beats a command of its rank", async () => {
    write("repo/.claude/commands/git/commit.md", "Commit all of it.");
    write("repo/.claude/commands/deploy.md", "Deploy by hand.");
    writeSkill("repo/.claude/skills/deploy");
    const catalog = await discoverSkills(options);
    expect(catalog.list()).toMatchObject([
      { name: "deploy", source: { kind: "skill", scope: "project" } },
      { name: "git:commit", description: "Commit all of it.", source: { kind: "command" } },
    ]);
  });

  test("a project's skill does not take the name of a command that the person keeps at home", async () => {
    write("home/.claude/commands/deploy.md", "Deploy by hand.");
    writeSkill("repo/.claude/skills/deploy");
    const catalog = await discoverSkills(options);
    expect(catalog.list()).toMatchObject([{ name: "deploy", source: { kind: "command", scope: "user" } }]);
    expect(catalog.diagnostics).toMatchObject([{ code: "same-name", severity: "note" }]);
  });

  test("added folders count, and folders in which something was touched", async () => {
    writeSkill("other/.claude/skills/added");
    writeSkill("repo/packages/web/.claude/skills/nested");
    expect(await names()).toEqual([]);
    const more = {
      additionalDirectories: [join(root, "other")],
      touchedDirectories: [join(root, "repo/packages/web/src"), join(root, "elsewhere")],
    };
    expect(await names(more)).toEqual(["added", "nested"]);
  });

  test("a repository below the project is judged by its own trust [PRM-11]", async () => {
    for (const place of ["repo", "repo/a", "repo/b"])
      writeSkill(`${place}/.claude/skills/of-${basename(place)}`);
    for (const place of ["repo", "repo/b"]) mkdirSync(join(root, place, ".git"), { recursive: true });
    const touchedDirectories = [join(root, "repo/a/src"), join(root, "repo/b/src")];
    const found = (await discoverSkills({ ...options, touchedDirectories })).list();
    expect(found.map(({ name, source }) => [name, source.untrusted ?? false])).toEqual([
      ["of-a", false],
      ["of-b", true],
      ["of-repo", false],
    ]);
  });

  test("sources can be left out, and an organisation can leave only its own and plugins", async () => {
    for (const place of ["managed", "home", "repo"]) writeSkill(`${place}/.claude/skills/of-${place}`);
    writeSkill("tools/skills/a");
    const plugins = [plugin("tools")];
    expect(await names({ settingSources: ["user"] })).toEqual(["of-home", "of-managed"]);
    for (const only of [true, ["skills"]]) {
      const settings = { strictPluginOnlyCustomization: only };
      expect(await names({ plugins, settings })).toEqual(["of-managed", "tools:a"]);
    }
    expect(await names({ settings: { strictPluginOnlyCustomization: ["hooks"] } })).toHaveLength(3);
  });
});

describe("[SKL-1] skills of plugins", () => {
  test("know which marketplace theirs came from", async () => {
    writeSkill("kit/skills/a");
    const installed = { ...plugin("kit"), marketplace: "acme" };
    const catalog = await discoverSkills({ ...options, plugins: [installed] });
    expect(catalog.list()).toMatchObject([{ name: "kit:a", source: { plugin: { marketplace: "acme" } } }]);
  });

  test("`skills`, what the manifest adds, the root's own, and `commands`", async () => {
    writeSkill("kit/skills/a");
    writeSkill("kit/more/b", "name: better\n");
    writeSkill("kit/more/c");
    writeSkill("kit");
    write("kit/commands/x/y.md", "Y.");
    write("kit/elsewhere/z.md", "Z.");
    const added = { skills: ["./more/b", "./more", "./gone", "../../home"] };
    expect(await names({ plugins: [plugin("kit", added)] })).toEqual([
      "kit:a",
      "kit:better",
      "kit:c",
      "kit:kit",
      "kit:x:y",
    ]);
    expect(await codes({ plugins: [plugin("kit", added)] })).toEqual(["plugin-path-missing kit/gone"]);
    const replaced = { commands: "./elsewhere/z.md" };
    expect(await names({ plugins: [plugin("kit", replaced)] })).toEqual(["kit:a", "kit:kit", "kit:z"]);
    expect(await names({ plugins: [plugin("kit", {}, { enabled: false })] })).toEqual([]);
  });

  test("a plugin that lies in the user's skills is a plugin and not a skill", async () => {
    writeSkill("home/.claude/skills/kit");
    write("home/.claude/skills/kit/.claude-plugin/plugin.json", "{}");
    expect(await names()).toEqual([]);
  });
});

describe("[SKL-1] files of a project are read with care", () => {
  test("a link that leads out of the project or plugin is not followed", async () => {
    writeSkill("outside/s1");
    mkdirSync(join(root, "repo/.claude/skills/s2"), { recursive: true });
    symlinkSync(join(root, "outside/s1"), join(root, "repo/.claude/skills/s1"));
    symlinkSync(join(root, "outside/s1/SKILL.md"), join(root, "repo/.claude/skills/s2/SKILL.md"));
    mkdirSync(join(root, "kit/skills"), { recursive: true });
    symlinkSync(join(root, "outside/s1"), join(root, "kit/skills/s3"));
    const plugins = [plugin("kit")];
    expect(await names({ plugins })).toEqual([]);
    expect(await codes({ plugins })).toEqual([
      "link-outside-project repo/.claude/skills/s1",
      "link-outside-project repo/.claude/skills/s2/SKILL.md",
      "link-outside-plugin kit/skills/s3",
    ]);
  });

  test("a skills folder that itself leads out is not followed", async () => {
    writeSkill("outside/s1");
    mkdirSync(join(root, "repo/.claude"), { recursive: true });
    symlinkSync(join(root, "outside"), join(root, "repo/.claude/skills"));
    expect(await names()).toEqual([]);
    expect(await codes()).toEqual(["link-outside-project repo/.claude/skills"]);
  });

  test("a link inside the project is followed, unless it makes another kind of file a skill", async () => {
    writeSkill("repo/.agents/skills/shared");
    write("repo/.env", "SECRET=1");
    mkdirSync(join(root, "repo/.claude/skills/leak"), { recursive: true });
    symlinkSync("../../.agents/skills/shared", join(root, "repo/.claude/skills/shared"));
    symlinkSync("../../../.env", join(root, "repo/.claude/skills/leak/SKILL.md"));
    symlinkSync("..", join(root, "repo/.claude/skills/loop"));
    expect(await names()).toEqual(["shared"]);
    expect(await codes()).toEqual(["link-to-other-file repo/.claude/skills/leak/SKILL.md"]);
  });

  test("the person's own links lead where they like", async () => {
    writeSkill("dotfiles/mine");
    mkdirSync(join(root, "home/.claude/skills"), { recursive: true });
    symlinkSync(join(root, "dotfiles/mine"), join(root, "home/.claude/skills/mine"));
    expect(await names()).toEqual(["mine"]);
  });

  test("a pipe, a folder in place of the file, a dangling link and a huge file cost only themselves", async () => {
    writeSkill("repo/.claude/skills/good");
    for (const name of ["pipe", "folder/SKILL.md", "gone"]) {
      mkdirSync(join(root, "repo/.claude/skills", name), { recursive: true });
    }
    execFileSync("mkfifo", [join(root, "repo/.claude/skills/pipe/SKILL.md")]);
    symlinkSync("nowhere", join(root, "repo/.claude/skills/gone/SKILL.md"));
    write("repo/.claude/skills/huge/SKILL.md", "x".repeat(largestSkill + 1));
    expect(await names()).toEqual(["good"]);
    expect((await codes()).sort()).toEqual([
      "too-large repo/.claude/skills/huge/SKILL.md",
      "unreadable-file repo/.claude/skills/folder/SKILL.md",
      "unreadable-file repo/.claude/skills/gone/SKILL.md",
      "unreadable-file repo/.claude/skills/pipe/SKILL.md",
    ]);
  });

  test("folders without end are left at some depth, and it is reported", async () => {
    writeSkill(`repo/.claude/skills/${"d/".repeat(12)}deep`);
    writeSkill("repo/.claude/skills/a/b/c/reached");
    expect(await names()).toEqual(["reached"]);
    expect((await codes())[0]).toMatch(/^too-many-files /);
  });
});

describe("[SKL-2] names are looked up, never taken for a path", () => {
  test.each([
    "../../evil",
    "good/../../evil",
    "/evil",
    "constructor",
    "__proto__",
    "",
    "Good ",
  ])("%j is unknown", async (name) => {
    writeSkill("repo/.claude/skills/good");
    write("repo/evil/SKILL.md", "evil");
    write("evil/SKILL.md", "evil");
    expect((await discoverSkills(options)).find(name).type).toBe("unknown");
  });

  test("an unknown name comes with the nearest", async () => {
    writeSkill("repo/.claude/skills/release-notes");
    const catalog = await discoverSkills(options);
    expect(catalog.find("release-note")).toEqual({ type: "unknown", nearest: "release-notes" });
  });
});

describe("[SKL-1] reading again", () => {
  test("sees a changed file, a new one and one that is gone, and keeps the rest as it was", async () => {
    const reader = createSkillReader();
    const file = writeSkill("repo/.claude/skills/a");
    writeSkill("repo/.claude/skills/b");
    const first = await reader.read(options);
    const same = await reader.read(options);
    expect(same.list()[0]).toBe(first.list()[0]);
    writeFileSync(file, "---\ndescription: New.\n---\nText.\n");
    utimesSync(file, 1, 1);
    rmSync(join(root, "repo/.claude/skills/b"), { recursive: true });
    writeSkill("repo/.claude/skills/c");
    expect((await reader.read(options)).list()).toMatchObject([
      { name: "a", description: "New." },
      { name: "c" },
    ]);
  });

  test("settings turn skills off, keep them from models or show their names alone", async () => {
    for (const name of ["a", "b", "c", "d"]) writeSkill(`repo/.claude/skills/${name}`);
    const skillOverrides = { a: "off", b: "user-invocable-only", c: "name-only", d: "on" };
    const catalog = await discoverSkills({ ...options, settings: { skillOverrides } });
    expect(catalog.list().map(({ name, disableModelInvocation }) => [name, disableModelInvocation])).toEqual([
      ["b", true],
      ["c", false],
      ["d", false],
    ]);
    expect([...catalog.nameOnly]).toEqual(["c"]);
  });
});

describe("the folders that products share", () => {
  test("`.agents/skills` is read beside `.claude/skills`, which wins by name with a note [PRT-1]", async () => {
    for (const place of [
      "repo/.claude/skills/deploy",
      "repo/.agents/skills/deploy",
      "repo/sub/.agents/skills/lint",
      "home/.agents/skills/mine",
    ])
      writeSkill(place);
    const { list, shadowed, diagnostics } = await discoverSkills(options);
    expect(list().map(({ name, description, source }) => [name, description, source.scope])).toEqual([
      ["deploy", "From repo/.claude/skills/deploy.", "project"],
      ["lint", "From repo/sub/.agents/skills/lint.", "project"],
      ["mine", "From home/.agents/skills/mine.", "user"],
    ]);
    expect(shadowed.map(({ description }) => description)).toEqual(["From repo/.agents/skills/deploy."]);
    expect(diagnostics).toMatchObject([{ severity: "note", code: "same-name" }]);
    expect(await names({ settingSources: ["user"] })).toEqual(["mine"]);
  });

  test("a link between the two is one skill, without a word [PRT-1]", async () => {
    writeSkill("repo/.agents/skills/deploy");
    mkdirSync(join(root, "repo/.claude/skills"), { recursive: true });
    symlinkSync(join(root, "repo/.agents/skills/deploy"), join(root, "repo/.claude/skills/deploy"));
    expect(await names()).toEqual(["deploy"]);
    expect(await codes()).toEqual([]);
  });
});
