import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sessionFiles } from "../../journal/session-files.ts";
import { readAsker } from "./read-asker.ts";

const line = (value: object): string => `${JSON.stringify(value)}\n`;
const said = (text: string): string =>
  line({
    type: "assistant",
    message: {
      content: [
        { type: "text", text },
        { type: "tool_use", id: "t" },
      ],
    },
  });

test("who asks is known by its task and by what it said last, also where its files are damaged or gone [STU-1]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "retinue-asker-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = sessionFiles(folder, "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00");
  const { transcript, meta } = files.agent("p1");
  mkdirSync(dirname(transcript), { recursive: true });
  writeFileSync(meta, line({ agentType: "worker", description: "invoices" }));
  writeFileSync(
    transcript,
    `${said("First.")}${said("First of all.\n\nThe dry run\nshows it.\n\n- a\n\n```ts\nconst a = 1;\n```")}${line({ type: "user" })}{"type":"assi`,
  );
  expect(await readAsker(files, "p1")).toEqual({ name: "invoices", said: "The dry run shows it." });
  writeFileSync(files.transcript, said("I ask myself."));
  expect(await readAsker(files, undefined)).toEqual({ said: "I ask myself." });
  expect(await readAsker(files, "gone")).toEqual({});
});
