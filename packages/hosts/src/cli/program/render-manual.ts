import type { OutlinedCommand, OutlinedOption } from "./outline-program.ts";

/** The program as a man page, from the same data as its help. */
export function renderManual(program: OutlinedCommand, { version }: { readonly version: string }): string {
  const lines = [
    `.TH RETINUE 1 "" "retinue ${escaped(version)}" "User Commands"`,
    ".SH NAME",
    "retinue \\- run agents and their subagents from the terminal",
    ".SH SYNOPSIS",
    '.B retinue\n[\\fIoptions\\fR] ["\\fIprompt\\fR"]',
    ".br",
    ".B retinue\n\\fIcommand\\fR [\\fIoptions\\fR]",
    ".SH DESCRIPTION",
    "In a terminal, \\fBretinue\\fR opens a conversation with an agent that can start other agents. With \\fB\\-p\\fR it answers one prompt and ends; in a pipe it prints only the answer.",
    ".SH OPTIONS",
    "They come before or after the command.",
    ...program.options.flatMap(optionLines),
    ".SH COMMANDS",
    ...program.commands.flatMap(commandLines),
    ".SH EXIT STATUS",
    ...entry("0", "success"),
    ...entry("1", "something went wrong, or a check found something"),
    ...entry("2", "the command was used in a way it cannot be"),
    ...entry("130, 143, 129, 131", "ended by Ctrl+C, SIGTERM, SIGHUP or SIGQUIT"),
    ".SH ENVIRONMENT",
    ...entry("ANTHROPIC_API_KEY", "the key of the provider; other providers have theirs"),
    ...entry("NO_COLOR, FORCE_COLOR", "no colours, or colours also in pipes"),
    ...entry("VISUAL, EDITOR", "the editor for drafts, plans and agents"),
    ...entry("RETINUE_THEME", "light or dark, where the terminal does not say"),
  ];
  return `${lines.join("\n")}\n`;
}

function commandLines(command: OutlinedCommand): readonly string[] {
  return [
    ".SS",
    `.B ${escaped(command.usage)}`,
    ".br",
    escaped(command.description),
    ...command.options.flatMap(optionLines),
    ...command.commands.flatMap(commandLines),
  ];
}

function optionLines({ flags, description }: OutlinedOption): readonly string[] {
  return entry(flags, description);
}

function entry(term: string, text: string): readonly string[] {
  return [".TP", `.B ${escaped(term)}`, escaped(text)];
}

/** A dot or quote at the start of a line would be a request, and a bare hyphen would become a dash. */
function escaped(text: string): string {
  const plain = text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
  return /^[.']/.test(plain) ? `\\&${plain}` : plain;
}
