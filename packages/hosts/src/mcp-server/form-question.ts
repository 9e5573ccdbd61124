/** The forms that every client with elicitation can show: flat, with texts and choices. */
export interface FormSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, FormField>>;
  readonly required: readonly string[];
}

export interface FormField {
  readonly type: "string";
  readonly title: string;
  readonly description?: string;
  readonly enum?: readonly string[];
}

/** What came back; `unanswered` when it did not come in time or could not be asked for. */
export interface FormReply {
  readonly action: "accept" | "decline" | "cancel" | "unanswered";
  readonly content?: Readonly<Record<string, unknown>>;
}

/** A question to the person behind a client, and what its answer means. */
export interface FormQuestion<Answer> {
  readonly message: string;
  readonly schema: FormSchema;
  readonly read: (reply: FormReply) => Answer;
}
