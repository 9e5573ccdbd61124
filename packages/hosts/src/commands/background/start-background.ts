import { randomUUID } from "node:crypto";
import { noPrompt } from "../../print/run-print.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import type { RunFlags } from "../../shared/flags.ts";
import { misuse, refuseAgents } from "../../shared/misuse.ts";
import { openFolder, openProject } from "../../shared/open-project.ts";
import { ownProgram } from "../../shared/own-program.ts";
import { readPrintOptions } from "../../shared/print-options.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { openBackground } from "./find-background.ts";

/** `retinue --bg "prompt"`: starts the session in a process of its own, prints its id, and returns. */
export async function startBackground(
  context: CommandContext,
  words: readonly string[],
  { options, arguments_ }: { readonly options: RunFlags; readonly arguments_: readonly string[] },
): Promise<number> {
  const { host } = context;
  // It would continue beyond the limits of the session that started it, and when that one is stopped.
  refuseAgents(host);
  readPrintOptions(options, { words, cwd: host.cwd, session: context.session });
  if (options.inputFormat === "stream-json")
    throw misuse("--bg takes one prompt, and no messages from stdin.", "Leave out --input-format.");
  if (options.forkSession === true)
    throw misuse(
      "--bg cannot continue a copy of a session.",
      "Copy it first: retinue sessions; or leave out --fork-session.",
    );
  if (options.sessionPersistence === false)
    throw misuse(
      "A background session needs a transcript, so that it can be followed.",
      "Leave out --no-session-persistence.",
    );
  const input = await readInput(context, words);
  await requireTrust(context);
  const known = await findTarget(context, options);
  const sessionId = known ?? options.sessionId ?? randomUUID();
  const prompt = [...words, input ?? ""].join(" ").trim();
  const name = stripControlCharacters(options.name ?? prompt)
    .replace(/\s+/g, " ")
    .slice(0, 60);
  const program = ownProgram();
  const { id, output } = await openBackground(host).start({
    sessionId,
    name,
    cwd: host.cwd,
    worktree: options.worktree !== undefined && options.worktree !== false,
    program: {
      file: program.file,
      arguments: [
        ...program.arguments,
        ...runWords(arguments_, [
          ...(known === undefined && options.sessionId === undefined ? ["--session-id", sessionId] : []),
          ...(options.approvals === undefined ? ["--approvals", "wait"] : []),
        ]),
      ],
    },
    environment: host.environment,
    input,
  });
  host.stdout.write(`${id}\n`);
  host.stderr.write(
    `Open it:   retinue attach ${id}\nFollow it: retinue logs ${id} -f\nStop it:   retinue stop ${id}\nOutput:    ${output}\n`,
  );
  return 0;
}

/** The words of this call as those of a run that prints; what is added comes before the prompt. */
export function runWords(arguments_: readonly string[], added: readonly string[]): readonly string[] {
  const end = arguments_.indexOf("--");
  const isOwn = (word: string, at: number): boolean =>
    (word === "--bg" || word === "--background") && (end === -1 || at < end);
  const rest = arguments_.filter((word, at) => !isOwn(word, at));
  return rest[0] === "run" ? ["run", ...added, ...rest.slice(1)] : ["-p", ...added, ...rest];
}

const largestInput = 10 * 1024 * 1024;
const waitMs = 3_000;

async function readInput({ host }: CommandContext, words: readonly string[]): Promise<string | undefined> {
  const isGiven = words.join(" ").trim() !== "";
  if (host.stdin.isTerminal) {
    if (!isGiven) throw noPrompt();
    return undefined;
  }
  const piped = await host.stdin.readAll({ limit: largestInput, ...(isGiven ? { timeoutMs: waitMs } : {}) });
  if (piped.trim() === "" && !isGiven) throw noPrompt();
  return piped.trim() === "" ? undefined : piped;
}

/** There is no person to see what a folder's files would run. */
async function requireTrust(context: CommandContext): Promise<void> {
  const { answer } = await openProject(context).trust.show({ pathText: (path) => path });
  if (context.session.trust === true || answer.trusted) return;
  throw misuse(
    "A session in the background needs a trusted folder, and this one is not trusted.",
    "`retinue trust` shows what it would run, and asks; --trust trusts it for this run.",
  );
}

/** The session that is continued, where one is. */
async function findTarget(
  { host }: CommandContext,
  { resume, continue: isContinued }: RunFlags,
): Promise<string | undefined> {
  const { sessions } = openFolder(host);
  if (resume !== undefined) return (await sessions.get(resume)).id;
  if (isContinued !== true) return undefined;
  const [newest] = await sessions.list({ limit: 1 });
  if (newest === undefined) throw misuse("There is no session in this folder to continue.");
  return newest.id;
}
