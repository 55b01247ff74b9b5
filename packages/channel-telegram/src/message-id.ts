/** The one form of a message's id, in both directions: its number counts inside its chat only. */

export const messageId = (chat: string, number: unknown): string => `${chat}:${number}`

/** Of an id in that form, or of a number alone; undefined for anything else. */
export function messageNumber(id: string): number | undefined {
  const number = Number(/(?:^|:)(\d+)$/.exec(id)?.[1])
  return Number.isSafeInteger(number) ? number : undefined
}

/** The chat of an id in that form. */
export const chatOf = (id: string): string | undefined => /^(.+):\d+$/.exec(id)?.[1]
