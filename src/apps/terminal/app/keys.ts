/** One key and what it does, for the help and for the docs. */
export interface KeyHelp {
  readonly keys: string;
  readonly does: string;
}

/** Every key of the conversation, in the order people look for them. */
export const keyHelp: readonly KeyHelp[] = [
  { keys: "enter", does: "send; while the agent works, queue the message" },
  { keys: "shift+enter, alt+enter, ctrl+j, \\ enter", does: "new line" },
  { keys: "esc", does: "interrupt the turn; the draft stays" },
  { keys: "esc esc", does: "go back to an earlier prompt and edit it" },
  { keys: "ctrl+c", does: "clear the draft; again within 2 s: end" },
  { keys: "ctrl+d", does: "end, when nothing is written" },
  { keys: "tab", does: "open the question that waits; tab again: back to the draft" },
  { keys: "shift+tab", does: "next permission mode" },
  { keys: "ctrl+b", does: "move the running agent or command to the background" },
  { keys: "ctrl+o", does: "the whole conversation, with all calls and results" },
  { keys: "ctrl+t", does: "the list of steps and all agents" },
  { keys: "ctrl+r", does: "search in earlier prompts" },
  { keys: "ctrl+g", does: "write the draft in $EDITOR" },
  { keys: "ctrl+z", does: "suspend; fg comes back" },
  { keys: "ctrl+l", does: "paint the lower part again" },
  { keys: "up, down", does: "earlier prompts; up takes a queued message back; down goes to the agents" },
  { keys: "down, then enter / x / b", does: "open, stop or move the chosen agent" },
  { keys: "/", does: "commands and skills" },
  { keys: "@", does: "a file of the project" },
  { keys: "!", does: "a shell command, through the same rules" },
  { keys: "#", does: "a note for the project's instructions" },
  { keys: "?", does: "this page" },
];
