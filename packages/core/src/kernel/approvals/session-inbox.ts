import { randomUUID } from "node:crypto";
import { abortable } from "@retinue/base/foundation/abortable.ts";
import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type AskingAgent, describeAskingPath } from "@retinue/gate/approver.ts";
import type { PermissionPolicy } from "@retinue/gate/decide.ts";
import {
  type ApprovalGrant,
  type ApprovalQuestion,
  type AskedPlace,
  type CoveredCall,
  coversCall,
  digestOf,
  type JudgedCall,
  rulesPass,
} from "@retinue/gate/grants/approval-record.ts";
import { suggestRules } from "@retinue/gate/suggest-rules.ts";
import type { Model } from "../../models/model.ts";
import { actualAmount } from "../../tasks/need-estimator.ts";
import type { CallToAsk, UserAnswer } from "../agent/ask-person.ts";
import {
  type InboxEntry,
  type InboxFiles,
  newQuestionId,
  openInboxFiles,
  watchFolder,
} from "./inbox-files.ts";

/** Whose call it is, and by what it was judged. */
export interface InboxAsker {
  /** From the main agent to the one whose call it is. */
  readonly path: readonly AskingAgent[];
  readonly policy: PermissionPolicy;
  /** Where rules of a grant start. */
  readonly directory: string;
}

/** The questions of a session that wait for an answer on disk, from any process. */
export interface SessionInbox extends Disposable {
  /** The main agent of the session. */
  readonly main: AskingAgent;
  /** The answer of a grant that was given before; undefined where none covers the call. */
  granted(call: CallToAsk, asker: InboxAsker): UserAnswer | undefined;
  /** Writes the question down and waits until it is answered. */
  ask(call: CallToAsk, asker: InboxAsker, options: { readonly signal: AbortSignal }): Promise<UserAnswer>;
  /** Whether a call waits here, or one of such an agent in another process. */
  isAsking(isRunning: (agentId: string) => boolean): boolean;
  /** The model, with what its answers cost counted for grants that are limited by money. */
  count(model: Model): Model;
}

export interface SessionInboxOptions {
  /** The folder of this session's approvals. */
  readonly directory: string;
  readonly sessionId: string;
  readonly main: AskingAgent;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly notice?: ((text: string) => void) | undefined;
  /** Is notified of each new question. */
  readonly asked?: ((question: ApprovalQuestion) => void) | undefined;
}

interface Waiting {
  readonly call: CallToAsk;
  readonly asker: InboxAsker;
  readonly judged: JudgedCall;
  readonly digest: string;
}

/** What the questions of one session share. */
interface OpenInbox extends SessionInboxOptions {
  readonly files: InboxFiles;
  readonly watching: ReturnType<typeof watchFolder>;
  /** This process, among those that use grants. */
  readonly run: string;
  readonly spent: Spent;
}

export function openSessionInbox(options: SessionInboxOptions): SessionInbox {
  const { directory, notice } = options;
  const watching = watchFolder(directory);
  const spent: Spent = { usd: 0, isKnown: true, since: new Map() };
  const files = openInboxFiles(directory, { ignored: notice });
  const inbox: OpenInbox = { ...options, files, watching, run: randomUUID(), spent };
  let waiting = 0;
  return {
    main: options.main,
    isAsking: (isRunning) =>
      waiting > 0 ||
      files
        .read()
        .some(
          ({ question, answer }) =>
            answer === undefined && question.places.some(({ agent }) => isRunning(agent)),
        ),
    count: (model) => counted(model, spent),
    granted: (call, asker) => takeAnswer(inbox, aboutOf(call, asker)),
    async ask(call, asker, { signal }) {
      const about = aboutOf(call, asker);
      waiting += 1;
      try {
        while (true) {
          signal.throwIfAborted();
          // Listening begins before looking, so that no answer falls between the two.
          // Both look at the same files: an answer that comes between them must not make the question look like a new one.
          const entries = inbox.files.read();
          const first = takeAnswer(inbox, about, entries);
          if (first !== undefined) return first;
          putQuestion(inbox, about, entries);
          const changed = inbox.watching.changed();
          const answer = takeAnswer(inbox, about);
          if (answer !== undefined) return answer;
          await abortable(changed, signal);
        }
      } catch (error) {
        if (isStopped(signal)) {
          // A call whose agent was stopped for good waits no more; one that was cut off may come again.
          const { now } = inbox;
          const place = placeOf(about, now());
          for (const { question, answer } of inbox.files.read()) {
            if (answer !== undefined || question.digest !== about.digest) continue;
            const places = question.places.filter(
              ({ call, agent }) => call !== place.call || agent !== place.agent,
            );
            if (places.length === 0) inbox.files.remove(question.id);
            else inbox.files.putQuestion({ ...question, places });
          }
        }
        throw error;
      } finally {
        waiting -= 1;
      }
    },
    [Symbol.dispose]: () => watching[Symbol.dispose](),
  };
}

/** Takes what an answer allows or refuses, so that it counts once for each call. */
function takeAnswer(inbox: OpenInbox, about: Waiting, entries = inbox.files.read()): UserAnswer | undefined {
  const { files, now, run, spent } = inbox;
  for (const { question, answer, revoked, uses } of entries) {
    if (answer === undefined) continue;
    const { id } = question;
    const before = spent.since.get(id) ?? spent.usd;
    spent.since.set(id, before);
    const usd: number | undefined = spent.isKnown ? spent.usd - before : undefined;
    const state = { uses, isRevoked: revoked !== undefined };
    if (!coversCall(answer, state, coveredCall(about, { now: now(), usd, run }))) continue;
    const agent = about.asker.path.at(-1)?.id ?? "";
    const { tool, digest } = { tool: about.judged.tool, digest: about.digest };
    const use = { grant: id, agent, call: about.call.callId, tool, digest, by: answer.by, at: now(), run };
    // Another process may have used it in this moment; the process that wrote the number first has it.
    if (!files.putUse({ version: 1, ...use, usd: usd ?? 0 }, uses.length + 1))
      return takeAnswer(inbox, about);
    const approval = { id, by: answer.by };
    if (answer.type === "allow")
      return {
        type: "allowed",
        approval,
        answers: answer.answers,
      };
    const message = answer.message?.trim() ?? "";
    const reason =
      message === "" ? `${answer.by} refused it` : `${answer.by} refused it and says: ${message}`;
    return { type: "denied", reason, stops: false, approval };
  }
  return undefined;
}

/** The open question for a call, with this agent among its places. */
function putQuestion(
  { files, now, sessionId, asked, notice }: OpenInbox,
  about: Waiting,
  entries: readonly InboxEntry[],
): void {
  const place = placeOf(about, now());
  const open = entries.find(
    ({ question, answer }) => answer === undefined && question.digest === about.digest,
  )?.question;
  if (open !== undefined) {
    const places = withPlace(open.places, place);
    if (places !== open.places) files.putQuestion({ ...open, places });
    return;
  }
  const { call, asker, judged, digest } = about;
  const id = newQuestionId();
  const at = now();
  const { directory: anchor } = asker;
  const policy = call.policy ?? asker.policy;
  const everyTime = call.asksEveryTime === true || !rulesPass(call.request, policy, { rules: [], anchor });
  const question: ApprovalQuestion = {
    version: 1,
    id,
    session: sessionId,
    digest,
    ...judged,
    reason: call.reason,
    suggestedRules: call.quote === undefined ? suggestRules(call.request, policy, { anchor }) : [],
    everyTime,
    ...(call.quote === undefined ? {} : { quote: call.quote }),
    ...(call.preview === undefined ? {} : { preview: call.preview }),
    places: [place],
    at,
  };
  files.putQuestion(question);
  asked?.(question);
  notice?.(
    `${place.path} waits for an answer: ${question.tool} (${question.reason}). Answer with \`retinue approve ${question.id}\` or \`retinue deny ${question.id}\`.`,
  );
}

function isStopped({ aborted, reason }: AbortSignal): boolean {
  return aborted && isRetinueError(reason) && reason.code.startsWith("stopped-by-");
}

function aboutOf(call: CallToAsk, asker: InboxAsker): Waiting {
  const { tool, input } = call.request;
  const { paths, scripts } = call.seal ?? { paths: call.request.paths, scripts: [] };
  const directory = call.directory ?? asker.directory;
  const judged = { tool, input, directory, paths, ...(scripts.length === 0 ? {} : { scripts }) };
  return { call, asker, judged, digest: digestOf(judged) };
}

function coveredCall(
  { call, asker, digest }: Waiting,
  facts: Pick<CoveredCall, "now" | "usd" | "run">,
): CoveredCall {
  return {
    ...facts,
    digest,
    path: asker.path.map(({ id }) => id),
    passes: ({ rules, digest: given }: ApprovalGrant) =>
      call.asksEveryTime !== true &&
      (given === digest || rules.length > 0) &&
      rulesPass(call.request, call.policy ?? asker.policy, {
        rules: given === digest ? [] : rules,
        anchor: asker.directory,
      }),
  };
}

function placeOf({ call, asker }: Waiting, at: number): AskedPlace {
  return {
    agent: asker.path.at(-1)?.id ?? "",
    path: describeAskingPath(asker.path),
    call: call.callId,
    at,
  };
}

/** A call that comes again after its process died takes the place of the earlier one. */
function withPlace(places: readonly AskedPlace[], place: AskedPlace): readonly AskedPlace[] {
  if (places.some(({ agent, call }) => agent === place.agent && call === place.call)) return places;
  return [...places.filter(({ agent }) => agent !== place.agent), place];
}

/** What the agents of this process have spent, and how much of it before each grant was known. */
interface Spent {
  usd: number;
  isKnown: boolean;
  readonly since: Map<string, number>;
}

function counted(model: Model, spent: Spent): Model {
  const { price } = model.facts;
  return {
    facts: model.facts,
    async *stream(request, options) {
      for await (const event of model.stream(request, options)) {
        if (event.type === "message-ended") {
          if (price === undefined) spent.isKnown = false;
          spent.usd += actualAmount(event.usage, price).usd;
        }
        yield event;
      }
    },
  };
}
