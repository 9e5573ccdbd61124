import { describe, expect, test } from "vitest";
import type { FormatId } from "./format-facts.ts";
import { readForeignFile } from "./read-foreign-file.ts";

/**
 * What odd files give at run time: format, fields, rights, codes. `⏎` is a new line; `raw` begins a whole file. Rights are the tools,
 * those that are taken away, the mode where the file has one, and servers that the agent starts or names; several agents are
 * separated by bars.
 */
const table = String.raw`
opencode ¦  ¦ all ¦
opencode ¦ permission: deny ¦ none ¦
opencode ¦ permission: ask ¦ all ¦ mode-dropped
opencode ¦ permission: "allow" ¦ all ¦
opencode ¦ permission: Deny ¦ no agent ¦ unreadable-restriction
opencode ¦ permission: ⏎   edit: deny ¦ all, not Write; Edit; NotebookEdit ¦
opencode ¦ permission: ⏎   "*": deny ⏎   read: allow ¦ Read ¦
opencode ¦ permission: ⏎   read: allow ⏎   "*": deny ¦ none ¦
opencode ¦ permission: ⏎   bash: {"*": allow, "rm *": deny} ¦ all, not Bash(rm *) ¦
opencode ¦ permission: ⏎   bash: {"rm *": deny, "*": allow} ¦ all ¦
opencode ¦ permission: ⏎   bash: ⏎     "git *": allow ⏎     "*": ask ¦ all ¦
opencode ¦ permission: ⏎   bash: ⏎     "git push*": ask ⏎     "*": deny ⏎     "git diff?": allow ¦ Read; Write; Edit; NotebookEdit; Glob; Grep; LS; Agent; TodoWrite; AskUserQuestion; WebFetch; WebSearch; Skill; mcp__* ¦ pattern-dropped
opencode ¦ permission: ⏎   "b*": deny ¦ all, not Bash; mcp__b* ¦
opencode ¦ permission: ⏎   "*": deny ⏎   "we*": allow ¦ WebFetch; WebSearch ¦
opencode ¦ permission: ⏎   write: deny ¦ all, not Write; Edit; NotebookEdit ¦ deny-dropped
opencode ¦ permission: ⏎   patch: deny ¦ all, not Write; Edit; NotebookEdit ¦ deny-dropped
opencode ¦ permission: ⏎   apply_patch: deny ¦ all, not Write; Edit; NotebookEdit ¦ deny-dropped
opencode ¦ tools: ⏎   write: false ⏎   edit: false ¦ all, not Write; Edit; NotebookEdit ¦
opencode ¦ tools: ⏎   bash: false ⏎ permission: ⏎   bash: allow ¦ all ¦
opencode ¦ tools: ⏎   "*": false ⏎   read: true ¦ Read ¦
opencode ¦ tools: ⏎   read: true ¦ all ¦
opencode ¦ tools: ⏎   "mymcp*": false ¦ all, not mcp__mymcp* ¦
opencode ¦ tools: [read] ¦ no agent ¦ unreadable-restriction
opencode ¦ tools: read, grep ¦ no agent ¦ unreadable-restriction
opencode ¦ tools: ⏎   bash: "false" ¦ no agent ¦ unreadable-restriction
opencode ¦ tools: ⏎   bash: no ¦ no agent ¦ unreadable-restriction
opencode ¦ tools: ⏎   bash: 0 ¦ no agent ¦ unreadable-restriction
opencode ¦ permission: ⏎   github_create_issue: deny ¦ all, not mcp__github__create_issue; mcp__github_create__issue ¦
opencode ¦ permission: ⏎   "*": deny ⏎   "github_*": allow ¦ mcp__github ¦
opencode ¦ permission: ⏎   edit: {"*": deny, "src/**": allow} ¦ Read; Write(src/**); Edit(src/**); NotebookEdit(src/**); Glob; Grep; LS; Bash; Agent; TodoWrite; AskUserQuestion; WebFetch; WebSearch; Skill; mcp__* ¦
opencode ¦ permission: ⏎   external_directory: deny ¦ all ¦ deny-dropped
opencode ¦ permission: ⏎   task: deny ¦ all, not Agent ¦
opencode ¦ permission: ⏎   task: {"*": deny, "explore": allow} ¦ Read; Write; Edit; NotebookEdit; Glob; Grep; LS; Bash; Agent(explore); TodoWrite; AskUserQuestion; WebFetch; WebSearch; Skill; mcp__* ¦
opencode ¦ permission: ⏎   webfetch: ask ¦ all ¦
opencode ¦ permission: ⏎   skill: {"*": deny} ¦ all, not Skill ¦
opencode ¦ permission: ⏎   read: {"*.env": deny} ¦ all, not Read(*.env) ¦
opencode ¦ permission: ⏎   read: {"~/secrets/*": deny} ¦ all, not Read(~/secrets/*) ¦
opencode ¦ permission: [bash] ¦ no agent ¦ unreadable-restriction
opencode ¦ permission: ⏎   bash: 1 ¦ no agent ¦ unreadable-restriction
opencode ¦ permission: ⏎   bash: {"*": 3} ¦ no agent ¦ unreadable-restriction
opencode ¦ permission: ¦ all ¦
opencode ¦ permission: {} ¦ all ¦
opencode ¦ permission: null ¦ all ¦
opencode ¦ permissions: deny ¦ none ¦ deny-dropped
opencode ¦ disable: true ¦ no agent ¦ agent-disabled
opencode ¦ permission: &a deny ¦ none ¦
opencode ¦ x: &p {bash: deny} ⏎ permission: *p ¦ all, not Bash ¦ unknown-kept
opencode ¦ x: &p {bash: deny} ⏎ permission: ⏎   <<: *p ⏎   edit: allow ¦ all, not Bash ¦ unknown-kept
opencode ¦ permission: ⏎   bash: deny ⏎ permission: ⏎   bash: allow ¦ no agent ¦ unreadable-restriction
opencode ¦ permission: ⏎   bash: deny ⏎   bash: allow ¦ no agent ¦ unreadable-restriction
opencode ¦ permission: ⏎   constructor: deny ⏎   __proto__: deny ¦ all, not mcp_____proto__; mcp____proto___ ¦ unknown-tool
opencode ¦ permissionMode: plan ⏎ tools: Read ¦ no agent ¦ mode-dropped unreadable-restriction
opencode ¦ permission: ⏎   grep: deny ⏎   glob: deny ⏎   list: deny ¦ all, not Glob; Grep; LS ¦
opencode ¦ permission: ⏎   "*": ask ⏎   bash: allow ¦ all ¦ mode-dropped
opencode ¦ permission: ⏎   "?ash": deny ¦ all, not Bash; mcp__* ¦
opencode ¦ permission: ⏎   todowrite: deny ⏎   question: allow ⏎   lsp: deny ⏎   codesearch: deny ¦ all, not TodoWrite ¦ unknown-tool
opencode ¦ raw <BOM>---<CR> ⏎ description: H.<CR> ⏎ permission:<CR> ⏎   bash: deny<CR> ⏎ ---<CR> ⏎ Help.<CR> ⏎  ¦ all, not Bash ¦
opencode ¦ permission: ⏎   read: {"/etc/*": deny, "src/*.ts": deny} ¦ all, not Read(//etc/*); Read(src/**/*.ts) ¦
opencode ¦ permission: ⏎   edit: {"*": deny, "notes.md": allow, "src/*": allow, "~/n.md": allow} ¦ Read; Write(./notes.md); Edit(./notes.md); NotebookEdit(./notes.md); Write(src/*); Edit(src/*); NotebookEdit(src/*); Write(~/./n.md); Edit(~/./n.md); NotebookEdit(~/./n.md); Glob; Grep; LS; Bash; Agent; TodoWrite; AskUserQuestion; WebFetch; WebSearch; Skill; mcp__* ¦
opencode ¦ permission: ⏎   bash: {"rm ?": deny} ¦ all, not Bash(rm *) ¦
opencode ¦ permission: ⏎   bash: {"*": deny, "rm ?": allow} ¦ Read; Write; Edit; NotebookEdit; Glob; Grep; LS; Agent; TodoWrite; AskUserQuestion; WebFetch; WebSearch; Skill; mcp__* ¦ pattern-dropped
opencode ¦ permission: ⏎   grep: {"*secret*": deny} ¦ all, not Grep ¦ pattern-dropped
opencode ¦ permission: ⏎   skill: {"internal-*": deny} ¦ all, not Skill ¦ pattern-dropped
opencode ¦ permission: ⏎   skill: {"docs": deny} ¦ all, not Skill(docs); Skill(docs *) ¦
opencode ¦ permission: ⏎   read: {"app/[id]/page.tsx": deny} ¦ all, not Read(app/\[id\]/page.tsx) ¦
opencode ¦ permission: ⏎   "[b]ash": deny ¦ all ¦ unknown-tool
opencode ¦ permission: ⏎   "ba??": deny ⏎   "*": allow ¦ all, not mcp__* ¦
opencode ¦ permission: ⏎   read: ask ¦ all ¦ mode-dropped
opencode-json ¦ raw {"agent":{"a":{"description":"x","prompt":"p","permission":{"bash":"deny"}},"b":{"prompt":"q"}}} ¦ all, not Bash | all ¦ no-description
opencode-json ¦ raw {"permission":{"bash":"deny"},"agent":{"a":{"description":"x","prompt":"p","permission":{"bash":"allow"}},"b":{"prompt":"q","permission":{"edit":"deny"}}}} ¦ all | all, not Write; Edit; NotebookEdit; Bash ¦ no-description
opencode-json ¦ raw {"permission":"deny","agent":{"a":{"prompt":"p"}}} ¦ none ¦ no-description
opencode-json ¦ raw {"agent":{"a":{"prompt":"p","permission":{"bash":"deny"},"permission":{"bash":"allow"}}}} ¦ no agent ¦ unreadable-restriction
opencode-json ¦ raw {"permission":{"bash":"deny"},"agent":{"a":{"prompt":"p"}},"permission":{}} ¦ no agent ¦ unreadable-restriction
opencode-json ¦ raw // c ⏎ {"agent":{"a":{"prompt":"p","tools":{"bash":false},},},} ¦ all, not Bash ¦ no-description
opencode-json ¦ raw {"tools":{"bash":false},"agent":{"a":{"prompt":"p"}}} ¦ all, not Bash ¦ no-description
opencode-json ¦ raw {"mode":{"a":{"prompt":"p","permission":{"bash":"deny"}}}} ¦ all, not Bash ¦ no-description unknown-kept
opencode-json ¦ raw {"agent":{"__proto__x":{"prompt":"p"},"constructor":{"prompt":"q","permission":{"*":"deny"}}}} ¦ all | none ¦ name-style no-description
codex ¦  ¦ all ¦
codex ¦ sandbox_mode = "read-only" ¦ all, mode plan ¦ mode-dropped
codex ¦ sandbox_mode = "workspace-write" ¦ all ¦ mode-dropped
codex ¦ sandbox_mode = "danger-full-access" ¦ all ¦ mode-dropped
codex ¦ sandbox_mode = "Read-Only" ¦ all, mode plan ¦ mode-dropped
codex ¦ sandbox_mode = 3 ¦ no agent ¦ mode-dropped unreadable-restriction
codex ¦ approval_policy = "never" ¦ all ¦ mode-dropped
codex ¦ [features] ⏎ shell_tool = false ¦ all, not Bash; Read; Glob; Grep; LS ¦
codex ¦ [features] ⏎ shell_tool = true ¦ all ¦
codex ¦ features.shell_tool = false ¦ all, not Bash; Read; Glob; Grep; LS ¦
codex ¦ tools = ["Read"] ¦ Read ¦ tools-not-expressible
codex ¦ web_search = "disabled" ¦ all, not WebSearch ¦ mode-dropped
codex ¦ web_search = false ¦ all, not WebSearch ¦ mode-dropped
codex ¦ tools.web_search = false ¦ no agent ¦ unreadable-restriction
codex ¦ [mcp_servers.x] ⏎ command = "evil" ¦ all ¦ mcp-dropped
codex ¦ [mcp_servers.x] ⏎ enabled = false ¦ all ¦ mcp-dropped
codex ¦ unknown_key = 1 ¦ all ¦ unknown-kept
codex ¦ default_permissions = ":read-only" ¦ all ¦ unknown-kept
codex ¦ [permissions.ro] ⏎  ¦ all ¦ unknown-kept
codex ¦ name = "again" ¦ no agent ¦ invalid-toml
codex ¦ sandbox_mode = "read-only" ⏎ sandbox_mode = "danger-full-access" ¦ no agent ¦ invalid-toml
codex ¦ [skills] ⏎ config=[{path="x",enabled=false}] ¦ all ¦ unknown-kept
codex ¦ [features] ⏎ request_permissions_tool=false ⏎ apps=false ¦ all ¦
codex ¦ [sandbox_workspace_write] ⏎ network_access=false ¦ all ¦ unknown-kept
codex ¦ raw <BOM>name = "helper"<CR> ⏎ description = "H."<CR> ⏎ developer_instructions = """<CR> ⏎ Help."""<CR> ⏎ sandbox_mode = "read-only"<CR> ⏎  ¦ all, mode plan ¦ mode-dropped
copilot ¦  ¦ all ¦
copilot ¦ tools: [] ¦ none ¦
copilot ¦ tools: ¦ none ¦
copilot ¦ tools: null ¦ none ¦
copilot ¦ tools: ["*"] ¦ all ¦
copilot ¦ tools: "*" ¦ all ¦
copilot ¦ tools: "" ¦ none ¦
copilot ¦ tools: read, search ¦ Read; Glob; Grep; LS ¦
copilot ¦ tools: [READ, Search] ¦ Read; Glob; Grep; LS ¦
copilot ¦ tools: [nonsense] ¦ none ¦ tools-not-expressible unknown-tool
copilot ¦ tools: [read, nonsense] ¦ Read ¦ unknown-tool
copilot ¦ tools: [github/*] ¦ mcp__github ¦
copilot ¦ tools: ["*/*"] ¦ mcp__* ¦
copilot ¦ tools: ["github/list"] ¦ mcp__github__list ¦
copilot ¦ tools: [edit/editFiles] ¦ Edit ¦
copilot ¦ tools: [edit/createFile] ¦ Write ¦
copilot ¦ tools: [execute/getTerminalOutput] ¦ none ¦ tools-not-expressible unknown-tool
copilot ¦ tools: [read/problems] ¦ none ¦ tools-not-expressible unknown-tool
copilot ¦ tools: [powershell] ¦ Bash ¦
copilot ¦ tools: [agent] ⏎ agents: [] ¦ Agent, not Agent ¦
copilot ¦ tools: [agent] ⏎ agents: [a, b] ¦ Agent(a, b) ¦
copilot ¦ agents: [] ¦ all, not Agent ¦
copilot ¦ agents: ["a"] ¦ Read; Write; Edit; Bash; Glob; Grep; WebFetch; WebSearch; Agent(a); TodoWrite; AskUserQuestion; Skill; NotebookEdit; mcp__* ¦
copilot ¦ tools: {read: true} ¦ no agent ¦ unreadable-restriction
copilot ¦ tools: [[read]] ¦ Read ¦
copilot ¦ tools: [1, true] ¦ no agent ¦ unreadable-restriction
copilot ¦ tools: !!set {read, edit} ¦ none ¦ tools-not-expressible unknown-tool yaml-repaired
copilot ¦ Tools: [read] ¦ Read ¦ misspelt-key
copilot ¦ tools: [read] ⏎ TOOLS: [edit] ¦ Read ¦ unknown-kept
copilot ¦ tools: [custom-agent] ¦ Agent ¦
copilot ¦ tools: [shell] ¦ Bash ¦
copilot ¦ tools: ["-edit", "!shell"] ¦ none ¦ tools-not-expressible unknown-tool
copilot ¦ disallowedTools: [edit] ¦ all, not Edit ¦ deny-dropped
copilot ¦ permissionMode: plan ¦ all, mode plan ¦ mode-dropped
copilot ¦ mcp-servers: {x: {type: local, command: evil, tools: ["*"]}} ⏎ tools: [read] ¦ Read ¦ mcp-dropped
copilot ¦ mcp-servers: {x: {type: local, command: evil, tools: ["a"]}} ¦ all ¦ mcp-dropped
copilot ¦ tools: ["x/a"] ⏎ mcp-servers: {x: {type: local, command: ok, tools: ["a","b"]}} ¦ mcp__x__a ¦ mcp-dropped
copilot ¦ hooks: {PreToolUse: [{command: ./g.sh}]} ¦ all ¦ hooks-dropped
copilot ¦ target: vscode ⏎ tools: [read] ¦ Read ¦ unknown-kept
copilot ¦ disable-model-invocation: true ¦ all ¦ unknown-kept
copilot ¦ model: [gpt-5, Claude Sonnet 4.5] ¦ all ¦ model-dropped
copilot ¦ tools: read search ¦ none ¦ tools-not-expressible unknown-tool
copilot ¦ tools: "read,,edit" ¦ Read; Write; Edit; NotebookEdit ¦
copilot ¦ tools: | ⏎   read ⏎   search ¦ Read; Glob; Grep; LS ¦
copilot ¦ tools: [Bash(git diff *)] ¦ none ¦ tools-not-expressible unknown-tool
copilot ¦ tools: ['view', 'grep'] ¦ Read; Glob; Grep; LS ¦
copilot ¦ tools: [vscode] ¦ none ¦ tools-not-expressible unknown-tool
copilot ¦ tools: [search/changes, search/usages] ¦ Grep ¦ unknown-tool
copilot ¦ tools: [read] ⏎ mcp-servers: {x: {type: local, command: c}} ¦ Read ¦ mcp-dropped
gemini ¦  ¦ all ¦
gemini ¦ tools: [] ¦ none ¦
gemini ¦ tools: [read_file] ¦ Read ¦
gemini ¦ tools: read_file ¦ Read ¦ wrong-form
gemini ¦ tools: [Read] ¦ none ¦ tools-not-expressible unknown-tool
gemini ¦ tools: ["*"] ¦ all ¦
gemini ¦ tools: ["mcp_*"] ¦ mcp__* ¦
gemini ¦ tools: ["mcp_github_*"] ¦ mcp__github ¦
gemini ¦ tools: [mcp_a_b_c] ¦ mcp__a__b_c; mcp__a_b__c ¦
gemini ¦ tools: [run_shell_command] ¦ Bash ¦
gemini ¦ tools: ["run_shell_command(git diff)"] ¦ none ¦ tools-not-expressible unknown-tool
gemini ¦ tools: [discovered_tool_x] ¦ none ¦ tools-not-expressible unknown-tool
gemini ¦ tools: [replace] ¦ Edit ¦
gemini ¦ kind: remote ⏎ agent_card_url: http://x ¦ no agent ¦ remote-agent
gemini ¦ permissionMode: plan ¦ all, mode plan ¦ mode-dropped
gemini ¦ mcpServers: {} ¦ all ¦ unknown-kept
gemini ¦ mcp_servers: {x: {command: evil}} ¦ all, servers x ¦
gemini ¦ mcp_servers: {x: {command: ok, include_tools: [a], exclude_tools: [b]}} ⏎ tools: [read_file] ¦ Read ¦ mcp-dropped
gemini ¦ tools: [invoke_agent] ¦ Agent ¦
gemini ¦ max_turns: 0 ¦ all ¦ unreadable-field
gemini ¦ timeout_mins: 1.5 ¦ all ¦
gemini ¦ tools: [enter_plan_mode, exit_plan_mode] ¦ none ¦ tools-not-expressible unknown-tool
gemini ¦ tools: [complete_task] ¦ none ¦ tools-not-expressible unknown-tool
gemini ¦ tools: null ¦ none ¦
gemini ¦ tools: [write_file, read_many_files] ¦ Write; Read ¦
gemini ¦ tools: [mcp_*_delete] ¦ none ¦ tools-not-expressible unknown-tool
gemini ¦ tools: [read_file] ⏎ mcp_servers: {x: {command: c}} ¦ Read ¦ mcp-dropped
qwen ¦  ¦ all, mode acceptEdits ¦
qwen ¦ approvalMode: plan ¦ all, mode plan ¦
qwen ¦ approvalMode: yolo ¦ all, mode bypassPermissions ¦
qwen ¦ approvalMode: default ¦ all ¦
qwen ¦ approvalMode: auto-edit ¦ all, mode acceptEdits ¦
qwen ¦ approvalMode: bubble ¦ all ¦
qwen ¦ approvalMode: Plan ¦ all, mode plan ¦
qwen ¦ approvalMode: wrong ¦ all ¦ mode-dropped
qwen ¦ permissionMode: dontAsk ¦ all ¦
qwen ¦ permissionMode: plan ⏎ approvalMode: yolo ¦ all, mode bypassPermissions ¦
qwen ¦ permissionMode: bypassPermissions ¦ all, mode bypassPermissions ¦
qwen ¦ tools: [] ¦ none, mode acceptEdits ¦
qwen ¦ tools: [read_file] ¦ Read, mode acceptEdits ¦
qwen ¦ tools: read_file, edit ¦ Read; Edit, mode acceptEdits ¦
qwen ¦ tools: [ReadFile, Shell] ¦ Read; Bash, mode acceptEdits ¦
qwen ¦ tools: [Read, Bash] ¦ none, mode acceptEdits ¦ tools-not-expressible unknown-tool
qwen ¦ tools: ["*"] ¦ all, mode acceptEdits ¦
qwen ¦ disallowedTools: [run_shell_command] ¦ all, not Bash, mode acceptEdits ¦
qwen ¦ disallowedTools: [mcp__x] ¦ all, not mcp__x, mode acceptEdits ¦
qwen ¦ disallowedTools: [Shell] ¦ all, not Bash, mode acceptEdits ¦
qwen ¦ disallowedTools: [nonsense] ¦ all, not nonsense, mode acceptEdits ¦ unknown-tool
qwen ¦ disallowedTools: [write_file] ¦ all, not Write, mode acceptEdits ¦
qwen ¦ disallowedTools: ["*"] ¦ all, not *, mode acceptEdits ¦ unknown-tool
qwen ¦ tools: [mcp__x__y] ¦ mcp__x__y, mode acceptEdits ¦
qwen ¦ tools: [replace] ¦ Edit, mode acceptEdits ¦
qwen ¦ disallowedTools: [replace] ¦ all, not Edit, mode acceptEdits ¦
qwen ¦ disallowedTools: [task] ¦ all, not Agent, mode acceptEdits ¦
qwen ¦ disallowedTools: edit ¦ all, not Edit, mode acceptEdits ¦
qwen ¦ disallowedTools: {edit: true} ¦ no agent ¦ unreadable-restriction
qwen ¦ tools: {read_file: true} ¦ no agent ¦ unreadable-restriction
qwen ¦ runConfig: {max_turns: 3, max_time_minutes: 2} ¦ all, mode acceptEdits ¦
qwen ¦ hooks: {PreToolUse: [{matcher: Bash, hooks: [{type: command, command: g}]}]} ¦ all, mode acceptEdits ¦
qwen ¦ tools: [agent] ¦ Agent, mode acceptEdits ¦
qwen ¦ tools: [web_fetch, save_memory] ¦ WebFetch, mode acceptEdits ¦ unknown-tool
qwen ¦ tools: [mcp__x, mcp__y__*] ¦ mcp__x; mcp__y, mode acceptEdits ¦
qwen ¦ disallowedTools: ["mcp__x__*"] ¦ all, not mcp__x, mode acceptEdits ¦
qwen ¦ disallowedTools: ["Bash(rm *)"] ¦ all, not Bash(rm *), mode acceptEdits ¦ unknown-tool
qwen ¦ disallowedTools: ["run_shell_command(rm *)"] ¦ all, not Bash(rm *), mode acceptEdits ¦ unknown-tool
qwen ¦ tools: ["Shell(git *)"] ¦ none, mode acceptEdits ¦ tools-not-expressible unknown-tool
qwen ¦ tools: [read_file] ⏎ mcpServers: {x: {command: c}} ¦ Read, mode acceptEdits ¦ mcp-dropped
qwen ¦ approvalMode: wrong ⏎ permissionMode: plan ¦ all, mode plan ¦ mode-dropped
cursor ¦  ¦ all ¦
cursor ¦ readonly: true ¦ all, not Write; Edit; NotebookEdit; Bash ¦
cursor ¦ readonly: "true" ¦ all, not Write; Edit; NotebookEdit; Bash ¦
cursor ¦ readonly: yes ¦ all, not Write; Edit; NotebookEdit; Bash ¦
cursor ¦ readonly: True ¦ all, not Write; Edit; NotebookEdit; Bash ¦
cursor ¦ readonly: 1 ¦ no agent ¦ unreadable-restriction
cursor ¦ readonly: false ¦ all ¦
cursor ¦ readOnly: true ¦ all, not Write; Edit; NotebookEdit; Bash ¦ misspelt-key
cursor ¦ read-only: true ¦ all, not Write; Edit; NotebookEdit; Bash ¦ misspelt-key
cursor ¦ read_only: true ¦ all, not Write; Edit; NotebookEdit; Bash ¦ misspelt-key
cursor ¦ READONLY: true ¦ all, not Write; Edit; NotebookEdit; Bash ¦ misspelt-key
cursor ¦ tools: Read ¦ Read ¦ tools-not-expressible
cursor ¦ tools: [] ¦ none ¦ tools-not-expressible
cursor ¦ disallowedTools: Bash ¦ all, not Bash ¦ deny-dropped
cursor ¦ permissionMode: plan ¦ all, mode plan ¦ mode-dropped
cursor ¦ permissionMode: acceptEdits ¦ all ¦ unknown-kept
cursor ¦ readonly: false ⏎ readOnly: true ¦ all ¦ unknown-kept
cursor ¦ readonly: true ⏎ readonly: false ¦ no agent ¦ unreadable-restriction
cursor ¦ readonly: "no" ¦ all ¦
cursor ¦ readonly: maybe ¦ no agent ¦ unreadable-restriction
cursor ¦ readonly: null ¦ all ¦
cursor ¦ readonly: ¦ all ¦
cursor ¦ is_background: true ¦ all ¦
cursor ¦ readonly: [true] ¦ no agent ¦ unreadable-restriction
factory ¦  ¦ all, not Agent ¦
factory ¦ tools: read-only ¦ Read; LS; Grep; Glob; TodoWrite, not Agent ¦
factory ¦ tools: edit ¦ Write; Edit; TodoWrite, not Agent ¦
factory ¦ tools: execute ¦ Bash; TodoWrite, not Agent ¦
factory ¦ tools: web ¦ WebSearch; WebFetch; TodoWrite, not Agent ¦
factory ¦ tools: mcp ¦ mcp__*; TodoWrite, not Agent ¦
factory ¦ tools: [read-only] ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: [Read] ¦ Read; TodoWrite, not Agent ¦
factory ¦ tools: [read] ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: [Create] ¦ Write; TodoWrite, not Agent ¦
factory ¦ tools: [Edit] ¦ Edit; TodoWrite, not Agent ¦
factory ¦ tools: [Write] ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: [] ¦ TodoWrite, not Agent ¦
factory ¦ tools: Read, Grep ¦ Read; Grep; TodoWrite, not Agent ¦
factory ¦ tools: all ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: [Task] ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: [ApplyPatch] ¦ Write; Edit; TodoWrite, not Agent ¦
factory ¦ tools: [mcp__x__y] ¦ mcp__x__y; TodoWrite, not Agent ¦
factory ¦ tools: [linear___get] ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ mcpServers: [] ¦ all, not Agent; mcp__* ¦
factory ¦ mcpServers: [x] ¦ Read; Write; Edit; Bash; Glob; Grep; WebFetch; WebSearch; Agent; TodoWrite; AskUserQuestion; Skill; NotebookEdit; mcp__x, not Agent ¦
factory ¦ tools: [Read] ⏎ mcpServers: [x] ¦ Read; TodoWrite, not Agent ¦
factory ¦ tools: "*" ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: ["*"] ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: Read-Only ¦ TodoWrite, not Agent ¦ tools-not-expressible unknown-tool
factory ¦ tools: [FetchUrl, WebSearch, Execute, LS] ¦ WebFetch; WebSearch; Bash; LS; TodoWrite, not Agent ¦
factory ¦ tools: null ¦ TodoWrite, not Agent ¦
factory ¦ tools: '["Read","Grep"]' ¦ Read; Grep; TodoWrite, not Agent ¦
factory ¦ mcpServers: {x: {command: evil}} ¦ no agent ¦ unreadable-restriction
factory ¦ mcpServers: x ¦ Read; Write; Edit; Bash; Glob; Grep; WebFetch; WebSearch; Agent; TodoWrite; AskUserQuestion; Skill; NotebookEdit; mcp__x, not Agent ¦
factory ¦ tools: mcp ⏎ mcpServers: [x] ¦ mcp__x; TodoWrite, not Agent ¦
factory ¦ tools: [Read, mcp__x__y, mcp__z__q] ⏎ mcpServers: [x] ¦ Read; mcp__x__y; TodoWrite, not Agent ¦
kiro ¦  ¦ none ¦
kiro ¦ "tools":[] ¦ none ¦
kiro ¦ "tools":["read"] ¦ Read ¦
kiro ¦ "tools":["*"] ¦ all ¦
kiro ¦ "tools":["@builtin"] ¦ Read; Write; Edit; NotebookEdit; Bash; Glob; LS; Grep; WebFetch; WebSearch; Agent; TodoWrite ¦
kiro ¦ "tools":["@git"] ¦ mcp__git ¦
kiro ¦ "tools":["@git/status"] ¦ mcp__git__status ¦
kiro ¦ "tools":"read" ¦ Read ¦
kiro ¦ "tools":["fs_read","execute_bash"] ¦ Read; Bash ¦
kiro ¦ "tools":["shell"],"allowedTools":["shell"] ¦ Bash ¦ mode-dropped
kiro ¦ "tools":["shell"],"toolsSettings":{"shell":{"allowedCommands":["git .*"]}} ¦ Bash(git *) ¦
kiro ¦ "tools":["shell"],"toolsSettings":{"shell":{"deniedCommands":["rm .*"]}} ¦ Bash, not Bash(*rm *) ¦
kiro ¦ "tools":["shell"],"allowedTools":["shell"],"toolsSettings":{"shell":{"deniedCommands":["rm .*"]}} ¦ Bash, not Bash(*rm *) ¦ mode-dropped
kiro ¦ "tools":["write"],"toolsSettings":{"write":{"allowedPaths":["src/**"]}} ¦ Write(src/**); Edit(src/**); NotebookEdit(src/**) ¦
kiro ¦ "tools":["write"],"toolsSettings":{"write":{"deniedPaths":["secret/**"]}} ¦ Write; Edit; NotebookEdit, not Write(secret/**); Edit(secret/**); NotebookEdit(secret/**) ¦
kiro ¦ "tools":["*"],"toolsSettings":{"fs_write":{"deniedPaths":["secret/**"]}} ¦ all, not Write(secret/**); Edit(secret/**); NotebookEdit(secret/**) ¦
kiro ¦ "tools":["*"],"toolsSettings":{"execute_bash":{"deniedCommands":["rm .*"]}} ¦ all, not Bash(*rm *) ¦
kiro ¦ "tools":["read"],"toolsSettings":{"read":{"deniedPaths":["/etc/**"]}} ¦ Read, not Read(//etc/**) ¦
kiro ¦ "tools":["use_subagent"],"toolsSettings":{"subagent":{"availableAgents":["a"]}} ¦ Agent(a) ¦
kiro ¦ "tools":["aws"] ¦ none ¦ tools-not-expressible unknown-tool
kiro ¦ "tools":["knowledge","thinking","todo_list"] ¦ TodoWrite ¦ unknown-tool
kiro ¦ "tools":["*"],"excludedTools":["shell"] ¦ all, not Bash ¦
kiro ¦ "tools":["*"],"permissions":[{"capability":"shell","match":["*"],"effect":"deny"}] ¦ all, not Bash ¦
kiro ¦ "tools":["nonsense"] ¦ none ¦ tools-not-expressible unknown-tool
kiro ¦ "tools":["READ"] ¦ none ¦ tools-not-expressible unknown-tool
kiro ¦ "tools":["@git"],"mcpServers":{"git":{"command":"evil"}} ¦ mcp__git, servers git ¦
kiro ¦ "tools":["*"],"mcpServers":{"git":{"command":"evil","disabledTools":["push"]}} ¦ all ¦ mcp-dropped
kiro ¦ "tools":["*"],"includeMcpJson":false ¦ Read; Write; Edit; Bash; Glob; Grep; WebFetch; WebSearch; Agent; TodoWrite; AskUserQuestion; Skill; NotebookEdit ¦
kiro ¦ "tools":["read"],"hooks":{"preToolUse":[{"matcher":"shell","command":"guard"}]} ¦ Read ¦ hooks-dropped
kiro ¦ "tools":["web_fetch","web_search","grep","glob"] ¦ WebFetch; WebSearch; Grep; Glob; LS ¦
kiro ¦ "tools":["*"],"toolAliases":{"@git/x":"read"} ¦ all ¦ unknown-kept
kiro ¦ raw {"name":"helper","description":"H","prompt":"file://./x.md","tools":["read"]} ¦ no agent ¦ unreadable-file
kiro ¦ raw {"name":"helper","description":"H","prompt":"file:///etc/passwd","tools":["read"]} ¦ no agent ¦ unreadable-file
kiro ¦ "tools":{"read":true} ¦ no agent ¦ unreadable-restriction
kiro ¦ "tools":null ¦ none ¦
kiro ¦ "tools":["shell"],"toolsSettings":{"shell":{"allowedCommands":[]}} ¦ none ¦
kiro ¦ "tools":["@*"] ¦ mcp__* ¦
kiro ¦ "tools":["@git/*"] ¦ mcp__git ¦
kiro ¦ "tools":["re*"] ¦ none ¦ tools-not-expressible unknown-tool
kiro ¦ "allowedTools":["read"] ¦ none ¦ mode-dropped
kiro ¦ "tools":["code"] ¦ none ¦ tools-not-expressible unknown-tool
kiro ¦ "tools":["*"],"disallowedTools":["shell"] ¦ all, not Bash ¦ deny-dropped
kiro ¦ "tools":["write"],"toolsSettings":{"write":{"allowedPaths":[]}} ¦ none ¦
kiro ¦ "tools":["shell"],"toolsSettings":{"Shell":{"deniedCommands":["rm .*"]}} ¦ no agent ¦ unreadable-restriction
kiro ¦ raw {"name":"h","description":"d","prompt":"p","tools":["read"],"tools":["*"]} ¦ no agent ¦ unreadable-restriction
kiro ¦ raw <BOM>{"name":"h","prompt":"p","tools":["read"]} ¦ Read ¦ no-description
kiro ¦ "tools":["read"],"mcpServers":{"git":{"command":"x"}} ¦ Read ¦ mcp-dropped
kiro ¦ "mcpServers":{"git":{"command":"x"}} ¦ none ¦ mcp-dropped
kiro ¦ "tools":["*"],"includeMcpJson":false,"mcpServers":{"git":{"command":"x"}} ¦ Read; Write; Edit; Bash; Glob; Grep; WebFetch; WebSearch; Agent; TodoWrite; AskUserQuestion; Skill; NotebookEdit; mcp__git, servers git ¦
kiro ¦ "tools":["@git","@other"],"useLegacyMcpJson":false,"mcpServers":{"git":{"command":"x"}} ¦ mcp__git, servers git ¦
kiro ¦ "tools":["read"],"toolsSettings":{"read":{"deniedPaths":["**/*.{env,key}"]}} ¦ Read, not Read(**/*.env); Read(**/*.key) ¦
kiro ¦ "tools":["write"],"toolsSettings":{"write":{"allowedPaths":["notes.md","/tmp/*"]}} ¦ Write(./notes.md); Write(//tmp/*); Edit(./notes.md); Edit(//tmp/*); NotebookEdit(./notes.md); NotebookEdit(//tmp/*) ¦
kiro ¦ "tools":["shell"],"toolsSettings":{"shell":{"deniedCommands":["^rm .*$"]}} ¦ Bash, not Bash(rm *) ¦
kiro ¦ "tools":["shell"],"toolsSettings":{"shell":{"deniedCommands":["a|b"]}} ¦ Bash, not Bash ¦ pattern-dropped
kiro-md ¦  ¦ none ¦
kiro-md ¦ tools: [read] ¦ Read ¦
kiro-md ¦ tools: read, write ¦ Read; Write; Edit; NotebookEdit ¦
kiro-md ¦ tools: ["@builtin"] ¦ Read; Write; Edit; NotebookEdit; Bash; Glob; LS; Grep; WebFetch; WebSearch; Agent; TodoWrite ¦
kiro-md ¦ allowedTools: [read] ¦ none ¦ mode-dropped
kiro-md ¦ tools: [] ¦ none ¦
cline ¦  ¦ Read; Grep; Glob; LS ¦ tools-omitted
cline ¦ tools: execute_command ¦ Bash ¦
cline ¦ tools: [read_file, nonsense] ¦ Read ¦ unknown-tool
cline ¦ tools: [] ¦ none ¦
cline ¦ tools: "" ¦ none ¦
cline ¦ tools: "*" ¦ none ¦ tools-not-expressible unknown-tool
cline ¦ tools: [use_mcp_tool] ¦ mcp__* ¦
cline ¦ tools: [write_to_file] ¦ Write ¦
cline ¦ tools: [Bash] ¦ none ¦ tools-not-expressible unknown-tool
cline ¦ tools: null ¦ none ¦
cline ¦ skills: a, b ¦ Read; Grep; Glob; LS ¦ tools-omitted
cline ¦ maxIterations: 5 ¦ Read; Grep; Glob; LS ¦ tools-omitted
cline ¦ tools: [use_subagents, new_task] ¦ Agent ¦ unknown-tool
cline ¦ tools: [browser_action] ¦ none ¦ tools-not-expressible unknown-tool
cline ¦ tools: [list_files, list_code_definition_names, search_files] ¦ Glob; LS; Grep ¦
cline ¦ tools: {execute_command: true} ¦ no agent ¦ tools-omitted unreadable-restriction
goose ¦  ¦ all ¦
goose ¦ tools: Read ¦ Read ¦ tools-not-expressible
goose ¦ tools: [] ¦ none ¦ tools-not-expressible
goose ¦ disallowedTools: [Bash] ¦ all, not Bash ¦ deny-dropped
goose ¦ permissionMode: plan ¦ all, mode plan ¦ mode-dropped
goose ¦ permissionMode: bypassPermissions ¦ all ¦ unknown-kept
goose ¦ tools: ["*"] ¦ all ¦ tools-not-expressible
goose ¦ tools: developer__shell ¦ none ¦ tools-not-expressible
goose ¦ raw --- ⏎ name: h ⏎ description: d ⏎ --- ⏎ body ⏎ --- ⏎ more ⏎  ¦ all ¦
pi ¦  ¦ Read; Write; Edit; Bash; Grep; Glob; LS ¦
pi ¦ tools: read, bash ¦ Read; Bash ¦
pi ¦ tools: [] ¦ none ¦
pi ¦ tools: ¦ none ¦
pi ¦ tools: "*" ¦ none ¦ tools-not-expressible unknown-tool
pi ¦ tools: mcp:github ¦ mcp__github ¦
pi ¦ tools: mcp:github/list, read ¦ mcp__github__list; Read ¦
pi ¦ tools: [nonsense, read] ¦ Read ¦ unknown-tool
pi ¦ tools: nonsense ¦ none ¦ tools-not-expressible unknown-tool
pi ¦ acceptanceRole: read-only ¦ Read; Write; Edit; Bash; Grep; Glob; LS ¦ unknown-kept
pi ¦ extensions: [] ¦ Read; Write; Edit; Bash; Grep; Glob; LS ¦ unknown-kept
pi ¦ maxSubagentDepth: 2 ⏎ tools: subagent ¦ Agent ¦ unknown-kept
pi ¦ runner: {type: external-cli, command: evil} ¦ no agent ¦ unknown-kept unreadable-restriction
pi ¦ turnBudget: {maxTurns: 3} ¦ Read; Write; Edit; Bash; Grep; Glob; LS ¦
pi ¦ tools: read,ls,find,grep ¦ Read; LS; Glob; Grep ¦
pi ¦ tools: READ ¦ none ¦ tools-not-expressible unknown-tool
pi ¦ tools: [read, "!bash"] ¦ Read ¦ unknown-tool
pi ¦ package: code ⏎ tools: read ¦ Read ¦ name-style
pi ¦ tools: "mcp:*" ¦ mcp__* ¦
agents ¦  ¦ all ¦
agents ¦ tools: [] ¦ none ¦
agents ¦ tools: read_file, Bash ¦ Read; Bash ¦
agents ¦ disallowedTools: shell ¦ all, not Bash ¦
agents ¦ tools: "*" ¦ all ¦
agents ¦ tools: nonsense ¦ nonsense ¦
agents ¦ disallowedTools: nonsense ¦ all, not nonsense ¦
agents ¦ commandExecutionPolicy: off ¦ all, not Bash ¦ unknown-key
agents ¦ tools: [Read] ⏎ tools: [Bash] ¦ none ¦ duplicate-key
agents ¦ tools: &t [Read] ⏎ x: *t ¦ Read ¦ unknown-key
agents ¦ permissionMode: bypassPermissions ¦ all, mode bypassPermissions ¦
agents ¦ subagents: [a] ¦ all ¦ unknown-key
agents ¦ tools: execute(git *) ¦ Bash(git *) ¦
agents ¦ readonly: true ¦ all ¦ unknown-key
agents ¦ tools: "mcp__*__delete" ¦ mcp__*__delete ¦
opencode ¦ mode: plan ¦ all ¦ duplicate-key mode-dropped
opencode ¦ permission: ⏎   bash: {"*": deny, "git push *": deny, "git *": allow} ¦ Read; Write; Edit; NotebookEdit; Glob; Grep; LS; Bash(git *); Agent; TodoWrite; AskUserQuestion; WebFetch; WebSearch; Skill; mcp__*, not Bash(git push *) ¦ pattern-dropped
copilot ¦ tools: [search/codebase, read/terminalLastCommand, web/fetch] ¦ Grep; WebFetch ¦ unknown-tool
copilot ¦ tools: [codebase, findTestFiles, searchResults] ¦ Grep ¦ unknown-tool
gemini ¦ kind: TASK ¦ all ¦ wrong-form
cline ¦ tools: [read_files, search_codebase, run_commands] ¦ Read; Grep; Bash ¦
cline ¦ tools: [editor, fetch_web_content, ask_question, skills, spawn_agent] ¦ Write; Edit; WebFetch; AskUserQuestion; Skill; Agent ¦
kiro ¦ "tools":["web"] ¦ WebFetch; WebSearch ¦
kiro ¦ "tools":["read","glob","grep"],"toolsSettings":{"glob":{"deniedPaths":["secrets/**"]},"grep":{"allowedPaths":["src/**"]}} ¦ Read ¦ pattern-dropped
kiro ¦ "tools":["web_fetch","read"],"toolsSettings":{"web_fetch":{"blocked":[".*evil.*"],"trusted":["a.com"]}} ¦ Read ¦ pattern-dropped
kiro ¦ "tools":["web_fetch"],"toolsSettings":{"web_fetch":{"blocked":[],"trusted":["a.com"]}} ¦ WebFetch ¦
kiro ¦ "tools":["@git"],"toolsSettings":{"@git/push":{"enabled":"never"}} ¦ mcp__git, not mcp__git__push ¦ pattern-dropped
kiro ¦ "tools":["shell"],"toolsSettings":{"shell":{"denyByDefault":true}} ¦ none ¦
kiro ¦ "tools":["shell"],"toolsSettings":{"execute_cmd":{"allowedCommands":["git .*"],"autoAllowReadonly":true}} ¦ Bash(git *) ¦
kiro ¦ "tools":["shell"],"toolsSettings":{"shell":{"network":"off"}} ¦ none ¦ pattern-dropped
kiro ¦ "tools":["*"],"toolsSettings":{"grep":{"allowedPaths":["src/**"]}} ¦ Read; Write; Edit; Bash; Glob; WebFetch; WebSearch; Agent; TodoWrite; AskUserQuestion; Skill; NotebookEdit; mcp__* ¦ pattern-dropped
opencode ¦ permission: ⏎   "rm -rf *": deny ⏎   "git status": allow ¦ all, not Bash(rm -rf *) ¦ deny-dropped unknown-tool
opencode ¦ permission: ⏎   "*": deny ⏎   bash: ask ⏎   "git push *": deny ¦ Bash, not Bash(git push *) ¦ deny-dropped
kiro-md ¦ tools: [read, write, shell, web] ⏎ permissions: ⏎   rules: ⏎     - {capability: shell, effect: allow, match: ["npm *"]} ¦ Read; Write; Edit; NotebookEdit; Bash; WebFetch; WebSearch ¦ mode-dropped
kiro-md ¦ tools: [read, write, web] ⏎ permissions: ⏎   rules: ⏎     - {capability: builtin, effect: allow} ⏎     - {capability: shell, effect: deny} ¦ Read; Write; Edit; NotebookEdit; WebFetch; WebSearch, not Bash ¦ mode-dropped
kiro-md ¦ tools: [read, shell] ⏎ permissions: ⏎   rules: ⏎     - {capability: shell, effect: deny, match: ["rm -rf *", "git push*"]} ¦ Read; Bash, not Bash(rm -rf *); Bash(git push*) ¦
kiro-md ¦ tools: [read, write] ⏎ permissions: ⏎   rules: ⏎     - {capability: fs_read, effect: deny, match: ["**/.env", "secrets/**"]} ⏎     - {capability: fs_write, effect: deny, match: ["**"]} ¦ Read; Write; Edit; NotebookEdit, not Read(**/.env); Read(secrets/**); Write; Edit; NotebookEdit ¦
kiro-md ¦ tools: [read, write] ⏎ permissions: ⏎   - {capability: filesystem, effect: deny, match: ".env", exclude: [".env.example"]} ¦ Read; Write; Edit; NotebookEdit, not Read(.env); Write(.env); Edit(.env); NotebookEdit(.env) ¦ pattern-dropped
kiro-md ¦ tools: ["*"] ⏎ permissions: ⏎   rules: ⏎     - {capability: mcp, effect: deny, match: ["@git/*", "@db/drop"]} ⏎     - {capability: web_fetch, effect: deny, match: ["*evil*"]} ¦ all, not mcp__git; mcp__db__drop; WebFetch ¦ pattern-dropped
kiro-md ¦ tools: ["*"] ⏎ permissions: ⏎   rules: ⏎     - {capability: mcp, effect: deny} ⏎     - {capability: web_search, effect: deny} ⏎     - {capability: shell, effect: deny, match: ["x[12]"]} ¦ all, not mcp__*; WebSearch; Bash ¦ pattern-dropped
kiro-md ¦ tools: ["*"] ⏎ permissions: ⏎   rules: ⏎     - {capability: teleport, effect: deny} ¦ no agent ¦ unreadable-restriction
kiro-md ¦ tools: ["*"] ⏎ permissions: ⏎   rules: ⏎     - {capability: shell, effect: Deny} ¦ no agent ¦ unreadable-restriction
kiro-md ¦ tools: ["*"] ⏎ permissions: {shell: deny} ¦ no agent ¦ unreadable-restriction
kiro-md ¦ tools: ["*"] ⏎ permissions: deny ¦ no agent ¦ unreadable-restriction
`;

const wrappers: Partial<Record<FormatId, (fields: string) => string>> = {
  opencode: (fields) => `---\ndescription: H.\nmode: subagent\n${fields}\n---\n\nHelp.\n`,
  copilot: (fields) => `---\ndescription: H.\n${fields}\n---\n\nHelp.\n`,
  codex: (fields) => `name = "helper"\ndescription = "H."\ndeveloper_instructions = "Help."\n${fields}`,
  kiro: (fields) =>
    `{"name":"helper","description":"H","prompt":"Help."${fields === "" ? "" : `,${fields}`}}`,
};

const names: Partial<Record<FormatId, string>> = {
  codex: "helper.toml",
  kiro: "helper.json",
  "opencode-json": "opencode.json",
  cline: "helper.yaml",
  copilot: "helper.agent.md",
};

function read(format: FormatId, fields: string): { readonly rights: string; readonly codes: string } {
  const plain = fields
    .replace(/ ⏎(?: |$)/g, "\n")
    .replaceAll("<BOM>", "\uFEFF")
    .replaceAll("<CR>", "\r");
  const wrap =
    wrappers[format] ?? ((each: string) => `---\nname: helper\ndescription: Helps.\n${each}\n---\n\nHelp.\n`);
  const text = plain.startsWith("raw ") ? plain.slice("raw ".length) : wrap(plain);
  const file = `/p/f/${names[format] ?? "helper.md"}`;
  const path = format === "opencode-json" ? file : "/p/f";
  const parsed = readForeignFile(text, file, { scope: "project", path, format });
  const rights = parsed.flatMap(({ definition }) => {
    if (definition === undefined) return [];
    const { tools, disallowedTools, permissionMode, mcpServers = [] } = definition;
    const list = tools?.length === 0 ? "none" : tools?.join("; ");
    return [
      list ?? "all",
      ...(disallowedTools === undefined ? [] : [`not ${disallowedTools.join("; ")}`]),
      ...(permissionMode === undefined ? [] : [`mode ${permissionMode}`]),
      ...(mcpServers.length === 0 ? [] : [`servers ${mcpServers.map(({ name }) => name).join("; ")}`]),
    ].join(", ");
  });
  const codes = new Set(parsed.flatMap(({ diagnostics }) => diagnostics.map(({ code }) => code)));
  return {
    rights: rights.length === 0 ? "no agent" : rights.join(" | "),
    codes: [...codes].sort().join(" "),
  };
}

describe("an odd file of another product is read as it is meant there, or reported [PRT-1]", () => {
  const rows = table
    .trim()
    .split("\n")
    .map((line) => line.split("¦").map((cell) => cell.trim()));
  test.each(rows)("%s: %s", (format, fields = "", rights = "", codes = "") => {
    expect(read(format as FormatId, fields)).toEqual({ rights, codes });
  });
});
