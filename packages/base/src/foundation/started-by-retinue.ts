/** Informs a server process who its client is; Retinue as a server refuses itself, or children could start children. */
export const startedByRetinue = "RETINUE_MCP_CLIENT";
