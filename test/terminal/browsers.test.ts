import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { expect, onTestFinished, test } from "vitest";
import { createPlace, runCommand } from "../scenarios/run-command.ts";
import { keys, openPty } from "./pty-stage.ts";

const ctrlE = "\u0005";
const ctrlN = "\u000e";
const ctrlT = "\u0014";
const ctrlX = "\u0018";

test("sessions are listed, searched, named, resumed and deleted by parts of ids and titles [CLI-8]", async () => {
  const place = createPlace();
  const provider = await startFakeProvider({ script: ["An apple.", "A pear.", "Still a pear."] });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const run = (...words: readonly string[]) => runCommand(place, words, { environment });
  await run("-p", "name a red fruit");
  await run("-p", "name a green fruit");
  const listed = await run("sessions");
  expect(listed.out).toMatch(/ID +AGE +MESSAGES +STATE +TITLE\n\w{8} .*green fruit\n\w{8} .*red fruit\n/);
  const [, green = "", red = ""] = /^(\w{8}) .*green fruit\n(\w{8}) .*red fruit$/m.exec(listed.out) ?? [];

  const [apple, plum] = await Promise.all([
    run("sessions", "search", "APPLE"),
    run("sessions", "search", "plum"),
  ]);
  expect([apple.out.includes(red), apple.out.includes(green), plum.code]).toEqual([true, false, 1]);
  expect((await run("sessions", "name", "fruit", "x")).err).toContain("Several sessions match");
  expect((await run("sessions", "name", green, "Pear talk")).code).toBe(0);
  expect((await run("sessions", "delete", red)).err).toContain("--yes");

  const pty = openPty(place, ["sessions"], { environment });
  await pty.shows("Conversations of this folder", "Pear talk", "name a red fruit");
  pty.type("red");
  await pty.isMissing("Pear talk");
  pty.type(ctrlX);
  await pty.shows("write yes to delete");
  pty.type(`yes${keys.enter}`);
  await pty.shows("nothing fits");
  pty.type("\u007f\u007f\u007f");
  await pty.shows("Pear talk");
  pty.type(ctrlT);
  await pty.shows("the new title");
  pty.type(`s${keys.enter}`);
  await pty.shows("Pear talks");
  pty.type(keys.enter);
  await pty.shows("> name a green fruit", "A pear.");
  pty.type(`again${keys.enter}`);
  await pty.shows("Still a pear.");
  const { out } = await run("sessions", "--json");
  expect(JSON.parse(out).sessions).toMatchObject([{ title: "Pear talks", isOpenElsewhere: true }]);
  expect((await run("sessions", "delete", "Pear talks", "--yes")).err).toContain("was not deleted");
});

test("agents are browsed, created and edited in the editor, checked and tried [CLI-2]", async () => {
  const place = createPlace();
  place.write(
    ".claude/agents/tester.md",
    "---\nname: tester\ndescription: Tests things. Use when testing.\n---\nBe exact.\n",
  );
  place.write(
    "edit.sh",
    '#!/bin/sh\nsed -i "s/^description:.*/description: Writes poems. Use for poems./" "$1"\n',
  );
  chmodSync(join(place.cwd, "edit.sh"), 0o755);
  const provider = await startFakeProvider({ script: ["Tested."] });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const environment = {
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
    EDITOR: join(place.cwd, "edit.sh"),
  };
  const pty = openPty(place, ["agents"], { environment });
  await pty.shows("tester  Tests things.", "Explore", "ctrl+n new");
  pty.type(ctrlN);
  await pty.shows("the name of the new agent");
  pty.type(`Bad Name${keys.enter}`);
  await pty.shows("Bad Name");
  pty.type(ctrlN);
  await pty.shows("the name of the new agent");
  pty.type(`poet${keys.enter}`);
  await pty.shows("poet  Writes poems.");
  expect(readFileSync(join(place.cwd, ".claude/agents/poet.md"), "utf8")).toContain("Writes poems");
  pty.type("Explore");
  await pty.isMissing("poet");
  pty.type(ctrlE);
  await pty.shows("Explore has no file");
  pty.type("\u007f".repeat(7));
  pty.type("tester");
  await pty.isMissing("poet");
  pty.type(keys.enter);
  await pty.shows("Be exact.", "esc back");
  pty.type(keys.escape);
  await pty.shows("ctrl+t try");
  pty.type(ctrlT);
  await pty.shows("? keys");
  pty.type(`go${keys.enter}`);
  await pty.shows("Tested.");
  expect(JSON.stringify(provider.requests.at(-1)?.request)).toContain("Be exact.");
  expect(existsSync(join(place.cwd, ".claude/agents/tester.md"))).toBe(true);
});
