import { describe, expect, test } from "vitest";
import { commandEnvironment, withoutCredentials } from "./command-environment.ts";

describe("the environment of a command", () => {
  test.each([
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "IFS",
    "CDPATH",
    "BASH_FUNC_git%%",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "TOGETHER_AI_API_KEY",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "OPENAI_ADMIN_KEY",
    "AZURE_OPENAI_API_KEY",
    "AZURE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_VERTEX_API_KEY",
    "VERTEX_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AI_GATEWAY_API_KEY",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "REPLICATE_API_TOKEN",
    "LITELLM_API_KEY",
    "DASHSCOPE_API_KEY",
    "ZHIPU_API_KEY",
    "VOYAGE_API_KEY",
    "ELEVENLABS_API_KEY",
    "CO_API_KEY",
    "NVIDIA_NIM_API_KEY",
    "RETINUE_TOKEN",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
  ])("has no %s, unless a setting passes it on [PRM-9]", (name) => {
    expect(commandEnvironment({ [name]: "x" })).not.toHaveProperty([name]);
    expect(commandEnvironment({ [name]: "x" }, { pass: [name] })).toHaveProperty([name], "x");
  });

  test.each([
    "PATH",
    "HOME",
    "LANG",
    "NODE_OPTIONS",
    "VIRTUAL_ENV",
    "GITHUB_TOKEN",
    "NPM_TOKEN",
    "STRIPE_SECRET_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_CLIENT_ID",
    "CLOUDFLARE_API_TOKEN",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "OPENAI_ORGANIZATION",
    "CLAUDE_CODE_USE_BEDROCK",
    "MY_LD_X",
  ])("keeps %s", (name) => expect(commandEnvironment({ [name]: "x" })).toHaveProperty([name], "x"));

  test.each([
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_CLIENT_SECRET",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ANTHROPIC_API_KEY",
  ])("with CLAUDE_CODE_SUBPROCESS_ENV_SCRUB has no %s, nor has a hook [PRM-9]", (name) => {
    const environment = { [name]: "x", PATH: "/bin", CLAUDE_CODE_SUBPROCESS_ENV_SCRUB: "1" };
    expect(commandEnvironment(environment)).not.toHaveProperty([name]);
    expect(withoutCredentials(environment)).not.toHaveProperty([name]);
    expect(withoutCredentials(environment)).toHaveProperty("PATH", "/bin");
    expect(withoutCredentials({ [name]: "x" })).toHaveProperty([name], "x");
  });

  test("says that an agent is at work and that there is no person at a terminal", () => {
    expect(commandEnvironment({ PAGER: "less", TERM: "xterm", CLAUDECODE: "" })).toMatchObject({
      CLAUDECODE: "1",
      CLAUDE_CODE_CHILD_SESSION: "1",
      PAGER: "cat",
      GIT_PAGER: "cat",
      TERM: "dumb",
    });
  });

  test("holds what the call sets, and drops names without a value", () => {
    const made = commandEnvironment({ EMPTY: undefined }, { set: { CLAUDE_PROJECT_DIR: "/p" } });
    expect(made).toMatchObject({ CLAUDE_PROJECT_DIR: "/p" });
    expect(Object.keys(made)).not.toContain("EMPTY");
  });
});
