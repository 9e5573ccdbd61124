import type { GitTransport } from "../shell/model.ts";
import { type RepositoryFacts, valuesOf } from "./ask-repository.ts";
import { partsOf } from "./git-settings.ts";

export interface TransportContext {
  readonly repository: RepositoryFacts;
  /** Whether there is a file or folder of this name where the command runs. */
  readonly isThere: (path: string) => boolean;
  /** The addresses of the submodules, as git reads them from the files; undefined where it does not. */
  readonly submodules: () => Promise<readonly string[] | undefined>;
}

/**
 * Why a git command that exchanges commits is asked about whatever rules allow: it runs the hooks and the settings of a
 * repository on this machine, which may have been laid out for that, or a program that this repository names. Undefined
 * where all it reaches are other machines.
 */
export async function transportReason(
  { verb, named }: GitTransport,
  context: TransportContext,
): Promise<string | undefined> {
  const { repository } = context;
  if (repository.type === "unclear") return `git could not report where it leads: ${repository.reason}`;
  if (verb === "edit") return byProgram(repository, editing);
  const program = byProgram(repository, carrying);
  if (program !== undefined) return program;
  const addresses = await addressesFrom({ verb, named }, context);
  if (addresses === undefined) return "git could not report where the submodules come from";
  const local = addresses
    .flatMap((address) => [address, ...rewritten(address, repository)])
    .find((address) => !isElsewhere(address) || (verb === "clone" && context.isThere(address)));
  return local === undefined
    ? undefined
    : `${local} is not known to be on another machine; git runs the hooks and obeys the settings of a repository on this one`;
}

/** Every address that a command may reach, before settings replace a part of it. */
async function addressesFrom(
  { verb, named }: GitTransport,
  context: TransportContext,
): Promise<readonly string[] | undefined> {
  const { repository, isThere } = context;
  if (verb === "submodule") return submoduleAddresses(context);
  if (named.length === 0) return configuredAddresses(repository);
  // Without a repository there are no remotes, so a plain name leads nowhere.
  const leads = (name: string): boolean =>
    repository.type === "repository" || verb === "clone" || /[/:]/.test(name) || isThere(name);
  return named.filter(leads).flatMap((name) => addressesOf(name, repository));
}

/** Settings of a repository that name what git starts to reach another machine, with values that are plain. */
const carrying: ReadonlyMap<string, RegExp> = new Map([
  ["core.sshcommand", /^ssh(?: -i [\w./~-]+| -o "?IdentitiesOnly=yes"?| -[46])*$/],
  ["core.gitproxy", /^$/],
  ["core.askpass", /^$/],
  ["credential.helper", /^(?:|cache|store|osxkeychain|manager|manager-core|libsecret|wincred)$/],
  ["remote.vcs", /^$/],
  ["remote.uploadpack", /^git-upload-pack$/],
  ["remote.receivepack", /^git-receive-pack$/],
  ["submodule.update", /^(?:checkout|rebase|merge|none)$/],
  ["protocol.allow", /^never$/],
  ["core.alternaterefscommand", /^$/],
]);
const editing: ReadonlyMap<string, RegExp> = new Map([["sequence.editor", /^(?:|true|:)$/]]);

function byProgram(repository: RepositoryFacts, table: ReadonlyMap<string, RegExp>): string | undefined {
  if (repository.type !== "repository") return undefined;
  const found = repository.own.find(({ key, value = "" }) => {
    const { section, name } = partsOf(key);
    return table.get(`${section}.${name}`)?.test(value) === false;
  });
  return found === undefined ? undefined : `the setting ${found.key} of this repository starts a program`;
}

/** The addresses of a remote, or of a group of them; a name that is neither is an address itself. */
function addressesOf(name: string, repository: RepositoryFacts): readonly string[] {
  const group = valuesOf(repository, `remotes.${name}`).flatMap((list) => list.split(/\s+/));
  return (group.length > 0 ? group : [name]).flatMap((member) => {
    const configured = ["url", "pushurl"].flatMap((end) => valuesOf(repository, `remote.${member}.${end}`));
    return configured.length > 0 ? configured : [member];
  });
}

/** Where a command goes that names nothing: any of the remotes, and whatever a branch names in their place. */
function configuredAddresses(repository: RepositoryFacts): readonly string[] {
  if (repository.type !== "repository") return [];
  return repository.settings.flatMap(({ key, value = "" }) => {
    const { section, subsection, name } = partsOf(key);
    if (section === "remote" && (name === "url" || name === "pushurl")) return [value];
    const isPointer =
      (section === "branch" && (name === "remote" || name === "pushremote")) ||
      (section === "remote" && subsection === "" && name === "pushdefault");
    return isPointer && value !== "." ? addressesOf(value, repository) : [];
  });
}

/** What an address becomes by the settings that replace beginnings of addresses. */
function rewritten(address: string, repository: RepositoryFacts): readonly string[] {
  if (repository.type !== "repository") return [];
  return repository.settings.flatMap(({ key, value = "" }) => {
    const { section, subsection, name } = partsOf(key);
    const isRewriting = section === "url" && (name === "insteadof" || name === "pushinsteadof");
    return isRewriting && address.startsWith(value) ? [`${subsection}${address.slice(value.length)}`] : [];
  });
}

async function submoduleAddresses(context: TransportContext): Promise<readonly string[] | undefined> {
  const { repository } = context;
  const listed = await context.submodules();
  if (repository.type !== "repository") return [];
  if (listed === undefined) return undefined;
  const known = repository.settings.flatMap(({ key, value = "" }) => {
    const { section, name } = partsOf(key);
    return section === "submodule" && name === "url" ? [value] : [];
  });
  // A relative one is beside the remote of the repository.
  return [...listed, ...known].flatMap((address) =>
    /^\.\.?\//.test(address) ? configuredAddresses(repository) : [address],
  );
}

const byProtocol =
  /^(?:https?|ssh|git|git\+ssh|ssh\+git):\/\/(?:[\w.%:~+-]+@)?(\[[\da-f:.]+\]|[a-z\d][\w.-]*)(?::\d+)?(?:\/|$)/i;
const byHost = /^(?:[\w.-]+@)?([a-z\d][\w.-]+):(?![:\\]|\/\/)/i;
const thisMachine =
  /^(?:localhost(?:\..*)?|127(?:\.\d+)*|0(?:\.0)*|\[(?:::1?|::ffff:127[\d.]+)\]|.*\.localhost)$/i;

/** Whether an address can only mean another machine. */
function isElsewhere(address: string): boolean {
  const host =
    byProtocol.exec(address)?.[1] ?? (address.includes("://") ? undefined : byHost.exec(address)?.[1]);
  return host !== undefined && !thisMachine.test(host);
}
