/**
 * Addresses of the platform: `<digits>@s.whatsapp.net` for a number, `<digits>@lid` for a user who hides it, `<id>@g.us` for a group. The
 * device of a business that Meta hosts writes as `<digits>:99@hosted` or `<digits>:99@hosted.lid`, and is the same person. Source:
 * `isHostedPnUser` and `isHostedLidUser` of baileys, and `HostedServer` of https://github.com/tulir/whatsmeow.
 */
import { AppError } from '@sluice/sdk'

const NUMBER = '@s.whatsapp.net'
const LID = '@lid'
const GROUP = '@g.us'

/** A user, perhaps with an agent and a device. */
const USER = /^(\d{1,20})(?:_\d+)?(?::\d+)?$/
/** The domains of people, each with the one that represents it. */
const DOMAINS = new Map([
  [NUMBER, NUMBER],
  [LID, LID],
  ['@hosted', NUMBER],
  ['@hosted.lid', LID],
])
const ADDRESS = /^(?:\d{1,20}@s\.whatsapp\.net|\d{1,20}@lid|[\d-]{5,40}@g\.us)$/

export const isGroup = (jid: string): boolean => jid.endsWith(GROUP)
export const isLid = (jid: string): boolean => personOf(jid)?.domain === LID

/** Returns the user and the domain of a person's address; undefined for any other address. */
export function personOf(jid: string | null | undefined): { readonly user: string; readonly domain: string } | undefined {
  if (!jid?.includes('@')) return undefined
  const at = jid.indexOf('@')
  const [, user] = USER.exec(jid.slice(0, at)) ?? []
  const domain = DOMAINS.get(jid.slice(at))
  return user === undefined || domain === undefined ? undefined : { user, domain }
}

export const numberJid = (number: string): string => `${number.replace('+', '')}${NUMBER}`

/** Returns a person's sender id: `+` and digits, or `<digits>@lid` if the number is hidden. */
export function senderOf(jid: string): string | undefined {
  const person = personOf(jid)
  if (!person) return undefined
  return person.domain === NUMBER ? `+${person.user}` : person.user + person.domain
}

/** Returns the address of a sender id, or of the words that an operator wrote. Throws `invalid_request` for another text. */
export function addressOf(to: string): string {
  const jid = /^\+\d{1,20}$/.test(to) ? numberJid(to) : to
  if (!ADDRESS.test(jid))
    throw new AppError('invalid_request', `${JSON.stringify(to.slice(0, 60))} is not a number, a user or a group of WhatsApp`)
  return jid
}

/** A message id: its author and the platform's id, which is unique for each author only. */
export const messageId = (author: string, id: string): string => `${author}/${id}`

export function partsOf(message: string): { readonly author: string; readonly id: string } | undefined {
  const at = message.indexOf('/')
  return at <= 0 || at === message.length - 1 ? undefined : { author: message.slice(0, at), id: message.slice(at + 1) }
}
