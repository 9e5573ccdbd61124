import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keys, openConversation, userTexts } from "./pty-stage.ts";

const ctrlX = "\u0018";

test("/config shows the person's settings, changes and takes them out in their own file, and the next message has them [CLI-4]", async () => {
  const { pty, place, provider } = await openConversation(["Hallo."], { columns: 80, rows: 24 });
  const file = join(place.home, ".claude/settings.json");
  const written = (): Record<string, unknown> => JSON.parse(readFileSync(file, "utf8"));
  await pty.shows("default");
  pty.type(`/config${keys.enter}`);
  await pty.shows(
    "Your settings",
    "permissions.defaultMode",
    "how many days sessions are kept",
    "not set: 30",
  );
  pty.type(`${keys.down}${keys.enter}`);
  await pty.shows(" effortLevel", "medium", "enter choose");
  pty.type(`high${keys.enter}`);
  await pty.shows("Your settings", "how much models think                          high");
  expect(written()).toMatchObject({ effortLevel: "high" });
  pty.type("language");
  await pty.isMissing("effortLevel");
  pty.type(keys.enter);
  await pty.shows("language  enter takes it");
  pty.type(`german${keys.enter}`);
  await pty.shows("the language of answers                      german");
  pty.type("\u007f".repeat(8));
  pty.type("cleanup");
  await pty.isMissing("language");
  pty.type(keys.enter);
  await pty.shows("cleanupPeriodDays  enter takes it");
  pty.type(`soon${keys.enter}`);
  await pty.shows('cleanupPeriodDays is a whole number, not "soon".');
  pty.type("\u007f".repeat(7));
  pty.type("effort");
  await pty.shows("effortLevel");
  pty.type(ctrlX);
  await pty.shows("how much models think", "not set: the model's own");
  expect(written()).toMatchObject({ language: "german" });
  expect(written()).not.toHaveProperty("effortLevel");
  pty.type(keys.escape);
  await pty.shows("effortLevel was taken out of ~/.claude/settings.json.");
  pty.type(`hello${keys.enter}`);
  await pty.shows("Hallo.");
  expect(JSON.stringify(provider.requests.at(-1)?.request.system)).toContain("german");
});

test("/theme changes the colours of what comes, and the next start keeps them; a variable decides before it [CLI-4]", async () => {
  const code = "```ts\nconst limit = 10;\n```\n";
  const { pty, again } = await openConversation([code, code, code, code], {
    environment: { COLORTERM: "truecolor" },
    words: ["show me"],
  });
  const colourOf = (bytes: string): string =>
    [...bytes.matchAll(/\u001b\[(38;2;[\d;]+)mconst/g)].at(-1)?.[1] ?? "";
  await pty.shows("const limit");
  await pty.isMissing("esc to interrupt");
  const dark = colourOf(pty.bytes());
  pty.type(`/theme neon${keys.enter}`);
  await pty.shows("Unknown theme neon; expected one of terminal, dark, light.");
  pty.type(`/theme${keys.enter}`);
  await pty.shows("Colours", "for dark text on a light background");
  pty.type(`light${keys.enter}`);
  await pty.shows("Colours are for a light terminal from now on.");
  const seen = pty.bytes().length;
  pty.type(`again${keys.enter}`);
  await pty.shows("> again\n\n  const limit");
  await pty.isMissing("esc to interrupt");
  const light = colourOf(pty.bytes().slice(seen));
  expect([dark, light].map((colour) => colour !== "")).toEqual([true, true]);
  expect(light).not.toBe(dark);
  pty.type(keys.ctrlD);
  await pty.exited;
  const later = again(["show me"], { environment: { COLORTERM: "truecolor" } });
  await later.shows("const limit");
  await later.isMissing("esc to interrupt");
  expect(colourOf(later.bytes())).toBe(light);
  const other = again(["show me"], { environment: { COLORTERM: "truecolor", RETINUE_THEME: "dark" } });
  await other.shows("const limit");
  await other.isMissing("esc to interrupt");
  expect(colourOf(other.bytes())).toBe(dark);
});

test("/vim gives the draft the keys of vi, in later starts too; escape leaves inserting first and interrupts then [CLI-4]", async () => {
  const forever = new Promise<string>(() => undefined);
  const { pty, again, provider } = await openConversation(["Fine.", () => forever], {});
  await pty.shows("default");
  pty.type(`/vim${keys.enter}`);
  await pty.shows("vi keys are on", "insert · ");
  pty.type("make the test red");
  await pty.shows("> make the test red");
  pty.type(keys.escape);
  await pty.shows("normal · ");
  pty.type("ciwgreen");
  await pty.shows("> make the test green", "insert · ");
  pty.type(keys.enter);
  await pty.shows("Fine.");
  await pty.isMissing("esc to interrupt");
  expect(userTexts(provider)).toContain("make the test green");
  pty.type(keys.ctrlD);
  await pty.exited;
  const later = again();
  await later.shows("insert · ", "default");
  later.type(`wait${keys.enter}`);
  await later.shows("esc to interrupt");
  later.type(keys.escape);
  await later.shows("normal · ", "esc to interrupt");
  later.type(keys.escape);
  await later.shows("Interrupted after");
  // The sign of a command begins writing in an empty draft.
  later.type("/vim");
  await later.shows("> /vim");
  later.type(keys.enter);
  await later.shows("vi keys are off.");
  await later.isMissing("normal · ");
});

test("/output-style lists the styles of the folder, and the one that is chosen is in the next prompt [CLI-4]", async () => {
  const files = {
    ".claude/output-styles/terse.md": "---\nname: Terse\ndescription: Few words\n---\nFew words.\n",
  };
  const { pty, provider } = await openConversation(["Yes."], { files });
  await pty.shows("default");
  pty.type(`/output-style${keys.enter}`);
  await pty.shows("default", "answers as always", "Terse", "Few words · project", "explanatory");
  pty.type("terse");
  await pty.isMissing("explanatory");
  pty.type(keys.enter);
  await pty.shows("outputStyle is Terse in ~/.claude/settings.json.");
  pty.type(`hello${keys.enter}`);
  await pty.shows("Yes.");
  expect(provider.requests.at(-1)?.request.system.join("\n")).toContain("# Output style: Terse\nFew words.");
});
