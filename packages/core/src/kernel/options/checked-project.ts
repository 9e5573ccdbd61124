import {
  type Argument,
  type Check,
  checkArguments,
  checks,
} from "@retinue/base/foundation/check-arguments.ts";
import type { Project } from "../project/create-project.ts";
import { runtimeChecks } from "./check-options.ts";

const { text, filled, flag, call, texts, amount, signal, record, oneOf, list } = checks;
const { mode } = runtimeChecks;

const value = (check: Check): Argument => ({ check });
const optional = (check: Check): Argument => ({ check, isOptional: true });
const options = (table: Readonly<Record<string, Check>>): Argument => ({ options: table });

/** A call as `"Bash(git push)"` or `{ tool, input }`. */
const testedCall: Check = (given) =>
  filled(given) === undefined || filled(Object(given)["tool"]) === undefined
    ? undefined
    : 'must be a call such as "Bash(git push)" or { tool, input }';

const named = value(filled);
const oneScope = options({ scope: oneOf(["user", "project", "local"]) });

/** What each method of a runtime's groups takes, in order. A method that is not listed takes nothing. */
const methods: { readonly [Group in keyof Project]: Readonly<Record<string, readonly Argument[]>> } = {
  agents: {
    list: [options({ all: flag })],
    get: [named, options({ pathText: call })],
    check: [optional(texts)],
    create: [
      {
        options: { name: filled, description: text, tools: texts, model: filled, prompt: text },
        needs: ["name", "description"],
      },
      options({ scope: oneOf(["project", "user"]), replaces: flag, pathText: call }),
    ],
    newFolder: [value(oneOf(["project", "user"]))],
  },
  formats: {
    convert: [
      {
        options: { source: filled, from: filled, to: filled, dryRun: flag, allowWider: flag, replaces: flag },
        needs: ["to"],
      },
    ],
    compare: [named, named],
  },
  lock: { write: [options({ dryRun: flag })] },
  skills: {},
  permissions: {
    test: [value(testedCall), options({ mode, allowedTools: texts, pathText: call, optionText: call })],
  },
  mcp: {
    list: [options({ check: flag, signal })],
    get: [named],
    add: [
      {
        options: {
          name: filled,
          config: record,
          scope: oneOf(["local", "project", "user"]),
          replaces: flag,
          usage: text,
          pathText: call,
        },
        needs: ["name", "config"],
      },
    ],
    remove: [named, options({ scope: oneOf(["local", "project", "user"]) })],
    approve: [optional(filled)],
    reject: [named],
  },
  keys: {
    check: [options({ key: text, signal })],
    save: [value(text), value(oneOf(["settings", "keychain"]))],
    useVariable: [named],
    useModel: [named],
  },
  trust: {
    show: [options({ pathText: call })],
    waiting: [options({ pathText: call })],
    grant: [optional(record)],
  },
  plugins: { enable: [named, oneScope], disable: [named, oneScope], validate: [named] },
  workflows: { run: [named], stop: [named, options({ signal })] },
  doctor: { check: [options({ nameOf: call, diagnostics: list, signal })] },
  sessions: {
    list: [options({ limit: amount })],
    get: [named],
    inspect: [optional(filled)],
    recording: [optional(filled)],
    clean: [options({ dryRun: flag, olderThanDays: amount, signal })],
  },
  teams: {
    get: [named],
    board: [named],
    messages: [named, optional(filled)],
    send: [named, named, value(text)],
    stop: [named, options({ member: filled, signal })],
    clean: [optional(filled), options({ force: flag, dryRun: flag })],
    watch: [named, named, options({ signal })],
  },
  tasks: {
    list: [options({ limit: amount })],
    get: [named],
    stop: [named, options({ signal })],
    log: [named, options({ follow: flag, signal })],
  },
};

/** The same project; what JavaScript passes wrongly is refused in one sentence, before anything is read. */
export function checkedProject(project: Project): Project {
  const groups = Object.entries(project).map(([group, functions]) => [
    group,
    checkedGroup(group, functions, methods[group as keyof Project]),
  ]);
  return Object.fromEntries(groups) as Project;
}

function checkedGroup(
  group: string,
  functions: Readonly<Record<string, (...given: unknown[]) => unknown>>,
  table: Readonly<Record<string, readonly Argument[]>>,
) {
  const checked = Object.entries(functions).map(([method, run]) => {
    const takes = table[method] ?? [];
    const name = `${group}.${method}`;
    // A generator throws when it is read, and everything else rejects: no method throws by itself.
    if (isGenerator(run))
      return [
        method,
        async function* (...given: unknown[]) {
          checkArguments(name, takes, given);
          yield* run(...given) as AsyncIterable<unknown>;
        },
      ];
    return [
      method,
      async (...given: unknown[]) => {
        checkArguments(name, takes, given);
        return run(...given);
      },
    ];
  });
  return Object.fromEntries(checked);
}

function isGenerator(run: object): boolean {
  return Object.prototype.toString.call(run) === "[object AsyncGeneratorFunction]";
}
