/** The ids of messages and chats. A message's number is unique only within its chat, so its id contains both. */

export const messageId = (chat: string, number: unknown): string => `${chat}:${number}`

/** Returns the number in an id of `messageId`, or of a bare number; undefined for any other text. */
export function messageNumber(id: string): number | undefined {
  const number = Number(/(?:^|:)(\d+)$/.exec(id)?.[1])
  return Number.isSafeInteger(number) ? number : undefined
}

/** Returns the chat in an id of `messageId`; undefined for any other text. */
export const chatOf = (id: string): string | undefined => /^(.+):\d+$/.exec(id)?.[1]

/** Returns an id of the API, an integer of at most 52 bits, as text; empty for any other value. */
export const idText = (value: unknown): string => (Number.isSafeInteger(value) && value !== 0 ? String(value) : '')
