/** Turns verified and decrypted events into messages. */
import { parsedOrUndefined } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import { type Addressed, type Attachment, forwardedPart, type Inbound, poll, type Thing, thingsPart, unknownThing } from '@sluice/sdk'
import { encodeFile, fileIn } from './encrypted-file.ts'
import { type Rumor, readRumor, tagValue, tagValues } from './event.ts'
import { isHexKey, publicKeyOf } from './keys.ts'
import { LEGACY_MESSAGE } from './nip04.ts'

export const CHAT_MESSAGE = 14
export const FILE_MESSAGE = 15
export const DELETION = 5
const HAS_RECEIVERS: readonly number[] = [CHAT_MESSAGE, FILE_MESSAGE, DELETION]
/** See https://github.com/nostr-protocol/nips/blob/master/18.md. */
const REPOSTS = [6, 16]
/** See https://github.com/nostr-protocol/nips/blob/master/88.md. */
const POLL = 1068

/** The protocol of a message, kept in its address so that the reply uses the same one. */
export const LEGACY = { protocol: 'nip04' } as const

/** A conversation with more members is ignored: each reply is encrypted once for each of them. */
const MEMBERS_MAX = 20
const DELETED_MAX = 20
const MENTION = /nostr:n(?:pub|profile)1[02-9ac-hj-np-z]{6,1000}/gi
const MENTIONS_MAX = 50

/** Reactions, invitations into encrypted groups, lists of relays, and kinds that are not to be kept (NIP-01), such as signs of typing. */
const isIgnored = (kind: number): boolean => [7, 444, 10_050].includes(kind) || (kind >= 20_000 && kind < 30_000)

/**
 * Returns the messages of a private message (NIP-17); none for the bot's own ones and for reactions. Other kinds arrive as a line, with
 * their words as words of others. The keys that they name are not receivers: in a repost, one is the author of the note.
 */
export function parsePrivate(rumor: Rumor, account: string): Inbound[] {
  if (rumor.pubkey === account) return []
  const receivers = HAS_RECEIVERS.includes(rumor.kind) ? tagValues(rumor, 'p') : []
  const members = [...new Set([rumor.pubkey, ...receivers])].filter((key) => key !== account)
  if (members.length > MEMBERS_MAX || !members.every(isHexKey)) return []
  const to = members.toSorted().join(',')
  const common = { account, sender: rumor.pubkey, sentAtMs: rumor.created_at * 1000 }
  if (rumor.kind === DELETION) {
    const deleted = [...new Set(tagValues(rumor, 'e'))].filter(isHexKey).slice(0, DELETED_MAX)
    return deleted.map((message) => ({
      ...common,
      id: `${rumor.id}:${message}`,
      to: { to, replyTo: message },
      text: '',
      changes: { message, what: 'deleted' },
    }))
  }
  const addressed: Addressed = members.length === 1 ? 'direct' : mentions(rumor.content, account) ? 'mention' : 'overheard'
  const message = { ...common, id: rumor.id, to: { to, replyTo: rumor.id }, addressed, ...reply(rumor) }
  if (rumor.kind === CHAT_MESSAGE) return rumor.content.trim() === '' ? [] : [{ ...message, text: rumor.content }]
  if (rumor.kind !== FILE_MESSAGE) return isIgnored(rumor.kind) ? [] : [{ ...message, text: '', ...otherContent(rumor) }]
  const attachment = attachmentOf(rumor)
  if (attachment) return [{ ...message, text: '', attachments: [attachment] }]
  return [{ ...message, text: '[A file that cannot be decrypted, because its encryption is not supported]' }]
}

/** Returns the content of an event that is neither a text nor a file. A repost has the words of others; so may an unknown kind. */
function otherContent(rumor: Rumor): Pick<Inbound, 'forwarded' | 'things'> {
  const content = rumor.content.trim()
  if (REPOSTS.includes(rumor.kind) && content !== '') {
    const original = readRumor(parsedOrUndefined(content))
    return forwardedPart(original ? { author: { id: original.pubkey }, text: original.content } : { text: content })
  }
  if (rumor.kind === POLL) return thingsPart([pollIn(rumor, content)])
  return { ...thingsPart([unknownThing(`kind ${rumor.kind}`)]), ...forwardedPart({ text: content }) }
}

const pollIn = ({ tags }: Rumor, question: string): Thing =>
  poll(
    question,
    tags.filter(([name]) => name === 'option').map(([, , label = '']) => label),
  )

/** Returns the message of a legacy event with its decrypted text. */
export function parseLegacy(event: Rumor, text: string, account: string): Inbound[] {
  if (event.pubkey === account || event.kind !== LEGACY_MESSAGE || text.trim() === '') return []
  return [
    {
      id: event.id,
      account,
      sender: event.pubkey,
      to: { to: event.pubkey, replyTo: event.id, more: LEGACY },
      addressed: 'direct',
      text,
      sentAtMs: event.created_at * 1000,
      ...reply(event),
    },
  ]
}

/** Whether a text names a key, in the form of NIP-27. */
const mentions = (text: string, key: string): boolean =>
  (text.match(MENTION) ?? []).slice(0, MENTIONS_MAX).some((mention) => publicKeyOf(mention) === key)

/** Returns the message that is answered: the one with the marker of NIP-10, else the first. */
function reply({ tags }: Rumor): { readonly inReplyTo?: string } {
  const answered = tags.filter(([name, id]) => name === 'e' && id !== undefined && isHexKey(id))
  const [, id] = answered.find(([, , , marker]) => marker === 'reply') ?? answered[0] ?? []
  return id === undefined ? {} : { inReplyTo: id }
}

function attachmentOf(rumor: Rumor): Attachment | undefined {
  const file = fileIn(rumor)
  if (!file) return undefined
  const mime = tagValue(rumor, 'file-type')?.trim().toLowerCase() ?? ''
  const isMime = /^[\w.+-]+\/[\w.+-]+$/.test(mime)
  const name = tagValue(rumor, 'name') || URL.parse(file.url)?.pathname.split('/').at(-1) || 'file'
  return { kind: attachmentKind(mime), name, ...(isMime && { mime }), source: { id: encodeFile(file) } }
}
