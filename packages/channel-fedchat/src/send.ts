/** Sends messages, edits, reactions and the typing indicator. The transaction id of a message is the same in each attempt. */
import { text } from '@sluice/kit/foreign-json'
import { sliceStyled } from '@sluice/kit/styled-text'
import {
  type Address,
  AppError,
  type Clock,
  errorText,
  type Logger,
  type Outbound,
  type Sent,
  type StyledText,
  sha256Hex,
} from '@sluice/sdk'
import { isRefused, refusalOf } from './api.ts'
import { bytesOf, editContent, fileContent, mimeOf, reactionContent, textContent } from './compose.ts'
import { upload } from './media.ts'
import { reactionKey } from './presses.ts'
import type { Session } from './session.ts'

const TYPING_MS = 8000
/** How homeservers refuse a relation to an event that is gone, or that cannot begin a thread. */
const BAD_RELATION_CODES = ['M_UNKNOWN', 'M_INVALID_PARAM', 'M_BAD_JSON', 'M_NOT_FOUND']
const BAD_RELATION = /thread|relat|repl(?:y|ies)/i
/** The last message has the rest of a longer text. */
const PARAGRAPHS_MAX = 10

/** Sends each paragraph of a text as a message of its own, at most one in this time. */
export interface ParagraphPace {
  readonly clock: Pick<Clock, 'sleep'>
  readonly everyMs: number
}

/** See `Channel.send`. The homeserver answers a repeated transaction with the event of the first one. */
export async function sendMessage(
  session: Session,
  to: Address,
  message: Outbound,
  { log, pace }: { readonly log: Logger; readonly pace: ParagraphPace | undefined },
  signal: AbortSignal,
): Promise<Sent> {
  const { text: body, styles = [], attachments = [], buttons = [], clientId } = message
  const room = await session.rooms.targetOf(to.to, signal)
  const ids: string[] = []
  const paragraphs = body !== '' || attachments.length === 0 ? paragraphsOf({ text: body, styles }, pace) : []
  for (const [index, paragraph] of paragraphs.entries()) {
    if (index > 0 && pace && pace.everyMs > 0) await pace.clock.sleep(pace.everyMs, signal)
    const txn = index === 0 ? clientId : `${clientId}.p${index}`
    ids.push(await sendRelated(session, room, to, (place) => textContent(place, paragraph), txn, signal))
  }
  const isEncrypted = (await session.rooms.encryptionOf(room, signal)) !== undefined
  for (const [index, attachment] of attachments.entries()) {
    const bytes = bytesOf(attachment)
    const uploaded = await upload(session.api, { bytes, name: attachment.name, mime: mimeOf(attachment) }, isEncrypted, signal)
    const content = (place: Address) => fileContent(place, attachment, bytes.length, uploaded)
    ids.push(await sendRelated(session, room, to, content, `${clientId}.${index}`, signal))
  }
  const [id = ''] = ids
  if (buttons.length > 0) await showButtons(session, room, id, message, log, signal)
  return { id }
}

/** See `Channel.update`. An edit has a transaction of its own, because it may bring back an earlier text. */
export async function updateMessage(
  session: Session,
  to: Address,
  { id }: Sent,
  message: Outbound,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const room = await session.rooms.targetOf(to.to, signal)
  await sendEvent(session, room, editContent(id, { text: message.text, styles: message.styles ?? [] }), crypto.randomUUID(), signal)
  if ((message.buttons ?? []).length === 0) await hideButtons(session, room, id, log, signal)
}

export async function showTyping(session: Session, { to }: Address, signal: AbortSignal): Promise<void> {
  const room = await session.rooms.targetOf(to, signal)
  const path = ['rooms', room, 'typing', session.identity.userId]
  await session.api.client('PUT', path, { body: { typing: true, timeout: TYPING_MS }, signal })
}

/** A message that takes no thread or reply, such as one of a thread itself, is left out. */
async function sendRelated(
  session: Session,
  room: string,
  to: Address,
  content: (to: Address) => object,
  txn: string,
  signal: AbortSignal,
): Promise<string> {
  try {
    return await sendEvent(session, room, content(to), txn, signal)
  } catch (error) {
    const { thread, replyTo, ...plain } = to
    if ((thread === undefined && replyTo === undefined) || !isRefused(error, ...BAD_RELATION_CODES)) throw error
    if (!BAD_RELATION.test(refusalOf(error)?.text ?? '')) throw error
    // A repeat of the first transaction would be answered as the first one was.
    return sendEvent(session, room, content(plain), `${txn}.plain`, signal)
  }
}

/** Returns the id of the event. In an encrypted room, nothing leaves before its key is durable and the devices of the room have it. */
async function sendEvent(session: Session, room: string, content: object, txn: string, signal: AbortSignal): Promise<string> {
  const { api, device, rooms, vault } = session
  const encryption = await rooms.encryptionOf(room, signal)
  const event = { type: 'm.room.message', content }
  const sealed = encryption && (await device.encrypt(room, event, await rooms.recipientsIn(room, signal), encryption, signal))
  // A room that was found to be encrypted stays so after a crash.
  await vault.flush()
  const path = ['rooms', room, 'send', sealed ? 'm.room.encrypted' : event.type, txn]
  const { event_id: id } = await api.client('PUT', path, { body: sealed ?? content, signal })
  if (text(id) === '') throw new AppError('upstream', 'The homeserver accepted the message but did not return its id')
  return text(id)
}

/** Shows the buttons as reactions of the bot. The message is sent already, so a failure is only logged: the text names the keywords, too. */
async function showButtons(
  session: Session,
  room: string,
  message: string,
  { buttons = [], clientId }: Outbound,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const reactions: string[] = []
  try {
    // A person may react before the answers of the homeserver have arrived.
    session.presses.show(message, buttons, [])
    await session.vault.flush()
    for (const button of buttons) {
      const key = reactionKey(button)
      // Reactions are not encrypted, because the homeserver counts them.
      const path = ['rooms', room, 'send', 'm.reaction', `${clientId}.${sha256Hex(key).slice(0, 8)}`]
      const { event_id: id } = await session.api.client('PUT', path, { body: reactionContent(message, key), signal })
      reactions.push(text(id))
    }
  } catch (error) {
    log.warn('buttons not shown', { channel: 'fedchat', reason: errorText(error) })
  }
  session.presses.show(message, buttons, reactions)
  await session.vault.flush().catch((error: unknown) => log.warn('buttons not stored', { channel: 'fedchat', error }))
}

async function hideButtons(session: Session, room: string, message: string, log: Logger, signal: AbortSignal): Promise<void> {
  for (const reaction of session.presses.reactionsTo(message)) {
    try {
      await session.api.client('PUT', ['rooms', room, 'redact', reaction, crypto.randomUUID()], { body: {}, signal })
    } catch (error) {
      if (!isRefused(error, 'M_NOT_FOUND')) log.warn('button not removed', { channel: 'fedchat', reason: errorText(error) })
    }
  }
  session.presses.remove(message)
}

/** Splits at blank lines outside of code blocks. */
export function paragraphsOf(styled: StyledText, pace: ParagraphPace | undefined): readonly StyledText[] {
  if (!pace) return [styled]
  let at = 0
  return paragraphTexts(styled).map((paragraph) => {
    const from = styled.text.indexOf(paragraph, at)
    at = from + paragraph.length
    return sliceStyled(styled, from, at)
  })
}

function paragraphTexts({ text: body, styles }: StyledText): readonly string[] {
  const blocks = styles.filter(({ kind }) => kind === 'pre')
  let at = 0
  const found: string[] = []
  let isCode = false
  let isNew = true
  for (const line of body.split('\n')) {
    const isFence = line.trimStart().startsWith('```')
    const place = at
    at += line.length + 1
    const isBlock = blocks.some(({ from, to }) => from < place && place < to)
    if (line.trim() === '' && !isCode && !isBlock) isNew = found.length < PARAGRAPHS_MAX || isNew
    if (line.trim() !== '' && isNew && !isCode && found.length < PARAGRAPHS_MAX) found.push(line)
    else if (found.length > 0) found[found.length - 1] += `\n${line}`
    if (line.trim() !== '') isNew = false
    if (isFence) isCode = !isCode
  }
  const texts = found.map((paragraph) => paragraph.trimEnd()).filter((paragraph) => paragraph !== '')
  return texts.length === 0 ? [body] : texts
}
