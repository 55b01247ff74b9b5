/** Parses messages and deletions, and decides which of them are for the bot. */
import { type Inbound, namePart, overheardPart, type Thing, thing, thingsPart } from '@sluice/sdk'
import type { IrcConfig } from './config.ts'
import { mentions, plainText, withoutAddress } from './text.ts'
import { folded, type Line } from './wire.ts'

/** The bot for which lines are parsed. */
export interface Bot {
  readonly account: string
  readonly nick: string
  readonly config: IrcConfig
  isChannel(target: string): boolean
}

const ACTION = '\x01ACTION '
/** A request for a connection between two clients, which this channel does not make. See https://modern.ircdocs.horse/dcc. */
const OFFER = /^DCC ([A-Z]{1,20})(?: (?:"([^"]*)"|(\S+)))?/i
/** Services write notices to most people, but some write messages. */
const SERVICES = new Set(['nickserv', 'chanserv', 'memoserv', 'operserv', 'hostserv', 'botserv', 'saslserv', 'global'])

/** The account of the bot: its nick on its server. */
export const accountOf = ({ nickname, server }: IrcConfig): string => `${folded(nickname)}@${folded(server)}`

/** The time at which the server got the line; undefined if it does not say. See https://ircv3.net/specs/extensions/server-time. */
export function timeOf({ tags }: Line): number | undefined {
  const ms = Date.parse(tags.get('time') ?? '')
  return Number.isNaN(ms) ? undefined : ms
}

/**
 * Parses a line; undefined for everything that is not a message for the bot. `inventId` names a message to which the server gave no id: such
 * a message arrives once and is never repeated.
 */
export function parse(line: Line, bot: Bot, inventId: () => string): Inbound | undefined {
  if (line.command === 'REDACT') return parseDeletion(line, bot)
  const [target = '', content = ''] = line.params
  if (line.command !== 'PRIVMSG' || !isFromPerson(line, bot)) return undefined
  const isDirect = !bot.isChannel(target)
  // A history has messages to the configured nick also while another connection still has that nick.
  if (isDirect && ![bot.nick, bot.config.nickname].some((nick) => folded(nick) === folded(target))) return undefined
  const offer = offerIn(content)
  // Only an action and an offer, among the requests between clients, are messages of a person.
  if (content.startsWith('\x01') && !content.startsWith(ACTION) && !offer) return undefined
  const said = offer ? '' : plainText(content.startsWith(ACTION) ? `* ${content.slice(ACTION.length)}` : content)
  const addressed = isDirect ? 'direct' : mentions(said, bot.nick) ? 'mention' : 'overheard'
  const inReplyTo = line.tags.get('+draft/reply') ?? line.tags.get('+reply')
  // A mention alone asks about the message that it quotes.
  const text = isDirect ? said : withoutAddress(said, bot.nick) || (inReplyTo ? said : '')
  if (text === '' && !offer) return undefined
  const id = line.tags.get('msgid')
  const sentAtMs = timeOf(line)
  return {
    id: id ?? inventId(),
    account: bot.account,
    ...identityOf(line),
    ...namePart(line.nick),
    to: addressOf(line, isDirect ? undefined : target),
    addressed,
    ...overheardPart({ addressed }, bot.config.mention_only),
    text,
    ...thingsPart(offer ? [offer] : []),
    ...(sentAtMs !== undefined && { sentAtMs }),
    ...(inReplyTo && { inReplyTo }),
  }
}

/** Describes an offer of a file by the file's name, and any other offer by its kind. */
function offerIn(content: string): Thing | undefined {
  const [, kind = '', quoted, word = ''] = (content.startsWith('\x01') && OFFER.exec(plainText(content))) || []
  const name = kind.toUpperCase() === 'CHAT' ? '' : (quoted ?? word)
  return kind === '' ? undefined : thing('unknown', `DCC ${kind.toUpperCase()}`, name)
}

/** See https://ircv3.net/specs/extensions/message-redaction. */
function parseDeletion(line: Line, bot: Bot): Inbound | undefined {
  const [target = '', message] = line.params
  if (!message || !isFromPerson(line, bot)) return undefined
  return {
    id: `redact:${message}`,
    account: bot.account,
    // An operator of the channel may have deleted it, so the deletion does not tell who wrote the message.
    sender: '',
    to: addressOf(line, bot.isChannel(target) ? target : undefined),
    text: '',
    changes: { message, what: 'deleted' },
  }
}

/** Messages of the bot itself, of other bots and of services are ignored. See https://ircv3.net/specs/extensions/bot-mode. */
function isFromPerson({ nick, source, tags }: Line, bot: Bot): boolean {
  if (!source.includes('!') || folded(nick) === folded(bot.nick) || SERVICES.has(folded(nick))) return false
  return !tags.has('bot') && !tags.has('draft/bot')
}

/** Only the account is vouched for by the server: anyone may use a nick. See https://ircv3.net/specs/extensions/account-tag. */
function identityOf({ nick, tags }: Line): Pick<Inbound, 'sender' | 'unverified'> {
  const account = tags.get('account')
  return account && account !== '*' ? { sender: `account:${folded(account)}` } : { sender: folded(nick), unverified: true }
}

function addressOf({ nick, tags }: Line, channel: string | undefined): Inbound['to'] {
  const id = tags.get('msgid')
  return { to: channel ?? nick, ...(id && { replyTo: id }), ...(channel !== undefined && { more: { nick } }) }
}
