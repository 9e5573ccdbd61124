import { existsSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createSampleRuntime } from "../../testing/sample-runtime.ts";

describe.skipIf(process.platform === "win32")("[PRM-10] a link put there while a person thinks", () => {
  test("leads a Write nowhere, although the call was allowed", async () => {
    const call = { name: "Write", input: { file_path: "out.txt", content: "mine" } };
    await using sample = await createSampleRuntime([{ calls: [call] }, "Well."], {
      canUseTool: async () => {
        symlinkSync(join(sample.workspace.root, "elsewhere.txt"), join(sample.workspace.project, "out.txt"));
        return { behavior: "allow" };
      },
    });
    await sample.runtime.run("Go.").result;
    expect(existsSync(join(sample.workspace.root, "elsewhere.txt"))).toBe(false);
    expect(JSON.stringify(sample.requests[1]?.messages)).toContain(
      "leads somewhere else than when this call",
    );
  });

  test("shows a Read nothing of the file it leads to", async () => {
    await using sample = await createSampleRuntime(
      [
        (request) => ({ calls: [{ name: "Read", input: { file_path: lastWord(request.messages) } }] }),
        "Well.",
      ],
      {
        canUseTool: async () => {
          rmSync(open());
          symlinkSync(secret(), open());
          return { behavior: "allow" };
        },
      },
    );
    const open = () => join(sample.workspace.root, "open.txt");
    const secret = () => join(sample.workspace.root, "secret.txt");
    writeFileSync(open(), "harmless");
    writeFileSync(secret(), "the secret");
    await sample.runtime.run(`Read ${open()}`).result;
    const reported = JSON.stringify(sample.requests[1]?.messages);
    expect(reported).toContain("leads somewhere else than when this call");
    expect(reported).not.toContain("the secret");
  });
});

function lastWord(messages: readonly { readonly content: unknown }[]): string {
  const [block] = [messages[0]?.content].flat();
  const text = typeof block === "string" ? block : String(Reflect.get(Object(block), "text"));
  return text.split(" ").at(-1) ?? "";
}
