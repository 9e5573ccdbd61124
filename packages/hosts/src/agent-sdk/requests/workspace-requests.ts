import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type ListedHook, listHooks } from "@retinue/core/kernel/hooks/list-hooks.ts";
import { findProjectFiles } from "@retinue/core/kernel/project/find-project-files.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { refused } from "../control-channel.ts";
import type { ControlHandler, ControlRequestOptions } from "./create-control-requests.ts";

/** Requests about the folders of a session and what is configured in them. */
export function workspaceRequests(
  options: ControlRequestOptions,
): readonly (readonly [string, ControlHandler])[] {
  return [
    ["file_suggestions", ({ query }, signal) => suggestFiles(query, options, signal)],
    ["register_repo_root", (request, signal) => registerFolder(request, options, signal)],
    ["get_hooks_listing", () => describeHooks(options)],
    [
      "set_color",
      () => {
        throw refused("there is no accent colour here, because nothing is painted under a host");
      },
    ],
  ];
}

const maxSuggestions = 50;

/** The files that `@` and these letters may mean, the best first, as the terminal offers them. */
async function suggestFiles(
  query: unknown,
  { host }: ControlRequestOptions,
  signal: AbortSignal,
): Promise<JsonRecord> {
  if (typeof query !== "string") throw refused("file_suggestions needs a query");
  const { session } = await host.ready();
  const files = await findProjectFiles(session.plan.directory, signal);
  const found = fuzzyFilter([...files], query.replace(/^@/, ""), (path) => path);
  return { suggestions: found.slice(0, maxSuggestions).map((path) => ({ path })) };
}

const reloads = ["reload_claude_md", "reload_skills", "reload_plugins"] as const;

/** Adds a folder below the session's own as a working directory; where a reload is asked for, what it brings is read. */
async function registerFolder(
  request: JsonRecord,
  options: ControlRequestOptions,
  signal: AbortSignal,
): Promise<JsonRecord> {
  const { host, policy, choices, context, observed } = options;
  const { directory } = request;
  if (typeof directory !== "string" || directory === "") throw refused("it needs a directory");
  const { plan } = (await host.ready()).session;
  const folder = await realpath(resolve(plan.directory, directory)).catch(() => undefined);
  const found = folder === undefined ? undefined : await stat(folder);
  if (folder === undefined || found?.isDirectory() !== true)
    throw refused(`there is no folder ${JSON.stringify(directory)}`);
  const roots = [plan.directory, ...(context.session.addDir ?? [])].map((root) =>
    resolve(plan.directory, root),
  );
  if (policy.apply(plan.policy).workingDirectories.includes(folder))
    throw refused(`${folder} is already a working directory`);
  if (!roots.some((root) => folder.startsWith(`${root}/`)))
    throw refused(
      `${folder} is neither below the working directory nor below one that was added at the start`,
    );
  await policy.update({ type: "addDirectories", directories: [folder] });
  choices.folders = [...choices.folders, folder];
  if (reloads.some((key) => request[key] === true)) await host.reopen();
  const fields = { directory: folder, source: "register_repo_root" };
  void observed()
    .fire("DirectoryAdded", { fields, signal, subject: folder })
    .catch(() => undefined);
  return {};
}

/** Every hook that may fire in this session: of settings files, of plugins, and the host's own callbacks. */
async function describeHooks({ host, initialize }: ControlRequestOptions): Promise<JsonRecord> {
  const { hooks, catalog, policy } = await listHooks((await host.ready()).session.discovered);
  const callbacks = initialize.hooks.map(
    ({ event, matcher = "", timeoutMs, callbackIds }): ListedHook => ({
      event,
      matcher,
      source: "sessionHook",
      sourceLabel: "Callback of the host",
      type: "callback",
      displayText: callbackIds.join(", "),
      commandText: callbackIds.join(", "),
      contentLabel: "Callback",
      timeout: timeoutMs === undefined ? undefined : timeoutMs / 1000,
    }),
  );
  const rows = catalog.map(({ name }) => [...hooks, ...callbacks].filter(({ event }) => event === name));
  return {
    events: catalog.flatMap((event, at) => {
      const hookCount = rows[at]?.length ?? 0;
      return hookCount === 0 ? [] : [{ ...event, hookCount }];
    }),
    hooks: rows.flat().map(withoutControls),
    eventCatalog: catalog,
    policy,
  };
}

/** The texts of people's files, as a screen may show them. */
function withoutControls(row: ListedHook): JsonRecord {
  const entries = Object.entries(row).map(([key, value]) => [
    key,
    typeof value === "string" ? stripControlCharacters(value) : value,
  ]);
  return Object.fromEntries(entries);
}
