import { isRetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ModelEvent } from "../../conversation/message.ts";
import type { Model, ModelRequest } from "../../models/model.ts";
import { ModelError } from "../../models/model-error.ts";
import type { ModelPorts } from "../session-ports.ts";

export interface LiveModelOptions extends Pick<ModelPorts, "model" | "effort" | "toolAliases"> {
  /** Names of the models that answer in its place, tried in this order. */
  readonly fallbacks?: readonly string[] | undefined;
  readonly find: (name: string) => Promise<Model>;
}

/** A model that may be another one from request to request. */
export interface LiveModel extends Model {
  /** The next request is for the chosen model again, whatever failed before. */
  restart(): void;
}

/**
 * The model of the plan, unless the host has chosen another one meanwhile. Where it is overloaded or gone, the next of the
 * fallbacks answers, until `restart`: asking a model that does not answer before each answer would only cost time.
 */
export function createLiveModel(
  planned: Model,
  { fallbacks = [], find, model, effort, toolAliases }: LiveModelOptions,
): LiveModel {
  let current = planned;
  let chosen: string | undefined;
  let left = [...fallbacks];
  let hasFallenBack = false;
  const restart = (): void => {
    left = [...fallbacks];
    hasFallenBack = false;
  };
  /** The next model that can be asked and is another one. */
  const findNext = async (): Promise<Model | undefined> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const found = await findOrSkip(name, find);
      if (found !== undefined && !isSame(found, current)) return found;
    }
    return undefined;
  };
  return {
    get facts() {
      return current.facts;
    },
    restart,
    async *stream(request, options) {
      const name = model?.();
      if (name !== chosen) restart();
      chosen = name;
      if (!hasFallenBack) current = name === undefined ? planned : await find(name);
      const level = effort?.();
      const asked = level === undefined ? request : { ...request, effort: level };
      while (true) {
        let next: Model | undefined;
        let code = "";
        let hasEnded = false;
        try {
          for await (const event of current.stream(forModel(asked, current), options)) {
            if (event.type === "attempt-failed" && isEnough(event)) {
              code = event.code;
              next = await findNext();
              if (next !== undefined) break;
            }
            hasEnded ||= event.type === "message-ended";
            yield withoutAliases(event, toolAliases);
          }
          if (next === undefined) return;
        } catch (error) {
          const isOver = hasEnded || options.signal.aborted;
          if (isOver || !(error instanceof ModelError) || !mayAnotherAnswer(error)) throw error;
          code = error.code;
          next = await findNext();
          if (next === undefined) throw error;
        }
        // Still from the model that failed: what its answer took until then is paid at its price.
        yield { type: "fell-back", from: current.facts.id, to: next.facts.id, code };
        current = next;
        hasFallenBack = true;
      }
    },
  };
}

/** Names were checked when the session was opened; one that cannot be used any more is passed over for the next. */
async function findOrSkip(name: string, find: LiveModelOptions["find"]): Promise<Model | undefined> {
  try {
    return await find(name);
  } catch (error) {
    if (isRetinueError(error)) return undefined;
    throw error;
  }
}

function isSame({ facts: a }: Model, { facts: b }: Model): boolean {
  return a.id === b.id && a.provider === b.provider;
}

/** Tools that a provider runs itself are offered only where the model that answers has them. */
function forModel(request: ModelRequest, { facts }: Model): ModelRequest {
  return facts.supportsServerTools ? request : { ...request, serverTools: undefined };
}

/** So many attempts are made before another model answers. */
const attemptsBeforeFallback = 3;

function isEnough({ attempt, code }: Extract<ModelEvent, { type: "attempt-failed" }>): boolean {
  return attempt >= attemptsBeforeFallback && code !== "rate-limited";
}

/** Whether it is the model that cannot answer now, and not the request that no model could; an account that must wait, waits. */
function mayAnotherAnswer(error: ModelError): boolean {
  if (error.code === "rate-limited") return false;
  if (error.mayPass || error.code === "not-found") return true;
  const { type = "", message = "" } = error.answer ?? {};
  return error.code === "invalid-request" && retired.test(`${type} ${message}`);
}

/** How providers say with status 400 that there is no such model any more. */
const retired =
  /model_(decommissioned|not_found|retired)|\bmodel\b.{0,80}\b(decommissioned|retired|does not exist|no longer (available|supported))/i;

function withoutAliases(event: ModelEvent, aliases: ModelPorts["toolAliases"]): ModelEvent {
  if (aliases === undefined || event.type !== "message-ended") return event;
  const content = event.message.content.map((block) =>
    block.type === "tool_use" ? { ...block, name: aliases.get(block.name) ?? block.name } : block,
  );
  return { ...event, message: { ...event.message, content } };
}
