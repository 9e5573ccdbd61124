import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import type { Store } from "@retinue/cluster/store.ts";
import { describeBusContract } from "./describe-bus-contract.ts";
import { describeEngineContract } from "./describe-engine-contract.ts";
import { describeLogContract } from "./describe-log-contract.ts";
import { isTestRunner, type TestRunner } from "./describe-model-contract.ts";

/** A store under test. */
export interface StoreSubject {
  readonly store: Store;
  /** Closes the store and opens it again, as after a restart of the process. */
  reopen(): Promise<Store>;
  /** Removes everything. */
  dispose(): Promise<void>;
}

export type CreateStore = () => Promise<StoreSubject>;

export type WithStore = (use: (store: Store, subject: StoreSubject) => Promise<void>) => Promise<void>;

/** The rules that every Store keeps, as tests of the runner that is passed in. `create` gives an empty store each time. */
export function describeStoreContract(name: string, create: CreateStore, runner: TestRunner): void {
  checkArgument("The first argument of describeStoreContract()", checks.filled, name);
  checkArgument("The second argument of describeStoreContract()", checks.call, create);
  checkArgument("The third argument of describeStoreContract()", isTestRunner, runner);
  const withStore: WithStore = async (use) => {
    const subject = await create();
    try {
      await use(subject.store, subject);
    } finally {
      await subject.dispose();
    }
  };
  runner.describe(`${name} keeps the contract of a store`, () => {
    runner.describe("log", () => describeLogContract(withStore, runner));
    runner.describe("engine", () => describeEngineContract(withStore, runner));
    runner.describe("bus", () => describeBusContract(withStore, runner));
  });
}
