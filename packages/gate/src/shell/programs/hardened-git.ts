const switchedBy = (settings: readonly string[]): readonly string[] =>
  settings.flatMap((setting) => ["-c", setting]);
const settingsIn = (text: string): readonly string[] => switchedBy(text.trim().split(/\s+/));

/** Options for every git that no one said yes to: nothing runs here that a configuration names. */
export const withoutPrograms: readonly string[] = [
  "--no-pager",
  "--no-optional-locks",
  ...settingsIn(`core.fsmonitor=false core.hooksPath=/dev/null core.pager=cat core.editor=false sequence.editor=false
    core.alternateRefsCommand=false gpg.program=false gpg.ssh.program=false gpg.x509.program=false gpg.ssh.defaultKeyCommand=
    log.showSignature=false interactive.diffFilter= uploadpack.packObjectsHook= gc.auto=0 maintenance.auto=false
    submodule.recurse=false`),
];

/** Options for a git that only reads: no programs that a configuration names, no other machines, no locks. */
export const hardenedGit: readonly string[] = [
  ...withoutPrograms,
  ...settingsIn(`core.askPass= core.sshCommand=false core.gitProxy= credential.helper= protocol.allow=never
    safe.bareRepository=explicit stash.showPatch=false diff.ignoreSubmodules=dirty status.submoduleSummary=false`),
];

/** Options against filters of these names, whichever file they are configured in. */
export function withoutFilters(names: readonly string[]): readonly string[] {
  return names.flatMap((name) =>
    switchedBy(["clean=", "smudge=", "process=", "required=false"].map((end) => `filter.${name}.${end}`)),
  );
}
