import { existsSync } from "node:fs";
import { join } from "node:path";
import { builtinTools } from "../../../tools/builtin-tools.ts";
import type { CliHost } from "../cli-host.ts";
import type { GatheredSession } from "../gather-session.ts";
import { createPaint, type Paint } from "../views/colour.ts";
import { wrap } from "../views/text-width.ts";
import {
  adviceOnDescription,
  type Complaint,
  complaintAboutModel,
  complaintAboutName,
  complaintAboutTools,
} from "./new-agent-answers.ts";
import { folderFor, type NewOptions } from "./new-agent-place.ts";

/** Asks a person for everything the options do not say yet. */
export async function askForAgent(
  host: CliHost,
  options: NewOptions,
  session: GatheredSession,
): Promise<NewOptions> {
  const paint = createPaint(host.stdout.isColourAllowed);
  const asker = createAsker(host, paint);
  const scope =
    options.scope ??
    (await asker.ask(
      "Scope",
      "project (this folder) or user (all your folders) [project]",
      complaintAboutScope,
    ));
  const folder = folderFor(scope === "user" ? "user" : "project", session);
  const isTaken = (name: string): Complaint | undefined =>
    options.force !== true && existsSync(join(folder, `${name}.md`))
      ? { message: `There is already a ${session.nameOf(join(folder, `${name}.md`))}.` }
      : undefined;
  const name =
    options.name ??
    (await asker.ask("Name", "such as sql-reviewer", (text) => complaintAboutName(text) ?? isTaken(text)));
  const description = options.description ?? (await asker.askDescription());
  const tools =
    options.tools ??
    (await asker.ask("Tools", `empty for all; ${defaultTools.join(", ")}`, complaintAboutTools));
  const model =
    options.model ??
    (await asker.ask("Model", "empty to inherit; sonnet, opus, haiku, …", complaintAboutModel));
  return { ...options, name, description, tools, model, scope: scope === "user" ? "user" : "project" };
}

/** Tools for the work itself; whoever needs those for coordination knows their names. */
const defaultTools = builtinTools
  .filter(({ effect }) => ["read", "edit", "execute", "network"].includes(effect))
  .map(({ name }) => name);

function complaintAboutScope(text: string): Complaint | undefined {
  return ["", "project", "user"].includes(text) ? undefined : { message: "Write project or user." };
}

function createAsker(host: CliHost, paint: Paint) {
  const width = Math.min(host.stdout.columns ?? 80, 100);
  const say = (text: string): void =>
    host.stdout.write(
      `${wrap(text, width - 2)
        .map((line) => `  ${line}`)
        .join("\n")}\n`,
    );
  const read = async (label: string): Promise<string> => (await host.ask(`${paint.bold(label)}: `)).trim();
  return {
    /** Again and again, until the answer can be used. */
    async ask(
      label: string,
      hint: string,
      complain: (text: string) => Complaint | undefined,
    ): Promise<string> {
      for (const line of wrap(hint, width - 2)) host.stdout.write(`  ${paint.dim(line)}\n`);
      for (;;) {
        const answer = await read(label);
        const complaint = complain(answer);
        if (complaint === undefined) return answer;
        say([complaint.message, complaint.advice ?? ""].join(" ").trim());
      }
    },
    /** Shows what would make the description better; an empty answer keeps the last one. */
    async askDescription(): Promise<string> {
      const hint = "What it does, when to use it, what it is not for. A model decides by this text alone.";
      for (const line of wrap(hint, width - 2)) host.stdout.write(`  ${paint.dim(line)}\n`);
      let kept = "";
      for (;;) {
        const answer = await read(kept === "" ? "Description" : "Description (Enter keeps it)");
        if (answer === "" && kept !== "") return kept;
        if (answer === "") continue;
        kept = answer;
        const advice = adviceOnDescription(answer);
        if (advice.length === 0) return answer;
        for (const sentence of advice) say(`- ${sentence}`);
      }
    },
  };
}
