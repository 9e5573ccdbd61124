import { commandRights } from "../../foundation/command-rights.ts";
import { factsOf, type PathFact, type PermissionRequest, touchedPaths } from "../call-facts.ts";

/** Why a call would answer questions in the place of a person, or undefined. No mode and no rule allows that. */
export function answersApprovals(request: PermissionRequest): string | undefined {
  const facts = factsOf(request);
  if (touchedPaths(facts).some(writesInbox))
    return "only a person answers approvals, no agent writes to them";
  const analysis = facts.shell?.analysis;
  const texts = [
    ...(analysis?.units.flatMap(({ restrictTexts }) => restrictTexts) ?? []),
    // What is not understood is looked at as a whole.
    ...(analysis?.opaque === undefined ? [] : [analysis.exactText]),
  ];
  if (texts.some((text) => answering.test(text)))
    return "only a person decides that, not a command of an agent";
  const whole = analysis?.exactText ?? "";
  if (hidingMark.test(whole)) return "it would hide that it is a command of an agent (`CLAUDECODE`)";
  return linking.test(whole) && inbox.test(whole)
    ? "only a person answers approvals, no agent makes links to them"
    : undefined;
}

/** Commands of agents carry this variable, by which `retinue approve` knows them. */
const hidingMark = /\bCLAUDECODE\+?=|\b(?:unset|-u|--unset=?)\s*(?:\S+\s+)*["']?CLAUDECODE\b/;
const linking = /(?:^|[\s;&|(/])(?:ln|link|mount)\s/;

/** The folder of a session, by its id, and the one for its approvals in it. */
const inbox = /\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\/approvals(?![\w-])/i;

function writesInbox({ forms, use }: PathFact): boolean {
  return use !== "read" && forms.some((form) => inbox.test(form));
}

const personCommands = Object.keys(commandRights).filter((path) => commandRights[path] === "person");

/** The command by any path, with options before the words that decide. */
const answering = new RegExp(
  `(?:^|[\\s/])retinue(?:\\.js)?\\s+(?:-\\S+\\s+(?:[^-\\s]\\S*\\s+)?)*(?:${personCommands
    .map((path) => path.replaceAll(" ", "\\s+"))
    .join("|")})(?![\\w-])`,
);
