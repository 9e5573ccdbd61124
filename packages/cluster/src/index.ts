export type { AcceptedRight } from "@retinue/core/planning/within-own-rights.ts";
export type { AgentContext, AgentProgram, ChildRequest, Effect, ProgramOutcome } from "./agent-program.ts";
export type { AgentStatus, DeadLetter, Ending, Message, OpenCall } from "./agent-records.ts";
export { type FollowOptions, followSession } from "./follow-session.ts";
export { type OpenStoreOptions, openStore, setUpStore } from "./open-store.ts";
export type { SetUpOptions } from "./postgres/postgres-store-options.ts";
export { type PostgresOptions, postgres, type StoreRunsOptions, workersOf } from "./postgres.ts";
export { type PruneOptions, pruneAgents } from "./prune-agents.ts";
export { type ServeAgentsOptions, serveAgents } from "./serve-agents.ts";
export { type ServeSessionsOptions, serveSessions } from "./serve-sessions.ts";
export type { Question, SessionMessage } from "./session/session-progress.ts";
export type { SessionOpened } from "./session/session-work.ts";
export { type StoreApproval, type StoreApprovals, storeApprovals } from "./session/store-approvals.ts";
export {
  type AgentReport,
  inspectAgent,
  type ReportedStatus,
  reviveAgent,
  type StartRequest,
  sendMessage,
  startAgent,
  stopAgent,
  type WaitOptions,
  waitForEnd,
  watchAgent,
} from "./start-agent.ts";
export {
  type PlannedMain,
  type PlanRequest,
  planMain,
  type SessionRequest,
  startPlan,
  startSession,
  startWorkflow,
  type WorkflowRequest,
} from "./start-session.ts";
export type {
  Activation,
  ActivationOutcome,
  ActivationStatus,
  Bus,
  Engine,
  JsonValue,
  ListOptions,
  Log,
  LogEntry,
  LogSummary,
  RunActivation,
  ServeOptions,
  Store,
  Subscription,
  WakeOptions,
  Worker,
  WorkerStatus,
} from "./store.ts";
export { isConflict, logConflict } from "./store.ts";
export { type FindWorkspaceOptions, findWorkspace, type WorkspaceType } from "./workspace/find-workspace.ts";
export { describeWorkspace, type WorkspacePlan } from "./workspace/workspace-plan.ts";
