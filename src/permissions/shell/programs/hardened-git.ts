/** Options for a git that only reads: no programs that a configuration names, no other machines, no locks. */
export const hardenedGit: readonly string[] = [
  "--no-pager",
  "--no-optional-locks",
  ...[
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "core.sshCommand=false",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "protocol.allow=never",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "diff.ignoreSubmodules=dirty",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
  ].flatMap((setting) => ["-c", setting]),
];
