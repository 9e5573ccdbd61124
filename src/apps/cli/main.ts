/** Runs the command line and returns the exit code. */
export async function main(_arguments: readonly string[]): Promise<number> {
  return 0;
}
