/** The chats of the channels that are notification targets, as people see them. */
import type { Chat } from '@sluice/testkit/chat'
import { CHANNELS } from '../channels.ts'

/** Their names. */
export const CHATS: readonly string[] = CHANNELS.flatMap(({ name, testing }) => (testing.chat ? [name] : []))

/** `nowMs` is the daemon's clock. Throws for a channel without a chat. */
export const startChats = (names: readonly string[], nowMs: () => number = Date.now): Promise<Chat[]> =>
  Promise.all(names.map((name) => startChat(name, nowMs)))

export async function startChat(name: string, nowMs: () => number = Date.now): Promise<Chat> {
  const chat = await CHANNELS.find((channel) => channel.name === name)?.testing.chat?.(nowMs)
  if (!chat) throw new Error(`The channel "${name}" has no chat.`)
  return chat
}

/** The notification target that the channel implements. Throws for any other target. */
export function targetOf(name: string): string {
  const target = CHANNELS.find((channel) => channel.name === name)?.row.target
  if (target === undefined) throw new Error(`The channel "${name}" is no notification target.`)
  return target
}
