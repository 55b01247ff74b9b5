/** Finds whether an address is in a part of a conversation from which it may be opened, such as a person's message or a search result. */
import { type Conversation, type ModelMessage, outsideFrames, withoutFrames } from '@sluice/sdk'

/** The characters that continue an address: before or behind it, another address begins or goes on. */
const CONTINUES = /[\p{L}\p{N}/_\-%?#&=+~:@$;]/u
/** These end a sentence, or go on within an address. */
const MAY_END = /[.,'!]/

/**
 * Returns whether an address stands verbatim in a message of a person, outside of text of others, or in a result of a tool for which
 * `showsAddresses` is true. The stored messages alone decide.
 */
export function isShown(
  address: string,
  { messages }: Pick<Conversation, 'messages'>,
  current: readonly ModelMessage[],
  showsAddresses: (tool: string) => boolean,
): boolean {
  return [current, messages].some((list) =>
    list.some((message) => textsOf(message, showsAddresses).some((text) => hasWhole(text, address))),
  )
}

function textsOf(message: ModelMessage, showsAddresses: (tool: string) => boolean): readonly string[] {
  if (message.role === 'user') return message.content.flatMap((part) => (part.type === 'text' ? [outsideFrames(part.text)] : []))
  if (message.role !== 'tool') return []
  return message.content.flatMap((part) => {
    if (part.type !== 'tool-result' || !showsAddresses(part.toolName) || part.output.type !== 'text') return []
    // The frame repeats the input of the call, which the model has written.
    return [withoutFrames(part.output.value)]
  })
}

/** Tells whether the address occurs as a whole: a longer address that begins with it is another one. */
function hasWhole(text: string, address: string): boolean {
  for (let at = text.indexOf(address); at >= 0; at = text.indexOf(address, at + 1)) {
    const before = text[at - 1] ?? ' '
    const [next = ' ', behind = ' '] = text.slice(at + address.length, at + address.length + 2)
    const isEnd = !CONTINUES.test(next) && (!MAY_END.test(next) || !CONTINUES.test(behind))
    if (isEnd && !/[\p{L}\p{N}]/u.test(before)) return true
  }
  return false
}
