import { execFileSync } from "node:child_process";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTrustStore, findUntrustedFolders } from "./trust-store.ts";

let root: string;
let home: string;
let stateFile: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "trust-")));
  home = join(root, "home");
  stateFile = join(home, ".claude.json");
  await mkdir(home);
});
afterEach(() => rm(root, { recursive: true, force: true }));

const folder = async (path: string) => {
  await mkdir(join(root, path), { recursive: true });
  return join(root, path);
};
const trusting = (...folders: string[]) =>
  writeFile(
    stateFile,
    JSON.stringify({
      projects: Object.fromEntries(folders.map((each) => [each, { hasTrustDialogAccepted: true }])),
    }),
  );
const isTrusted = async (path: string) =>
  (await createTrustStore({ stateFile, home }).isTrusted(path)).trusted;
const trust = (path: string, options = {}) => createTrustStore({ stateFile, home, ...options }).trust(path);

describe("folders beside the working folder [PRM-11]", () => {
  const untrusted = async (cwd: string, folders: readonly string[]) => {
    const configDirectory = join(home, ".claude");
    const found = await findUntrustedFolders(folders, { cwd, home, stateFile, configDirectory });
    return folders.filter((each) => found.has(each)).map((each) => each.slice(root.length + 1));
  };

  it("share the trust of the working folder only in its own repository", async () => {
    await folder("work/nested/.git");
    await folder("other/.git");
    await folder("own/.git");
    const cwd = await folder("work");
    await trusting(join(root, "own"));
    const folders = ["work", "work/deep", "work/nested", "work/nested/a", "other/a", "own/a", "plain"];
    expect(await untrusted(cwd, await Promise.all(folders.map(folder)))).toEqual([
      "work/nested",
      "work/nested/a",
      "other/a",
      "plain",
    ]);
  });

  it("are judged by their real path, and a working folder that is the home gives nothing away", async () => {
    await folder("other/.git");
    const cwd = await folder("work");
    await symlink(join(root, "other"), join(cwd, "link"));
    expect(await untrusted(cwd, [join(cwd, "link")])).toEqual(["work/link"]);
    await folder("home/.claude");
    expect(await untrusted(home, [await folder("home/downloaded"), home])).toEqual(["home/downloaded"]);
    expect(await untrusted(cwd, [home])).toEqual([]);
  });
});

describe("asking for trust [PRM-11]", () => {
  it("is no without a state file, and says which folder it is about", async () => {
    const app = await folder("app");
    expect(await createTrustStore({ stateFile, home }).isTrusted(app)).toEqual({
      trusted: false,
      folder: app,
      why: `${app} has not been accepted as trusted`,
    });
  });

  it("is yes where the state file has it, for the repository's root and the folders in it", async () => {
    await folder("app/.git");
    const deep = await folder("app/src/deep");
    await trusting(join(root, "app"));
    expect(await createTrustStore({ stateFile, home }).isTrusted(deep)).toMatchObject({
      trusted: true,
      folder: join(root, "app"),
    });
  });

  it.each([false, "true", 1, null])("is no for the value %j", async (value) => {
    const app = await folder("app");
    await writeFile(stateFile, JSON.stringify({ projects: { [app]: { hasTrustDialogAccepted: value } } }));
    expect(await isTrusted(app)).toBe(false);
  });

  it("ends at a repository inside a trusted folder", async () => {
    await trusting(await folder("work"));
    await folder("work/app/.git");
    expect(await isTrusted(await folder("work/notes"))).toBe(true);
    expect(await isTrusted(await folder("work/app/src"))).toBe(false);
  });

  it("covers a worktree only if the trusted repository knows it", async () => {
    const app = await folder("app");
    const git = (...words: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], {
        cwd: app,
        stdio: "pipe",
      });
    git("init", "-q");
    git("commit", "-q", "--allow-empty", "-m", "start");
    git("worktree", "add", "-q", join(root, "tree"));
    await trusting(app);
    expect(await isTrusted(join(root, "tree"))).toBe(true);
    const forged = await folder("forged");
    await writeFile(join(forged, ".git"), await readFile(join(root, "tree/.git")));
    expect(await isTrusted(forged)).toBe(false);
  });

  it("goes by the real path: a link in the place of a trusted folder is not trusted", async () => {
    const app = await folder("app");
    await trusting(app);
    await rename(app, join(root, "moved"));
    await symlink(await folder("app-evil"), app);
    expect(await isTrusted(app)).toBe(false);
    expect(await isTrusted(await folder("app2"))).toBe(false);
  });

  it("does not count trust for the home directory or anything above it", async () => {
    await trusting(home, root, "/");
    expect(await isTrusted(home)).toBe(false);
    expect(await isTrusted(await folder("home/app"))).toBe(false);
    expect(await isTrusted(await folder("other"))).toBe(false);
  });

  it.each([
    "{ broken",
    "[]",
    '{"projects": []}',
    "[".repeat(300_000),
  ])("is no with a problem for a broken state file: %.20s", async (text) => {
    await writeFile(stateFile, text);
    expect(await createTrustStore({ stateFile, home }).isTrusted(await folder("app"))).toMatchObject({
      trusted: false,
      diagnostic: { severity: "error", file: stateFile },
    });
  });
});

describe("granting trust [PRM-11]", () => {
  it("is stored for the repository's root and found again", async () => {
    await folder("app/.git");
    const deep = await folder("app/src");
    expect(await trust(deep)).toEqual({ type: "stored", folder: join(root, "app") });
    expect(await isTrusted(join(root, "app"))).toBe(true);
    expect((await stat(stateFile)).mode & 0o777).toBe(0o600);
    expect(await readdir(home)).toEqual([".claude.json"]);
  });

  it("keeps every other value as it was written, and the mode of the file", async () => {
    const app = await folder("app");
    const text =
      '{\n  "big": 12345678901234567890,\n  "__proto__": {"x": 1},\n  "projects": {\n    "/a": { "mcpServers": {} }\n  }\n}\n';
    await writeFile(stateFile, text);
    await chmod(stateFile, 0o640);
    await trust(app);
    const after = await readFile(stateFile, "utf8");
    expect(after).toContain('"big": 12345678901234567890,\n  "__proto__": {"x": 1},');
    expect(JSON.parse(after).projects["/a"]).toEqual({ mcpServers: {} });
    expect(JSON.parse(after).projects[app]).toEqual({ hasTrustDialogAccepted: true });
    expect((await stat(stateFile)).mode & 0o777).toBe(0o640);
  });

  it("keeps what else is known of the folder, and does not write when nothing changes", async () => {
    const app = await folder("app");
    await writeFile(
      stateFile,
      JSON.stringify({ projects: { [app]: { history: [1], hasTrustDialogAccepted: false } } }),
    );
    await trust(app);
    const once = await readFile(stateFile, "utf8");
    expect(JSON.parse(once).projects[app]).toEqual({ history: [1], hasTrustDialogAccepted: true });
    await trust(app);
    expect(await readFile(stateFile, "utf8")).toBe(once);
  });

  it("writes through a link to the file it leads to", async () => {
    const app = await folder("app");
    await writeFile(join(root, "dotfiles.json"), "{}");
    await symlink(join(root, "dotfiles.json"), stateFile);
    await trust(app);
    expect(await readFile(join(root, "dotfiles.json"), "utf8")).toContain(app);
    expect(await realpath(stateFile)).toBe(join(root, "dotfiles.json"));
  });

  it("is refused for the home directory, also when home is a repository", async () => {
    await folder("home/.git");
    expect(await trust(home)).toMatchObject({
      type: "refused",
      why: expect.stringContaining("never stored"),
    });
    expect(await trust(root)).toMatchObject({ type: "refused" });
    expect(await trust(await folder("home/app"))).toEqual({ type: "stored", folder: join(home, "app") });
  });

  it.each([
    "{ broken",
    "[]",
    '{"projects": 5}',
    '{"projects": {}, "projects": {"/a": {}}}',
    '{"projects": {"FOLDER": true}}',
  ])("is refused, and the file left as it is, when the state file is broken: %s", async (template) => {
    const app = await folder("app");
    const text = template.replace("FOLDER", app);
    await writeFile(stateFile, text);
    expect(await trust(app)).toMatchObject({ type: "refused", diagnostic: { file: stateFile } });
    expect(await readFile(stateFile, "utf8")).toBe(text);
    expect(await readdir(home)).toEqual([".claude.json"]);
  });

  it("loses nothing when many write at the same time", async () => {
    const folders = await Promise.all(Array.from({ length: 16 }, (_, index) => folder(`app-${index}`)));
    const outcomes = await Promise.all(folders.map((each) => trust(each, { timeoutMs: 60_000 })));
    expect(outcomes.every((outcome) => outcome.type === "stored")).toBe(true);
    const { projects } = JSON.parse(await readFile(stateFile, "utf8"));
    expect(Object.keys(projects).sort()).toEqual([...folders].sort());
    expect(await readdir(home)).toEqual([".claude.json"]);
  });

  it("gives up with a reason when another program keeps the lock, and takes over one that was left behind", async () => {
    const app = await folder("app");
    await mkdir(`${stateFile}.lock`);
    expect(await trust(app, { timeoutMs: 0 })).toMatchObject({
      type: "refused",
      why: expect.stringContaining(".lock"),
    });
    await utimes(`${stateFile}.lock`, 0, 0);
    expect(await trust(app, { timeoutMs: 0 })).toMatchObject({ type: "stored" });
    expect(await readdir(home)).toEqual([".claude.json"]);
  });

  it("is refused with a problem when the file cannot be written", async () => {
    const app = await folder("app");
    const store = createTrustStore({ stateFile: join(stateFile, "below/x.json"), home });
    await writeFile(stateFile, "{}");
    expect(await store.trust(app)).toMatchObject({
      type: "refused",
      diagnostic: { code: "state-file-unusable" },
    });
    expect(await store.isTrusted(app)).toMatchObject({
      trusted: false,
      diagnostic: { code: "state-file-unusable" },
    });
  });
});

describe("taking trust back [PRM-11]", () => {
  const untrust = (path: string) => createTrustStore({ stateFile, home }).untrust(path);

  it("sets the folder's entry to false and leaves everything else as it is", async () => {
    const app = await folder("app");
    await writeFile(stateFile, JSON.stringify({ theme: "dark", projects: { [app]: { history: [1] } } }));
    await trust(app);
    expect(await untrust(app)).toEqual({ type: "stored", folder: app });
    expect(await isTrusted(app)).toBe(false);
    expect(JSON.parse(await readFile(stateFile, "utf8"))).toEqual({
      theme: "dark",
      projects: { [app]: { history: [1], hasTrustDialogAccepted: false } },
    });
  });

  it("takes it from the folder above that covers this one", async () => {
    const above = await folder("work");
    const app = await folder("work/app");
    await trusting(above);
    expect(await untrust(app)).toEqual({ type: "stored", folder: above });
    expect(await isTrusted(app)).toBe(false);
  });

  it("writes nothing where nothing is trusted", async () => {
    const app = await folder("app");
    expect(await untrust(app)).toEqual({ type: "stored", folder: app });
    await expect(stat(stateFile)).rejects.toThrow("ENOENT");
  });

  it("refuses a broken state file", async () => {
    const app = await folder("app");
    await writeFile(stateFile, "{");
    expect(await untrust(app)).toMatchObject({ type: "refused", diagnostic: { code: "invalid-json" } });
  });
});
