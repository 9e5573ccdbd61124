import type { TreeFacts } from "@retinue/core/kernel/agent-tree.ts";
import { projectPaths } from "@retinue/core/kernel/project/create-project.ts";
import type { AccountModels, KeyOverview, KeyPlace } from "@retinue/core/kernel/project/project-keys.ts";
import type { WaitingPart } from "@retinue/core/kernel/project/project-trust.ts";
import { differenceLines, openDifferences } from "../../commands/agents/lock-report.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { describeRefusal } from "../../shared/describe-refusal.ts";
import { displayPath } from "../../shared/display-path.ts";
import { folderOptions } from "../../shared/folder-options.ts";
import { plural } from "../../shared/format.ts";
import { type CliProject, openProject } from "../../shared/open-project.ts";
import { waitingSections } from "../../shared/waiting-sections.ts";
import { describeError } from "./conversation-view.ts";
import type { OwnQuestions } from "./session-questions.ts";
import { digestOf, keepStartNotes, readStartNotes } from "./start-notes.ts";
import type { FormOption, SessionEvent, StartFacts } from "./terminal-session.ts";

export interface StartParts {
  readonly context: CommandContext;
  readonly questions: OwnQuestions;
  readonly report: (event: SessionEvent) => void;
  readonly signal: AbortSignal;
}

/** What a start asks and shows, once for each person and folder. */
export interface StartSteps {
  /** Asks for trust where something of the folder waits for it and was not declined as it is now. */
  offerTrust(): Promise<void>;
  /** The facts for the first lines; where they are shown for the first time, the key has been tried. */
  facts(facts: TreeFacts, mode: string): Promise<StartFacts>;
  /** Asks who is to answer where no one can: no key, or one that is refused; once. */
  offerAccess(facts: TreeFacts): Promise<AccessChoice | undefined>;
}

/** What the person chose: a model to be asked from now on, or the one that settings lead to. */
export interface AccessChoice {
  readonly model?: string;
}

export function createStartSteps(parts: StartParts): StartSteps {
  const { context } = parts;
  const { configDirectory } = projectPaths(folderOptions(context).given);
  const notes = readStartNotes(configDirectory);
  const project = openProject(context, { toleratesBrokenFiles: true });
  // The key is tried while the session is being opened.
  const tried = notes.isWelcomed ? undefined : project.keys.check({ signal: parts.signal });
  tried?.catch(() => undefined);
  /** What waits because the folder is not trusted. */
  let held: readonly WaitingPart[] = [];
  return {
    async offerTrust() {
      const { answer, parts: waiting, lock } = await project.trust.waiting({ pathText: project.nameOf });
      const isChanged = !answer.trusted && answer.changed !== undefined;
      if (answer.trusted || (waiting.length === 0 && !isChanged)) return;
      held = waiting;
      const digest = digestOf([waiting, lock]);
      if (notes.declined[answer.folder] === digest) return;
      if (await askForTrust(project, parts)) {
        held = [];
        return;
      }
      keepStartNotes(configDirectory, { declined: { [answer.folder]: digest } });
    },
    async facts(facts, mode) {
      const { host } = context;
      const [account, overview] = await Promise.all([tried, project.keys.look()]);
      keepStartNotes(configDirectory, { isWelcomed: true });
      return {
        isFirst: !notes.isWelcomed,
        version: host.version,
        folder: displayPath(host.cwd, { ...host, cwd: "" }),
        model: facts.model.provider === "offline" ? "" : facts.model.id,
        access: describeAccess(facts, overview, account),
        trust: describeTrust(facts, held),
        mode,
      };
    },
    async offerAccess(facts) {
      if (notes.isAccessAsked) return undefined;
      const account = await tried;
      if (account?.type !== "refused" && !answersOffline(facts)) return undefined;
      const choice = await chooseAccess(project, parts);
      keepStartNotes(configDirectory, { isAccessAsked: true });
      return choice;
    },
  };
}

/** The offline model answers although it was not asked for. */
function answersOffline({ model, plan, discovered }: TreeFacts): boolean {
  const named = discovered.settings.settings.plain.model ?? "";
  return model.provider === "offline" && plan.model.from === "the default" && !named.startsWith("offline");
}

const baseUrl = "ANTHROPIC_BASE_URL";

function describeAccess(
  facts: TreeFacts,
  { source, local }: KeyOverview,
  account: AccountModels | undefined,
): StartFacts["access"] {
  const { model } = facts;
  if (answersOffline(facts)) return { text: "no key: the offline demo answers · /login", isGood: false };
  if (model.provider === "offline") return { text: "the offline demo", isGood: true };
  if (model.provider !== "anthropic") {
    const where = local?.model === `${model.provider}/${model.id}` ? ` at ${local.address}` : "";
    return { text: `${model.provider}${where}`, isGood: true };
  }
  // A gateway may need no key of ours; whether it does is known when it has answered.
  const own = source === baseUrl ? `no key, ${source} answers` : `key from ${source}`;
  const from = source === undefined ? "no key" : own;
  switch (account?.type) {
    case "listed":
      return { text: `${from}, and ${account.host} accepts it`, isGood: true };
    case "refused":
      return { text: `${account.host} refuses the ${from} (${account.status}) · /login`, isGood: false };
    case "unknown":
      return { text: `${from}; ${account.host}: ${account.why}`, isGood: account.isReachable };
    case undefined:
      return { text: from, isGood: true };
  }
}

function describeTrust({ plan }: TreeFacts, held: readonly WaitingPart[]): StartFacts["trust"] {
  const { trusted, walled } = plan.policy;
  if (trusted === true) return { text: "trusted folder", isGood: true };
  const waits = held.length === 0 ? "" : `, so ${heldText(held)}`;
  const short =
    held.length === 0
      ? "folder not trusted"
      : `not trusted: ${plural(held.length, "part")} ${held.length === 1 ? "waits" : "wait"}`;
  if (walled === true)
    return {
      text: `folder not trusted${waits}: commands are isolated, git asks first · /trust`,
      short: `${short} · /trust`,
      isGood: held.length === 0,
    };
  return {
    text: `folder not trusted${waits}, and nothing isolates commands · /trust, /doctor`,
    short: `${short}, nothing isolates commands · /trust`,
    isGood: false,
  };
}

const heldNouns: Readonly<Record<WaitingPart["kind"], string>> = {
  runs: "program",
  variable: "variable",
  right: "rule",
  setting: "setting",
};

/** Such as "2 programs and 1 variable of it wait". */
function heldText(held: readonly WaitingPart[]): string {
  const counts = [...Map.groupBy(held, ({ kind }) => kind)].map(([kind, { length }]) =>
    plural(length, heldNouns[kind]),
  );
  const list = [counts.slice(0, -1).join(", "), ...counts.slice(-1)].filter((part) => part !== "");
  return `${list.join(" and ")} of it ${held.length === 1 ? "waits" : "wait"}`;
}

const yes = "yes, trust this folder";

/** Shows what the folder would run and set, and asks; true where it is trusted from now on. */
export async function askForTrust(
  project: CliProject,
  { questions, report, signal }: StartParts,
): Promise<boolean> {
  const { answer, parts, lock } = await project.trust.waiting({ pathText: project.nameOf });
  if (answer.trusted) {
    report({ type: "notice", level: "info", text: `This folder is trusted: ${answer.why}.` });
    return false;
  }
  const changes = lock.type === "compared" ? openDifferences(lock.differences).flatMap(differenceLines) : [];
  const why = answer.changed === undefined ? [] : [`You are asked again, because ${answer.changed}.`];
  const wanted =
    parts.length === 0
      ? ["Nothing in it runs or sets anything today; what is added later applies immediately."]
      : waitingSections(parts).flatMap(({ title, members }) => [
          title,
          ...members.map(({ text, from }) => `  ${text}  (${from})`),
        ]);
  const chosen = await questions.choose(
    {
      header: "trust",
      question: `Do you trust ${answer.folder}?`,
      details: [...why, ...changes, ...wanted],
      options: [
        { label: yes, description: "y · apply what is listed, from now on", key: "y" },
        { label: "not now", description: "n · ignore what is listed; /trust asks again", key: "n" },
      ],
    },
    signal,
  );
  if (chosen?.label !== yes) return false;
  // What was shown is what is accepted, whatever became of the files meanwhile.
  await project.trust.grant(lock);
  return true;
}

const paste = "paste a key";
const demo = "the offline demo";

/** Asks who is to answer until something works or the person gives up; undefined where nothing was chosen. */
export async function chooseAccess(
  project: CliProject,
  parts: StartParts,
): Promise<AccessChoice | undefined> {
  const { questions, report, signal } = parts;
  const { keys } = project;
  /** The next key is asked for in place of the one that was refused. */
  let pastesAgain = false;
  while (true) {
    const overview = await keys.look();
    const chosen = await questions.choose(
      {
        header: "model",
        question: "Which model should answer?",
        options: accessOptions(overview, { pastes: pastesAgain }),
      },
      signal,
    );
    if (chosen === undefined || chosen.label === demo) return undefined;
    pastesAgain = chosen.label === paste;
    try {
      const choice = await takeAccess(chosen, overview, project, parts);
      if (choice !== undefined) return choice;
    } catch (error) {
      signal.throwIfAborted();
      report({ type: "notice", level: "error", text: describeError(error) });
    }
  }
}

function accessOptions(
  { otherNames, local, set }: KeyOverview,
  { pastes }: { readonly pastes: boolean },
): readonly FormOption[] {
  const others = set.filter((name) => !name.startsWith("ANTHROPIC_"));
  return [
    {
      label: paste,
      description: "an Anthropic API key; it is not shown, and it is checked first",
      input: { label: "the key", isSecret: true, isOpen: pastes },
    },
    ...otherNames.map((name) => ({ label: `use ${name}`, description: "a variable that is set" })),
    ...(local === undefined
      ? []
      : [{ label: `use ${local.name}`, description: `${local.model} at ${local.address}` }]),
    ...others.map((name) => ({
      label: `use ${name}`,
      description: "and name the model",
      input: { label: "provider/model" },
    })),
    { label: demo, description: "a small built-in program, no language model; /login later" },
  ];
}

/** Undefined where it did not come about, and the person is asked again. */
async function takeAccess(
  { label, text = "" }: { readonly label: string; readonly text?: string },
  { otherNames, local }: KeyOverview,
  project: CliProject,
  parts: StartParts,
): Promise<AccessChoice | undefined> {
  const { keys } = project;
  const { report } = parts;
  if (label === paste) return keepKey(text.trim(), project, parts);
  const variable = otherNames.find((name) => label === `use ${name}`);
  if (variable !== undefined) {
    const file = await keys.useVariable(variable);
    report({
      type: "notice",
      level: "info",
      text: `${project.nameOf(file)} takes the key from ${variable}.`,
    });
    return {};
  }
  const model = local !== undefined && label === `use ${local.name}` ? local.model : text.trim();
  if (!/^[\w-]+\/\S+$/.test(model)) {
    report({
      type: "notice",
      level: "error",
      text: `${JSON.stringify(model)} is not a model: write provider/model, such as openai/NAME.`,
    });
    return undefined;
  }
  return { model };
}

const inSettings = "in your settings";
const inKeychain = "in the keychain";

/** Tries the key, asks where it is to be kept, and keeps it there. */
async function keepKey(
  key: string,
  project: CliProject,
  { questions, report, signal }: StartParts,
): Promise<AccessChoice | undefined> {
  const { keys, nameOf } = project;
  const account = await keys.check({ key, signal });
  const refusal = account === undefined ? undefined : describeRefusal(account);
  if (refusal !== undefined) report({ type: "notice", level: refusal.level, text: refusal.text });
  if (refusal?.level === "error") return undefined;
  const { settingsFile, hasKeychain } = await keys.look();
  const places: readonly FormOption[] = [
    { label: inSettings, description: `${nameOf(settingsFile)}, which only you can read` },
    ...(hasKeychain ? [{ label: inKeychain, description: "of this machine" }] : []),
    { label: "nowhere", description: "it is discarded and not used now" },
  ];
  const chosen = await questions.choose(
    { header: "the key", question: "Where should the key be kept?", options: places },
    signal,
  );
  const place: KeyPlace | undefined = { [inSettings]: "settings", [inKeychain]: "keychain" }[
    chosen?.label ?? ""
  ] as KeyPlace | undefined;
  if (place === undefined) return undefined;
  const where = await keys.save(key, place);
  report({ type: "notice", level: "info", text: `The key is kept in ${where}. /logout forgets it.` });
  return {};
}
