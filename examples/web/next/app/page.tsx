"use client";
export { Chat as default } from "../../page/chat.tsx";
