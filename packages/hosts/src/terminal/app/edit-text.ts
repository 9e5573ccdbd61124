import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnProcess } from "@retinue/base/foundation/spawn-process.ts";

/** Opens a text in $VISUAL or $EDITOR, which has the terminal until it ends; undefined when nothing was changed. */
export async function editText(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "retinue-edit-"));
  const file = join(folder, "draft.md");
  try {
    await writeFile(file, text, { mode: 0o600 });
    await editFile(file, environment);
    const changed = await readFile(file, "utf8");
    return changed === text ? undefined : changed;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Opens a file itself. The variable may hold a command with arguments, as in `code --wait`. */
export async function editFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const editor = environment["VISUAL"] || environment["EDITOR"];
  if (editor === undefined || editor === "")
    throw new Error("No editor is set; set EDITOR, such as EDITOR=nano, and start again.");
  const child = await spawnProcess("sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit" });
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`${editor} ended with the code ${code}.`);
}
