/** Sends messages and files, and shows that a reply is being written. */
import { list, members, text as textOf } from '@sluice/kit/foreign-json'
import {
  type Address,
  AppError,
  type Attachment,
  type ErrorCode,
  type Outbound,
  type Sent,
  type StyleKind,
  type TextStyle,
} from '@sluice/sdk'
import { groupOf, partsOf } from './parse.ts'
import { call, type Rpc } from './rpc.ts'

/** The outcome for one recipient; see `SendMessageResult` of signal-cli. */
const FAILURES: Readonly<Record<string, ErrorCode>> = {
  UNREGISTERED_FAILURE: 'invalid_request',
  IDENTITY_FAILURE: 'forbidden',
  RATE_LIMIT_FAILURE: 'rate_limited',
}

/** Implements `Channel.send`. The id of a message is the number of the bot and the time at which it was sent. */
export async function sendMessage(rpc: Rpc, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const quoted = to.replyTo === undefined ? undefined : partsOf(to.replyTo)
  const { timestamp, results } = await call(
    rpc,
    'send',
    {
      ...recipientOf(to),
      message: message.text,
      ...(message.styles?.length && { textStyle: message.styles.flatMap(textStyle) }),
      ...(message.attachments?.length && { attachments: message.attachments.map(dataUrl) }),
      ...(quoted && { quoteTimestamp: quoted.atMs, quoteAuthor: quoted.author }),
    },
    signal,
  )
  const outcomes = list(results).map((one) => textOf(members(one).type))
  const failed = outcomes.find((type) => type !== 'SUCCESS')
  if (failed !== undefined && !outcomes.includes('SUCCESS'))
    throw new AppError(FAILURES[failed] ?? 'upstream', `signal-cli did not send the message: ${failed}`)
  if (!Number.isSafeInteger(timestamp)) throw new AppError('upstream', 'signal-cli accepted the message but returned no time for it')
  return { id: `${rpc.account}/${timestamp}` }
}

const STYLES: Readonly<Partial<Record<StyleKind, string>>> = {
  bold: 'BOLD',
  italic: 'ITALIC',
  strike: 'STRIKETHROUGH',
  code: 'MONOSPACE',
  pre: 'MONOSPACE',
}

/** Names a style as the option `--text-style` of signal-cli does: start and length in UTF-16 units, and what the part looks like. */
const textStyle = ({ kind, from, to }: TextStyle): string[] => {
  const name = STYLES[kind]
  return name === undefined ? [] : [`${from}:${to - from}:${name}`]
}

/** Implements `Channel.typing`. */
export async function sendTyping(rpc: Rpc, to: Address, signal: AbortSignal): Promise<void> {
  await call(rpc, 'sendTyping', recipientOf(to), signal)
}

/** Returns the parameters that name a person or a group. */
export function recipientOf(to: Address): object {
  const group = groupOf(to)
  return group === undefined ? { recipient: [to.to] } : { groupId: group }
}

/** signal-cli reads files of its own machine by name, so the bytes go into the request. */
function dataUrl({ name, mime = 'application/octet-stream', source }: Attachment): string {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  return `data:${mime};${new URLSearchParams({ filename: name })};base64,${Buffer.from(source.bytes).toString('base64')}`
}
