/**
 * Makes one turn of messages that a person writes one after another: the pictures of an album, a long text that the app of the sender
 * split, and what the same person writes before the model is called. Each message is stored, acknowledged and deduplicated as what it is.
 * The first one may wait until no further one has come for a while; one commit then gives it the words and the files of the others and
 * ends them, so that a crash at any instant leaves every message in exactly one turn.
 */
import {
  type Channel,
  type Clock,
  commandLane,
  type Forwarded,
  type Inbound,
  type InboxEntry,
  type MessageKind,
  type OwnedStore,
  type SessionMessage,
  sessionKeys,
} from '@sluice/sdk'
import * as v from 'valibot'
import { isConnecting } from '../outbox/channel-health.ts'
import { ATTACHMENTS_MAX } from './media.ts'
import { withMessage } from './read-message.ts'
import { isInRoom } from './rooms.ts'
import { updateValue } from './update-value.ts'

/** How long a piece waits for the next one. */
export const PIECES_PAUSE_MS = 1500
/** The longest wait of a first piece. */
const PIECES_WAIT_MS_MAX = 10_000
/** The most pieces of one turn. */
export const PIECES_MAX = 20
/** How many messages are looked at, at most, to see whether an album goes on behind other messages. */
const AHEAD_MAX = 70
/** A text this near to the longest one of its platform may be the first part of a longer one. */
const NEAR_LIMIT = 0.95

export interface PiecesOptions {
  readonly clock: Pick<Clock, 'nowMs'>
  channels(): readonly Channel[]
  /** Returns `batch_ms` of a channel; undefined where the section does not set it. */
  batchMs(channel: string): number | undefined
  /** Returns when this process took up the shards of these stores. */
  takenAtMs(owned: OwnedStore): number
  /** Returns a message that was read before, if it is still in memory. */
  known(number: number): Inbound | undefined
  /** Called with a message of the store, so that the next look need not read it. */
  onRead(number: number, message: Inbound): void
  /** Removes a piece, which has ended in the store, from the queue. */
  onTaken(number: number): void
  /** Called with a message that has changed in the store. */
  onChanged(number: number, message: Inbound): void
  /** Called with a message that may differ in the store, so that the next look reads it again. */
  onStale(number: number): void
}

/** A message whose turn begins or runs. */
export interface FirstPiece {
  readonly owned: OwnedStore
  readonly channel: Channel
  readonly number: number
  readonly session: string
  /** Absent for a message that the worker classifies. */
  readonly kind?: MessageKind | undefined
  readonly message: Inbound
  /** Whether other messages wait behind it. */
  readonly hasOthers: boolean
  readonly isRunning?: true
}

/** A message that waits. */
export interface Piece {
  readonly number: number
  readonly receivedAtMs: number
  readonly message: Inbound
}

/** The pieces that may join a message, in the order of their arrival, and what the person wrote behind them. An album may go on there. */
export interface Listed {
  readonly pieces: readonly Piece[]
  readonly behind: readonly Piece[]
}

/** The whole message with the others that joined it, or the time at which it may be whole. */
export type Gathered = { readonly message: Inbound; readonly pieces: readonly Inbound[] } | { readonly retryAtMs: number }

/** Resolves to the message with all pieces that have arrived. A message without any costs nothing here. */
export async function gatherPieces(options: PiecesOptions, first: FirstPiece): Promise<Gathered> {
  const { clock, onChanged, onStale, onTaken } = options
  const { channel, message, number, owned, hasOthers } = first
  const alone = { message, pieces: [] }
  const pauseMs = pauseOf(options, first)
  if (pauseMs === 0 && !(hasOthers && joinsAll(options, first))) return alone
  const messages = await owned.inbox.ofSession(first.session)
  const own = messages.find((one) => one.number === number)
  // The turn of a message that was begun before continues with its pieces, and reads the others at its next step.
  if (!own || own.turnId !== null || isOwnMessage(own)) return alone
  const nowMs = clock.nowMs()
  const listed = await piecesOf(options, first, messages)
  // A message that itself waits as long waits for all of them.
  const found = pauseMs < PIECES_PAUSE_MS ? untilGrowing(options, first, listed) : listed
  const pieces = thatFit(message, found)
  // Messages from a time when this process was down arrive after its start, and may belong to an album or a text that was stored before.
  const hasParts = [message, ...pieces.map((piece) => piece.message)].some((one) => isPart(channel, one))
  const earliestMs = hasParts ? Math.max(own.receivedAtMs, options.takenAtMs(owned)) : own.receivedAtMs
  const firstMs = hasParts ? pauseFromMs(options, first, own) : own.receivedAtMs
  const newestMs = Math.max(firstMs, ...pieces.map(({ receivedAtMs }) => receivedAtMs))
  const wholeAtMs = Math.min(newestMs + pauseMs, earliestMs + PIECES_WAIT_MS_MAX)
  // A time far ahead means that the clock was set back.
  if (wholeAtMs > nowMs && wholeAtMs - nowMs <= PIECES_WAIT_MS_MAX && found.pieces.length < PIECES_MAX) return { retryAtMs: wholeAtMs }
  if (pieces.length === 0) return alone
  const all = [message, ...pieces.map((piece) => piece.message)].flatMap((one) => one.pieces ?? [one])
  const joined = joinPieces(message, all)
  const isJoined = await owned.inbox.join({ number, into: { was: message, joined }, pieces, atMs: nowMs })
  // False: a message was edited or deleted meanwhile.
  if (!isJoined) {
    for (const stale of [number, ...pieces.map((piece) => piece.number)]) onStale(stale)
    return { retryAtMs: nowMs }
  }
  onChanged(number, joined)
  for (const piece of pieces) onTaken(piece.number)
  return { message: joined, pieces: pieces.map((piece) => piece.message) }
}

/**
 * Lists the messages that the person of a running turn has written since, and that may join it, before `wholeAlbums`; see `MessageJoin`.
 * Never for a turn that a procedure or a reminder began.
 */
export async function piecesSince(options: PiecesOptions, first: FirstPiece): Promise<Listed> {
  const messages = await first.owned.inbox.ofSession(first.session)
  const own = messages.find((one) => one.number === first.number)
  if (!own || isOwnMessage(own)) return { pieces: [], behind: [] }
  const listed = await piecesOf(options, { ...first, kind: 'turn', isRunning: true }, messages, true)
  return untilGrowing(options, first, listed)
}

/**
 * Returns the pieces that join a message: pieces of its own album, which may be too large for one turn, and the others up to the first one
 * for which the turn has no room. That one begins the next turn.
 */
function thatFit(message: Inbound, { pieces, behind }: Listed): readonly Piece[] {
  const isOwn = (piece: Piece): boolean => message.group !== undefined && piece.message.group?.id === message.group.id
  const own = pieces.filter(isOwn).slice(0, PIECES_MAX)
  const others = pieces.filter((piece) => !isOwn(piece))
  let files = filesOf(message) + own.reduce((sum, piece) => sum + filesOf(piece.message), 0)
  const tooMany = others.findIndex((piece) => {
    files += filesOf(piece.message)
    return filesOf(piece.message) > 0 && files > ATTACHMENTS_MAX
  })
  const withFiles = tooMany < 0 ? others.length : tooMany
  const taken = new Set([...own, ...wholeAlbums({ pieces: others, behind }, Math.min(withFiles, PIECES_MAX - own.length))])
  return pieces.filter((piece) => taken.has(piece))
}

const filesOf = ({ attachments = [] }: Inbound): number => attachments.length

/** Returns the first `max` pieces, fewer where the album of the last one would go on behind them. */
export function wholeAlbums({ pieces, behind }: Listed, max: number): readonly Piece[] {
  const groups = [...pieces, ...behind].map(({ message: { group } }) => group?.id)
  let end = Math.min(pieces.length, max)
  // The pictures of two albums may alternate, so that the beginning of one may lie in another.
  for (let at = end - 1; at >= 0; at--)
    if (at < end && groups[at] !== undefined && groups.indexOf(groups[at], end) >= 0) end = groups.indexOf(groups[at])
  return pieces.slice(0, end)
}

/** Leaves out what may still grow, and all that follows it: an album is in one turn. */
function untilGrowing(options: PiecesOptions, first: FirstPiece, { pieces, behind }: Listed): Listed {
  const growing = pieces.findIndex((piece) => mayGrow(options, first, { piece, pieces: [...pieces, ...behind] }))
  return growing < 0 ? { pieces, behind } : { pieces: pieces.slice(0, growing), behind: [...pieces.slice(growing), ...behind] }
}

/** Whether more pictures of the album of a message, or the next part of its text, may come. */
function mayGrow(
  options: PiecesOptions,
  first: FirstPiece,
  { piece, pieces }: { readonly piece: Piece; readonly pieces: readonly Piece[] },
): boolean {
  if (!isPart(first.channel, piece.message)) return false
  const { group } = piece.message
  const album = pieces.filter(({ message }) => group && message.group?.id === group.id)
  const ageMs = options.clock.nowMs() - Math.max(pauseFromMs(options, first, piece), ...album.map(({ receivedAtMs }) => receivedAtMs))
  // A time in the future means that the clock was set back.
  return ageMs >= 0 && ageMs < PIECES_PAUSE_MS
}

/**
 * Returns when the pause for the next part of a message begins. The platform brings what it had while this process was down only once the
 * channel is connected.
 */
function pauseFromMs(
  { clock, takenAtMs }: PiecesOptions,
  { channel, owned }: FirstPiece,
  { receivedAtMs }: Pick<Piece, 'receivedAtMs'>,
): number {
  if (receivedAtMs >= takenAtMs(owned)) return receivedAtMs
  return isConnecting(channel) ? clock.nowMs() : takenAtMs(owned)
}

/** What Sluice itself sends in the name of a person, such as a reminder, is a turn of its own. */
export const isOwnMessage = ({ verdict }: SessionMessage): boolean => verdict === 'reminder'

/** Whether everything that the person writes meanwhile joins the message, and not only the parts of one message of the platform. */
const joinsAll = ({ batchMs }: PiecesOptions, { channel, kind }: FirstPiece): boolean => kind === 'turn' && batchMs(channel.name) !== 0

/** Returns how long the message waits for the next one. */
function pauseOf(options: PiecesOptions, first: FirstPiece): number {
  const { channel, message } = first
  if (isPart(channel, message)) return PIECES_PAUSE_MS
  if (!joinsAll(options, first)) return 0
  const ownMs = options.batchMs(channel.name) ?? (isInRoom(message) ? PIECES_PAUSE_MS : 0)
  return message.editedAtMs === undefined ? ownMs : Math.max(ownMs, PIECES_PAUSE_MS)
}

/** Whether a message is a picture of an album, or may be the first part of a longer text. */
const isPart = (channel: Channel, message: Inbound): boolean => message.group !== undefined || isNearLimit(channel, message)

const isNearLimit = ({ limits }: Channel, { text }: Inbound): boolean => text.length >= limits.text * NEAR_LIMIT

/** Lists the pieces behind the first one: more than a turn gets, because `wholeAlbums` looks at what follows. */
async function piecesOf(
  options: PiecesOptions,
  first: FirstPiece,
  messages: readonly SessionMessage[],
  isAll = joinsAll(options, first),
): Promise<Listed> {
  const { channel, message, number, kind } = first
  const takenAtMs = options.takenAtMs(first.owned)
  const pieces: Piece[] = []
  const behind: Piece[] = []
  let last: Piece = { number, receivedAtMs: messages.find((one) => one.number === number)?.receivedAtMs ?? 0, message }
  let hasEnded = false
  const following = messages.filter((one) => one.number > number && one.turnId === null && !isOwnMessage(one))
  const end = following.length > 0 ? await nextCommand(first) : Number.POSITIVE_INFINITY
  const endedCommand = following.length > 0 && !first.isRunning ? await nextEndedCommand(first) : Number.POSITIVE_INFINITY
  const waiting = following.filter((one) => one.number < end)
  // Other people may write between the messages of one person, but nothing may come between the parts of a text.
  const considered = isAll || message.group ? waiting.filter(({ sender }) => sender === message.sender) : waiting
  for (const other of considered.slice(0, AHEAD_MAX)) {
    const hasAlbum = message.group !== undefined || pieces.some((piece) => piece.message.group !== undefined)
    if ((hasEnded || pieces.length >= PIECES_MAX) && !hasAlbum) break
    const isSame = other.kind === kind && other.sender === message.sender
    const found = isSame ? await read(options, first, other.number) : undefined
    const piece = found && isOfSame(message, found) ? { ...other, message: found } : undefined
    const isOfGroup = message.group !== undefined && piece?.message.group?.id === message.group.id
    const isNext: boolean = isAll ? !hasEnded && canFollow(first, piece) : !message.group && isContinued(channel, last, piece, takenAtMs)
    const follows: boolean = isNext && other.number < endedCommand
    if (piece && (isOfGroup || follows)) pieces.push(piece)
    else if (piece) behind.push(piece)
    // A message that can't join ends the pieces. Pictures of an album that has begun may still follow.
    hasEnded ||= !isOfGroup && !follows
    if (piece) last = piece
  }
  return { pieces, behind }
}

/**
 * Resolves to the number of the next command of the person that has not ended, which no piece is joined across; `Infinity` without one. A
 * turn that runs reads what comes after a command that has ended.
 */
async function nextCommand({ owned, message, number, session }: FirstPiece): Promise<number> {
  const commands = await owned.inbox.ofSession(commandLane(session))
  const next = commands.find((command) => command.number > number && command.sender === message.sender)
  return next?.number ?? Number.POSITIVE_INFINITY
}

const OWNER = 'delivery'
/** The most ended commands of one person that are kept apart. */
const COMMANDS_MAX = 20

const commandsKey = (session: string, sender: string): string => `${sessionKeys(session)}commands:${sender}`

const numbersSchema = v.fallback(v.array(v.number()), [])

/**
 * Resolves once it is durable that the words before a command of their sender and those behind it are no pieces of one message, also after the
 * command has ended. Nothing is kept where no words wait before it.
 */
export async function keepApart(
  owned: OwnedStore,
  session: string,
  { number, sender }: Pick<InboxEntry, 'number' | 'sender'>,
): Promise<void> {
  const messages = await owned.inbox.ofSession(session)
  if (!messages.some((one) => one.sender === sender && one.number < number && one.turnId === null)) return
  await updateValue(owned.keyValue(OWNER), commandsKey(session, sender), (value) =>
    [...v.parse(numbersSchema, value).filter((one) => one !== number), number].slice(-COMMANDS_MAX),
  )
}

/** Resolves to the number of the next command of the person that has ended; `Infinity` without one. */
async function nextEndedCommand({ owned, message, number, session }: FirstPiece): Promise<number> {
  const numbers = v.parse(numbersSchema, await owned.keyValue(OWNER).get(commandsKey(session, message.sender)))
  return Math.min(...numbers.filter((command) => command > number))
}

async function read({ known, channels, onRead }: PiecesOptions, { owned }: FirstPiece, number: number): Promise<Inbound | undefined> {
  const before = known(number)
  if (before) return before
  const found = await owned.inbox.get(number)
  const message = found && (await withMessage(channels(), found)).message
  if (message) onRead(number, message)
  return message ?? undefined
}

const isContinued = (channel: Channel, last: Piece, piece: Piece | undefined, takenAtMs: number): boolean =>
  piece !== undefined &&
  isNearLimit(channel, last.message) &&
  piece.message.group === undefined &&
  piece.receivedAtMs - (piece.receivedAtMs < takenAtMs ? last.receivedAtMs : Math.max(last.receivedAtMs, takenAtMs)) <= PIECES_PAUSE_MS

/** A running turn reads each message on its own. Before that, the words of a quote or a forward would seem to belong to another message. */
const canFollow = ({ isRunning }: FirstPiece, piece: Piece | undefined): boolean =>
  piece !== undefined &&
  (isRunning === true || (!piece.message.quoted && !piece.message.forwarded && piece.message.inReplyTo === undefined))

const isOfSame = ({ account, sender, to, unverified, quotedFrom }: Inbound, other: Inbound): boolean =>
  account === other.account &&
  sender === other.sender &&
  to.to === other.to.to &&
  to.thread === other.to.thread &&
  unverified === other.unverified &&
  quotedFrom === undefined &&
  other.quotedFrom === undefined

/** Returns the message that consists of these pieces. It keeps its id, and what the first piece says about itself. */
export function joinPieces({ id }: Pick<Inbound, 'id'>, pieces: readonly Inbound[]): Inbound {
  const [first, ...others] = pieces
  if (!first) throw new TypeError('a message has at least one piece')
  const { pieces: _, ...whole } = others.reduce(join, first)
  return { ...whole, id, ...((others.length > 0 || first.id !== id) && { pieces }) }
}

function join(first: Inbound, piece: Inbound): Inbound {
  const texts = [first.text, piece.text].filter((text) => text.trim() !== '')
  const typed = [first.typed ?? first.text, piece.typed ?? piece.text].filter((text) => text.trim() !== '')
  const attachments = [...(first.attachments ?? []), ...(piece.attachments ?? [])]
  const things = [...(first.things ?? []), ...(piece.things ?? [])]
  const { quoted = piece.quoted } = first
  const forwarded = joinForwarded(first.forwarded, piece.forwarded)
  return {
    ...first,
    text: texts.join('\n'),
    ...((first.typed !== undefined || piece.typed !== undefined) && { typed: typed.join('\n') }),
    ...(attachments.length > 0 && { attachments }),
    ...(things.length > 0 && { things }),
    ...(quoted && { quoted }),
    ...(forwarded && { forwarded }),
  }
}

function joinForwarded(first: Forwarded | undefined, piece: Forwarded | undefined): Forwarded | undefined {
  if (!first || !piece) return first ?? piece
  const attachments = [...(first.attachments ?? []), ...(piece.attachments ?? [])]
  const text = [first.text, piece.text].filter((words) => words.trim() !== '').join('\n')
  return { ...first, text, ...(attachments.length > 0 && { attachments }) }
}
