/**
 * Makes one message of pieces that platforms deliver one by one: the pictures of an album, and a long text that the app of the sender
 * split. Each piece is stored, acknowledged and deduplicated as what it is. The first one waits until no further piece has come for a
 * while; it then takes the words and the files of each other piece in the commit that ends that piece, so that a crash at any instant
 * leaves every piece in exactly one message.
 */
import type { Channel, Clock, Forwarded, Inbound, InboxEntry, OwnedStore } from '@sluice/sdk'
import { withMessage } from './read-message.ts'

/** How long a piece waits for the next one. */
export const PIECES_PAUSE_MS = 1500
/** The longest wait of a first piece. */
const PIECES_WAIT_MS_MAX = 10_000
/** The most pieces of one message; the largest albums have 10. */
const PIECES_MAX = 20
/** A text this near to the longest one of its platform may be the first part of a longer one. */
const NEAR_LIMIT = 0.95

export interface PiecesOptions {
  readonly clock: Pick<Clock, 'nowMs'>
  channels(): readonly Channel[]
  /** Removes a piece, which has ended in the store, from the queue. */
  onTaken(number: number): void
  /** Called with a message that has changed in the store. */
  onChanged(number: number, message: Inbound): void
}

interface FirstPiece {
  readonly owned: OwnedStore
  readonly channel: Channel
  readonly number: number
  readonly session: string
  readonly message: Inbound
}

/** A piece that waits. */
interface Piece {
  readonly number: number
  readonly receivedAtMs: number
  readonly message: Inbound
}

/** The whole message, or the time at which it may be whole. */
export type Gathered = { readonly message: Inbound } | { readonly retryAtMs: number }

/** Resolves to the message with all pieces that have arrived. Most messages have no pieces, and cost nothing here. */
export async function gatherPieces(options: PiecesOptions, first: FirstPiece): Promise<Gathered> {
  const { clock, onChanged, onTaken } = options
  const { channel, message, number, owned } = first
  if (!mayHavePieces(channel, message)) return { message }
  const entry = await owned.inbox.get(number)
  // The turn of a message that was begun before goes on with what it has.
  if (!entry || entry.turnId !== null || entry.endedAtMs !== null) return { message }
  const pieces = await piecesOf(options, first, entry)
  const newestMs = Math.max(entry.receivedAtMs, ...pieces.map(({ receivedAtMs }) => receivedAtMs))
  const nowMs = clock.nowMs()
  const wholeAtMs = Math.min(newestMs + PIECES_PAUSE_MS, entry.receivedAtMs + PIECES_WAIT_MS_MAX)
  // A time far ahead means that the clock was set back.
  if (wholeAtMs > nowMs && wholeAtMs - nowMs <= PIECES_WAIT_MS_MAX && pieces.length < PIECES_MAX) return { retryAtMs: wholeAtMs }
  let whole = message
  for (const piece of pieces) {
    const joined = join(whole, piece.message)
    // False: the message was deleted meanwhile. The pieces that are left are messages of their own.
    if (!(await owned.inbox.change(piece.number, { number, message: joined, atMs: nowMs }))) break
    whole = joined
    onChanged(number, whole)
    onTaken(piece.number)
  }
  return { message: whole }
}

const isNearLimit = ({ limits }: Channel, { text }: Inbound): boolean => text.length >= limits.text * NEAR_LIMIT

const mayHavePieces = (channel: Channel, message: Inbound): boolean => message.group !== undefined || isNearLimit(channel, message)

/** Lists the pieces behind the first one, in the order of their arrival. */
async function piecesOf(
  { channels }: PiecesOptions,
  { channel, message, number, owned, session }: FirstPiece,
  first: InboxEntry,
): Promise<Piece[]> {
  const waiting = (await owned.inbox.ofSession(session)).flatMap((one) => (one.isRunning ? [] : [one.number]))
  const pieces: Piece[] = []
  let last: Piece = { number, receivedAtMs: first.receivedAtMs, message }
  for (const other of waiting.filter((one) => one > number).slice(0, PIECES_MAX)) {
    const found = await owned.inbox.get(other)
    const entry = found && (await withMessage(channels(), found))
    if (!entry?.message || entry.turnId !== null || entry.endedAtMs !== null) continue
    const piece = { number: other, receivedAtMs: entry.receivedAtMs, message: entry.message }
    const isNext = message.group ? piece.message.group?.id === message.group.id : isContinued(channel, last, piece)
    if (isNext && isOfSame(message, piece.message)) pieces.push(piece)
    // Other messages may come between the pictures of an album, but not between the parts of a text.
    else if (!message.group) break
    last = piece
  }
  return pieces
}

const isContinued = (channel: Channel, last: Piece, { message, receivedAtMs }: Piece): boolean =>
  isNearLimit(channel, last.message) && message.group === undefined && receivedAtMs - last.receivedAtMs <= PIECES_PAUSE_MS

const isOfSame = ({ account, sender, to, unverified, quotedFrom }: Inbound, other: Inbound): boolean =>
  account === other.account &&
  sender === other.sender &&
  to.to === other.to.to &&
  to.thread === other.to.thread &&
  unverified === other.unverified &&
  quotedFrom === undefined &&
  other.quotedFrom === undefined

/** The message keeps what the first piece says about itself. */
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
    pieces: (first.pieces ?? 1) + (piece.pieces ?? 1),
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
