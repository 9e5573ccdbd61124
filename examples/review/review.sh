#!/usr/bin/env bash
# Reviews the change since $BASE with agents that may only read. Called by action.yml; runs anywhere in a checkout:
#   BASE=origin/main RUNNER_TEMP=/tmp bash examples/review/review.sh
set -euo pipefail
temporary="${RUNNER_TEMP:-$(mktemp -d)}"
export RETINUE_DIFF="$temporary/change.diff"
git diff "${BASE:?the commit that the change is compared with}"...HEAD > "$RETINUE_DIFF"
if [ -n "${INPUT_KEY:-}" ]; then export ANTHROPIC_API_KEY="$INPUT_KEY"; fi
unset INPUT_KEY
agents="${AGENTS:-${DEFAULT_AGENTS:-$(dirname "$0")/agents.json}}"
prompt="${PROMPT:-Start the agents security, correctness and tests in parallel, each with that file, and summarize what they report, the worst first.}"
model=()
if [ -n "${MODEL:-}" ]; then model=(--model "$MODEL"); fi
# Settings, agents and instructions of the branch do not count: the pull request may have changed them.
"${RETINUE:-retinue}" -p "Review the change in $RETINUE_DIFF. $prompt" \
  "${model[@]}" \
  --agents "$agents" \
  --setting-sources "" \
  --add-dir "$temporary" \
  --tools Read Grep Glob Agent \
  --permission-mode dontAsk \
  --max-budget-usd "${BUDGET:-2}" --max-time "${TIME:-10m}" \
  --output-format json > "$temporary/review.json"
node -e '
  const { readFileSync, writeFileSync, appendFileSync } = require("node:fs");
  const [json, markdown, output] = process.argv.slice(1);
  const { result, total_cost_usd } = JSON.parse(readFileSync(json, "utf8"));
  writeFileSync(markdown, `${result}\n`);
  if (output) appendFileSync(output, `result=${markdown}\ncost=${total_cost_usd}\n`);
' "$temporary/review.json" "$temporary/review.md" "${GITHUB_OUTPUT:-}"
echo "Review: $temporary/review.md"
