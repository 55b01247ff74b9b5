/** Writes messages in the protocol of their recipient, and publishes them to the relays that the recipient reads. */
import { type Address, AppError, type Attachment, type Outbound, type Sent } from '@sluice/sdk'
import { type BlossomServer, upload } from './blossom.ts'
import { encryptFile } from './encrypted-file.ts'
import type { Rumor, SignedEvent } from './event.ts'
import { type ForeignRelays, LINKS_MAX } from './foreign-relays.ts'
import { wrap } from './gift-wrap.ts'
import type { Identity } from './identity.ts'
import { isHexKey } from './keys.ts'
import { encryptLegacy } from './nip04.ts'
import { CHAT_MESSAGE, FILE_MESSAGE, LEGACY } from './parse.ts'
import type { RelayLink } from './relay-link.ts'
import { RELAYS_MAX, type RelayLists } from './relay-list.ts'
import type { Stamps } from './stamps.ts'

export interface Sender {
  readonly identity: Identity
  readonly stamps: Stamps
  readonly lists: RelayLists
  readonly foreign: ForeignRelays
  /** The working connections to the bot's own relays. */
  links(): readonly RelayLink[]
  readonly blossom: BlossomServer | undefined
}

const NONCE_BYTES = 16
/** The members who are written to at once. The relays of so many fit into the connections that are kept to relays of others. */
const MEMBERS_AT_ONCE = LINKS_MAX / RELAYS_MAX
/** Control characters would be six bytes each inside of a gift wrap, and clients do not show them. */
const CONTROL = /[^\P{Cc}\n\t]/gu

/** Implements `Channel.send`. The same message yields the same events, so that relays and clients drop repeats. */
export async function sendMessage(sender: Sender, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const members = to.to.split(',')
  if (!members.every(isHexKey)) throw new AppError('invalid_request', 'The address is not a public key in hex')
  if (sender.links().length === 0) throw new AppError('unavailable', 'No relay is connected')
  const text = message.text.replace(CONTROL, '')
  const attachments = message.attachments ?? []
  const createdAt = await sender.stamps.of(message.clientId, to.to, 1 + attachments.length)
  if (to.more?.protocol === LEGACY.protocol) return sendLegacy(sender, to, { text, createdAt, attachments }, signal)
  const rumors: Rumor[] = []
  if (text.trim() !== '' || attachments.length === 0)
    rumors.push(sender.identity.rumor({ kind: CHAT_MESSAGE, created_at: createdAt, tags: tagsOf(to, members), content: text }))
  for (const [index, attachment] of attachments.entries())
    rumors.push(
      await fileMessage(sender, to, { attachment, createdAt: createdAt + 1 + index, purpose: `${message.clientId} ${index}` }, signal),
    )
  for (const rumor of rumors) await publishPrivately(sender, rumor, members, signal)
  return { id: rumors[0]?.id ?? '' }
}

async function sendLegacy(
  sender: Sender,
  { to, replyTo }: Address,
  { text, createdAt, attachments }: { readonly text: string; readonly createdAt: number; readonly attachments: readonly Attachment[] },
  signal: AbortSignal,
): Promise<Sent> {
  const notes = attachments.map(({ name }) => `[${name} was not sent: this client receives no encrypted files (NIP-04)]`)
  const event = encryptLegacy(sender.identity, to, { text: [text, ...notes].join('\n').trim(), createdAt, replyTo })
  await publishToAny(event, sender.links(), signal)
  return { id: event.id }
}

/** Uploads a file encrypted, and returns the message about it. */
async function fileMessage(
  { identity, blossom }: Sender,
  to: Address,
  { attachment, createdAt, purpose }: { readonly attachment: Attachment; readonly createdAt: number; readonly purpose: string },
  signal: AbortSignal,
): Promise<Rumor> {
  if (!blossom) throw new AppError('invalid_request', 'Attachments need `channels_config.relaynet.blossom_url`')
  const { source, mime = 'application/octet-stream', name } = attachment
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  const { sha256Hex } = await import('@sluice/sdk')
  const original = sha256Hex(source.bytes)
  const [key, nonce] = [
    identity.derive(`file key ${purpose} ${original}`),
    identity.derive(`file nonce ${purpose} ${original}`, NONCE_BYTES),
  ]
  const encrypted = encryptFile(source.bytes, key, nonce)
  const url = await upload(blossom, identity, encrypted, signal)
  const tags = [
    ...tagsOf(to, to.to.split(',')),
    ['file-type', mime],
    ['encryption-algorithm', 'aes-gcm'],
    ['decryption-key', Buffer.from(key).toString('hex')],
    ['decryption-nonce', Buffer.from(nonce).toString('hex')],
    ['x', sha256Hex(encrypted)],
    ['ox', original],
    ['size', String(encrypted.length)],
    ['name', name],
  ]
  return identity.rumor({ kind: FILE_MESSAGE, created_at: createdAt, tags, content: url })
}

const tagsOf = ({ replyTo }: Address, members: readonly string[]): string[][] => [
  ...members.map((member) => ['p', member]),
  ...(replyTo !== undefined && isHexKey(replyTo) ? [['e', replyTo, '', 'reply']] : []),
]

/** Publishes one gift wrap for each member, and one for the bot itself, whose other clients show the conversation. */
async function publishPrivately(sender: Sender, rumor: Rumor, members: readonly string[], signal: AbortSignal): Promise<void> {
  const { identity } = sender
  const outcomes: PromiseSettledResult<void>[] = []
  for (let first = 0; first < members.length; first += MEMBERS_AT_ONCE) {
    const some = members.slice(first, first + MEMBERS_AT_ONCE)
    outcomes.push(...(await Promise.allSettled(some.map((member) => publishTo(sender, member, wrap(identity, rumor, member), signal)))))
  }
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  // A member who can never be reached must not keep the message from being sent; the others have it.
  if (failures.length === members.length || failures.some(isTemporary)) throw failures.find(isTemporary) ?? failures[0]
  void publishToAny(wrap(identity, rumor, identity.pubkey), sender.links(), new AbortController().signal).catch(() => undefined)
}

async function publishTo({ lists, links, foreign }: Sender, member: string, event: SignedEvent, signal: AbortSignal): Promise<void> {
  const own = links()
  const relays = await lists.of(member, own, signal)
  if (relays.length === 0) return publishToAny(event, own, signal)
  const targets = relays.map((url) => own.find((link) => link.url === url) ?? foreign.link(url, signal))
  try {
    await publishToAny(event, targets, signal)
  } catch (error) {
    lists.forget(member)
    throw error
  }
}

/** Resolves once one of the relays has accepted the event; the others get it, too. Throws the failure that leaves most hope. */
async function publishToAny(event: SignedEvent, targets: readonly (RelayLink | Promise<RelayLink>)[], signal: AbortSignal): Promise<void> {
  if (targets.length === 0) throw new AppError('unavailable', 'No relay is connected')
  try {
    await Promise.any(targets.map(async (target) => (await target).publish(event, signal)))
  } catch (error) {
    const failures: unknown[] = error instanceof AggregateError ? error.errors : [error]
    throw failures.find(isTemporary) ?? failures[0]
  }
}

const isTemporary = (error: unknown): boolean =>
  error instanceof AppError && ['unavailable', 'rate_limited', 'aborted', 'upstream', 'upstream_timeout'].includes(error.code)
