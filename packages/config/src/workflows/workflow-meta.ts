/** How a script describes itself, in its first statement. */
export interface WorkflowMeta {
  readonly name: string;
  readonly description: string;
  readonly whenToUse?: string;
  readonly phases?: readonly WorkflowPhase[];
}

export interface WorkflowPhase {
  readonly title: string;
  readonly detail?: string;
  readonly model?: string;
  /** What the steps of this phase may take together. */
  readonly maxBudgetUsd?: number;
  readonly maxTokens?: number;
  readonly maxAgents?: number;
}
