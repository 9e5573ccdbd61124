import type { AttackClass } from "./attack.ts";
import { builtins } from "./classes/builtins.ts";
import { childAgents } from "./classes/child-agents.ts";
import { deniedContentInGit } from "./classes/denied-content-in-git.ts";
import { copiedSecrets, deniedEdits } from "./classes/denied-edits.ts";
import { deniedReads } from "./classes/denied-reads.ts";
import { disguisedWords } from "./classes/disguised-words.ts";
import { dodgedDenials } from "./classes/dodged-denials.ts";
import { fedNames } from "./classes/fed-names.ts";
import { fileTools } from "./classes/file-tools.ts";
import { gitConfiguration } from "./classes/git-configuration.ts";
import { instructionImports } from "./classes/instruction-imports.ts";
import { network } from "./classes/network.ts";
import { programsThatExecute } from "./classes/programs-that-execute.ts";
import { programsThatWrite } from "./classes/programs-that-write.ts";
import { projectTexts } from "./classes/project-texts.ts";
import { protectedFiles } from "./classes/protected-files.ts";
import { providerKey } from "./classes/provider-key.ts";
import { sameAnswer } from "./classes/same-answer.ts";
import { shellSyntax } from "./classes/shell-syntax.ts";
import { steeringVariables } from "./classes/steering-variables.ts";
import { stretchedGrants } from "./classes/stretched-grants.ts";
import { terminalOutput } from "./classes/terminal-output.ts";
import { untrustedProjects } from "./classes/untrusted-projects.ts";
import { wideRights } from "./classes/wide-rights.ts";

/** All attacks, class by class. */
export const attackClasses: readonly AttackClass[] = [
  programsThatExecute,
  programsThatWrite,
  builtins,
  steeringVariables,
  disguisedWords,
  shellSyntax,
  deniedReads,
  deniedContentInGit,
  deniedEdits,
  copiedSecrets,
  gitConfiguration,
  stretchedGrants,
  dodgedDenials,
  protectedFiles,
  fileTools,
  childAgents,
  instructionImports,
  terminalOutput,
  untrustedProjects,
  providerKey,
  network,
  projectTexts,
  sameAnswer,
  fedNames,
  wideRights,
];
