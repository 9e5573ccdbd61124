import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The suites over the whole repository before the tests beside the sources: they take seconds where those take milliseconds,
 * and what is left at the end should be small enough to keep every worker busy until then.
 */
export default class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [true, false].flatMap((isSuite) =>
      sorted.filter(({ moduleId }) => moduleId.includes("/test/") === isSuite),
    );
  }
}
