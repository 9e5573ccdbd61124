export { type AssertReplayOptions, assertReplay } from "./assert-replay.ts";
export {
  type ContractOptions,
  type ContractSubject,
  type ContractTraits,
  type CreateSubject,
  describeModelContract,
  type TestRunner,
} from "./describe-model-contract.ts";
export { type CreateStore, describeStoreContract, type StoreSubject } from "./describe-store-contract.ts";
export { createFakeHost, type FakeHost, type FakeHostOptions } from "./fake-host.ts";
export { createFakeMcpServer, type FakeMcpServer, type FakeMcpTool } from "./fake-mcp-server.ts";
export {
  type FakeProvider,
  type FakeProviderOptions,
  type ProviderRequest,
  startFakeProvider,
} from "./fake-provider.ts";
export { createManualClock, type ManualClock } from "./manual-clock.ts";
export type { ScriptedCall, ScriptedStep, Step, StepAnswer, StepError, StepFunction } from "./script.ts";
export { createScriptedModel, type ScriptedModel, type ScriptedModelOptions } from "./scripted-model.ts";
